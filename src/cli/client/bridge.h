/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: MCP between standard input and output and a daemon: a message is a line on both sides, and a
 * request of Streamable HTTP in between. Nothing but messages goes to standard output.
 */

#include "base/attr.h"
#include "base/error.h"
#include "cli/client/endpoint.h"

/**
 * bridge_run - until standard input ends and everything was answered, or a signal comes to
 * @interrupt_fd. Return: 0, or -1 with *err.
 */
int bridge_run(const struct endpoint *endpoint, int interrupt_fd,
               struct error *err) attr_must_check;
