/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: one request that runs a program. Its output is copied to our streams while it runs. */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "cli/client/events.h"
#include <jansson.h>
#include <stdbool.h>

struct endpoint;

struct exec_call {
	int interrupt_fd;
	bool quiet;  /* do not copy the program's output */
	bool stream; /* request events, not one object */
	struct events events;
	struct buf body;       /* a response that is one object */
	json_t *result;        /* owned */
	json_t *problem;       /* owned: an error object of the API */
	int failure;           /* negative errno of a write or of the event parser; 0: none */
	char execution_id[64]; /* "" until the daemon has sent it */
};

/**
 * exec_call_init - @interrupt_fd is from interrupt_open. A quiet call requests one object; the
 * caller may set stream to learn the execution's id before it ends.
 */
void exec_call_init(struct exec_call *call, int interrupt_fd, bool quiet);
void exec_call_done(struct exec_call *call);
#define cleanup_exec_call attr_cleanup(exec_call_done)
/**
 * exec_call_run - POST @body (JSON) to @path. Return: 0 with call->result or call->problem set, or
 * -1: no complete response, see also exec_call_signal.
 */
int exec_call_run(struct exec_call *call, const struct endpoint *endpoint, const char *path,
                  const char *body, struct error *err) attr_must_check;
/** exec_call_signal - take the signal that interrupted it; SIGPIPE: our output closed; 0: none. */
int exec_call_signal(const struct exec_call *call);
