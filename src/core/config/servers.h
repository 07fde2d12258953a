/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: gateway.servers of the configuration file: outside MCP servers by name. Values of variables
 * and headers may have ${file:PATH}, which stands for the content of a file; ${secret:NAME} is left
 * to daemon/gateway_setup.h.
 */

#include "core/config/config.h"
#include "core/config/yamldoc.h"

/** servers_read - @node is the mapping; adds to @c. Errors name @file, line and key. */
int servers_read(struct config *c, const struct yamldoc_node *node, const char *file,
                 struct error *err) attr_must_check;
/** servers_settle - what a server does not say is as in the settings. */
void servers_settle(struct config *c);
void servers_done(struct config *c);
