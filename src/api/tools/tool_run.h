/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a call of a tool that runs a program, from its request to its result. */

#include "api/json/text_stream.h"
#include "api/tools/tool.h"
#include "core/run/run.h"

struct run;
struct run_record;
struct run_watch;
struct outcome;

struct tool_run {
	struct tool_call *call;
	/* One of both: without a session, or in one. */
	struct run *exec;
	struct run_record *execution;
	struct run_watch *watch;
	struct text_stream text[OUTPUT_COUNT];
	/* For the result. Owned. */
	char *language;
	char *working_dir; /* below the workspace; "": itself */
	json_t *packages;  /* that were asked for, and are there */
};

/* How it ended. Borrowed. */
struct tool_run_end {
	const struct outcome *outcome;
	const char *execution_id;
	const char *session_id; /* NULL: none */
	bool session_reset;
};

/** tool_run_free - what it waits for is left alone. */
void tool_run_free(struct tool_run *run);
/** tool_run_finish - the end of the call, and of @run. */
void tool_run_finish(struct tool_run *run, const struct tool_run_end *end);

/* tool_request.c: arguments to what core understands. */

/**
 * tool_run_request - @language: what the arguments do not say; NULL: it is guessed. Done by
 * run_request_done. @run gets what its result has to tell.
 */
int tool_run_request(struct tool_run *run, const char *language, struct run_request *ret_request,
                     struct error *err) attr_must_check;
