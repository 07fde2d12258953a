/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: connects an MCP client on stdin and stdout to a daemon: a message is one line here and one
 * Streamable HTTP request there. Only messages go to stdout.
 */

#include "base/attr.h"
#include "base/error.h"
#include "client/millibox.h"
#include <stdbool.h>

/**
 * bridge_run - until stdin ends and every request is answered, or a signal arrives at
 * @interrupt_fd. @reconnects: wait for a daemon that stopped and returns. Return: 0, or -1 with
 * *err.
 */
int bridge_run(struct millibox_client *client, bool reconnects, int interrupt_fd,
               struct error *err) attr_must_check;
