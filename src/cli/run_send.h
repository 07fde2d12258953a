/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a program to the daemon that is there, or to one of our own where there is none. */

#include "base/attr.h"
#include "base/error.h"
#include "cli/endpoint.h"

struct exec_call;

struct run_send {
	struct endpoint_options at;
	const char *body;
};

/** run_send - @call is initialised, with its descriptor of interrupts. Return: the exit status. */
int run_send(struct exec_call *call, const struct run_send *what, struct error *err);
