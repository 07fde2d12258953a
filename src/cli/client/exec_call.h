/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: one request that runs a program and copies its output to our streams. */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "cli/client/events.h"
#include <jansson.h>
#include <stdbool.h>

struct endpoint;

struct exec_call {
	int interrupt_fd;
	bool quiet;   /* do not copy output */
	bool stream;  /* request events, not one object */
	bool partial; /* the stream may end before the program does */
	bool values;  /* print the text of results, such as the last expression's */
	bool in_line; /* stdout is not at the start of a line */
	struct events events;
	struct buf body;       /* for a single object */
	json_t *result;        /* owned */
	json_t *problem;       /* owned: the API's error object */
	int failure;           /* negative errno of write or parser; 0: none */
	char execution_id[64]; /* "": not received */
};

/**
 * exec_call_init - @interrupt_fd is from interrupt_open. A quiet call requests one object; set
 * stream to learn the execution's id early.
 */
void exec_call_init(struct exec_call *call, int interrupt_fd, bool quiet);
void exec_call_done(struct exec_call *call);
#define cleanup_exec_call attr_cleanup(exec_call_done)
/**
 * exec_call_run - POST JSON; GET if @body is NULL. Return: 0 with result or problem set, or -1: no
 * complete response, see exec_call_signal.
 */
int exec_call_run(struct exec_call *call, const struct endpoint *endpoint, const char *path,
                  const char *body, struct error *err) attr_must_check;
/** exec_call_signal - take the interrupting signal; SIGPIPE: our output closed; 0: none. */
int exec_call_signal(const struct exec_call *call);
