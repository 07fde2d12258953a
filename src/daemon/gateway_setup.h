/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: how the outside MCP servers of the configuration get to millibox-gateway, with the secrets
 * that their variables and headers name: ${secret:NAME} of tenant "default", or
 * ${secret:TENANT/NAME}. A server whose secret is not set cannot be called until it is.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>

struct config;
struct secrets;

/**
 * gateway_setup_send - all servers. @secrets NULL: there are none. @step: 0 at first; of a socket
 * that does not block it says after -EAGAIN where to continue. Return: 0 or a negative errno.
 */
int gateway_setup_send(int sock, const struct config *config, const struct secrets *secrets,
                       size_t *step) attr_must_check;
/** gateway_setup_uses - does a server use secret @name of @tenant? */
bool gateway_setup_uses(const struct config *config, const char *tenant, const char *name);
