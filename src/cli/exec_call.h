/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one request that runs a program, and what came of it: output is passed on as it comes, and
 * the end becomes an exit status.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "cli/events.h"
#include <jansson.h>
#include <stdbool.h>

struct endpoint;
struct own_daemon;

struct exec_call {
	int interrupt_fd;
	bool json;   /* print the result, not the output */
	bool value;  /* print the value of the program behind its output */
	bool stream; /* the answer comes as events */
	/* Instead of what is said else: the result or the problem, one of them NULL. Return: the
	 * exit status. NULL: none. */
	int (*show)(void *ctx, const json_t *result, const json_t *problem);
	void *show_ctx;
	struct events events;
	struct buf body; /* an answer that is one object */
	json_t *result;  /* owned */
	json_t *problem; /* owned: an error object of the API */
	int failure;     /* why we stopped: negative errno of a write or of the stream, or 0 */
	char execution_id[64]; /* once the daemon has told it; "" before */
};

/* Whom to ask, and for what. All borrowed. */
struct exec_target {
	const struct endpoint *endpoint;
	const char *path;             /* "/api/v1/execute" */
	const struct own_daemon *own; /* NULL: the daemon is somebody else's */
};

/**
 * exec_call_init - @interrupt_fd as of interrupt_open. A result that is only printed comes in one
 * piece; the caller may set stream to be told the execution's id before it ends.
 */
void exec_call_init(struct exec_call *call, int interrupt_fd, bool json);
void exec_call_done(struct exec_call *call);
#define cleanup_exec_call attr_cleanup(exec_call_done)
/** exec_call_run - @body is JSON. Return: the exit status; *err as for a command. */
int exec_call_run(struct exec_call *call, const struct exec_target *target, const char *body,
                  struct error *err);
/** exec_call_explain - why it did not come to its end. Return: the exit status. */
int exec_call_explain(const struct exec_call *call, const struct own_daemon *own,
                      struct error *err);
