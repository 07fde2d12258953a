/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: one accepted connection, forwarded to a port of a session. */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>

struct millibox_client;

/**
 * forward_run - until both sides have ended; closes @local, with a reset if not all bytes arrived.
 * Blocks. Return: 0, or -1 with *err; if the daemon refused, *ret_problem is its error object,
 * owned.
 */
int forward_run(struct millibox_client *client, const char *path, int local, json_t **ret_problem,
                struct error *err) attr_must_check;
