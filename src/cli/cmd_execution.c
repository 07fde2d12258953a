/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "cli/client/exec_call.h"
#include "cli/client/interrupt.h"
#include "cli/message.h"
#include "cli/resource.h"

/* Executions of sessions. The record of a 'run' is gone with its response. */

struct execution_options {
	struct common_options common;
	const char *status;
	uint64_t limit;
	bool follow;
};

static const struct resource_column columns[] = {
	{"ID", "execution_id", NULL, 24},        {"STATUS", "status", NULL, 11},
	{"EXIT", "exit_code", NULL, 6},          {"LANGUAGE", "language", NULL, 10},
	{"SECONDS", "execution_time", NULL, 10}, {"CREATED", "created_at", NULL, 0},
};

static const struct resource executions = {
	.base = "/api/v1/executions",
	.what = "execution id",
	.list = "executions",
	RESOURCE_COLUMNS(columns),
};

static const char *const shown_keys[] = {
	"execution_id",  "session_id",     "status",     "exit_code",
	"signal",        "language",       "created_at", "started_at",
	"completed_at",  "timeout",        "limit",      "result",
	"error_message", "execution_time", "metrics",    "denials",
	"artifacts",     "session_reset",  NULL,
};

static int run_list(const void *values, const struct args *args, struct error *err)
{
	const struct execution_options *options = values;
	cleanup_free char *escaped = options->status ? api_escape(options->status) : NULL;
	cleanup_free char *suffix =
		xasprintf("/executions?limit=%llu%s%s",
	                  (unsigned long long)(options->limit ? options->limit : 50),
	                  escaped ? "&status=" : "", escaped ? escaped : "");
	cleanup_free char *path = NULL;
	struct api_call call = {.method = "GET"};
	json_auto_t *answer = NULL;
	int status;

	if (args->words_count != 1)
		return error_set(err, ERR_INVALID, 0, "expected one session id");
	call.path = path = api_path(args->words[0], suffix, err);
	status = path ? resource_call(&options->common, &call, &answer, err) : -1;
	if (answer)
		resource_print_list(&executions, answer, true);
	if (json_is_true(json_object_get(answer, "has_more")))
		message_show("the list is incomplete; --limit shows up to 200");
	return status;
}

static int run_show(const void *values, const struct args *args, struct error *err)
{
	json_auto_t *answer = NULL;
	int status = resource_show(&executions, values, args, &answer, err);

	if (answer)
		resource_print_object(answer, shown_keys);
	return status;
}

static int copy_output(const struct execution_options *options, const char *path, struct error *err)
{
	cleanup_close int interrupt_fd = interrupt_open(err);
	cleanup_endpoint struct endpoint endpoint = {0};
	cleanup_exec_call struct exec_call call = {0};
	int signo;

	if (interrupt_fd < 0 || api_endpoint(&options->common.at, &endpoint, err) < 0)
		return -1;
	exec_call_init(&call, interrupt_fd, false);
	call.partial = !options->follow;
	if (exec_call_run(&call, &endpoint, path, NULL, err) < 0) {
		signo = exec_call_signal(&call);
		if (signo == 0)
			return CLI_ERROR;
		error_clear(err);
		return CLI_SIGNAL + signo;
	}
	if (!call.problem)
		return CLI_OK;
	message_show_problem(call.problem);
	return exit_status_of_problem(call.problem);
}

static int run_logs(const void *values, const struct args *args, struct error *err)
{
	const struct execution_options *options = values;
	cleanup_free char *path = NULL;

	if (args->words_count != 1)
		return error_set(err, ERR_INVALID, 0, "expected one execution id");
	path = resource_path(&executions, args->words[0],
	                     options->follow ? "/events" : "/events?follow=false", err);
	return path ? copy_output(options, path, err) : -1;
}

static int run_cancel(const void *values, const struct args *args, struct error *err)
{
	const struct execution_options *options = values;
	cleanup_free char *path = NULL;
	struct api_call call = {.method = "POST", .body = "{}"};
	json_auto_t *answer = NULL;

	if (args->words_count != 1)
		return error_set(err, ERR_INVALID, 0, "expected one execution id");
	call.path = path = resource_path(&executions, args->words[0], "/cancel", err);
	return path ? resource_call(&options->common, &call, &answer, err) : -1;
}

#define AT(member) offsetof(struct execution_options, member)

/* clang-format off */
static const struct option_row list_rows[] = {
	{"status", 's', OPTION_TEXT,   AT(status), "STATUS", "only executions with this status: running, success, failed ..."},
	{"limit",  'n', OPTION_NUMBER, AT(limit),  "N",      "list at most N, up to 200; default: 50"},
	COMMON_ROWS(AT(common)),
};
static const struct option_row logs_rows[] = {
	{"follow", 'f', OPTION_FLAG, AT(follow), NULL, "continue until the execution ends"},
	ENDPOINT_ROWS(AT(common.at)),
};
/* clang-format on */

COMMAND(execution_list, "execution list", "SESSION", "List executions of a session, newest first",
        run_list, list_rows, struct execution_options);
COMMAND(execution_show, "execution show", "EXECUTION", "Show an execution", run_show, resource_rows,
        struct execution_options, .text = "--json adds the program and its output.\n");
COMMAND(execution_logs, "execution logs", "EXECUTION", "Print the output of an execution so far",
        run_logs, logs_rows, struct execution_options);
COMMAND(execution_cancel, "execution cancel", "EXECUTION",
        "Cancel an execution; its session continues", run_cancel, resource_rows,
        struct execution_options);
