/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: sends a program to a daemon, prints the result and chooses the exit status. */

#include "base/attr.h"
#include "base/error.h"
#include "cli/client/daemon.h"
#include "cli/neighbour.h"
#include "client/millibox.h"
#include <jansson.h>
#include <stdbool.h>

struct exec_call;

struct run_send {
	struct millibox_request *request;
	bool json;                    /* print the result */
	bool hints;                   /* name files that the program lacks */
	const char *no_network;       /* a hint for a program that lacks it; NULL: none */
	bool value;                   /* print the handler's value, after its output */
	bool lacks_input;             /* its standard input is empty: say so where it matters */
	struct neighbour_search near; /* for the hints; without an error */
	/* Return: exit status. One of @result and @problem is NULL. NULL: default. */
	int (*report)(void *ctx, const json_t *result, const json_t *problem);
	void *ctx;
};

/**
 * run_send - execute on the daemon at @at, or on an own one if none listens at the default socket.
 * @call is initialised. Return: exit status.
 */
int run_send(const struct run_send *run, const struct daemon_options *at, struct exec_call *call,
             struct error *err);
/** run_send_to - in @session; NULL: in a new box. Return: exit status. */
int run_send_to(const struct run_send *run, struct millibox_client *client,
                struct millibox_session *session, struct exec_call *call, struct error *err);
