/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "cli/client/exec_call.h"
#include "cli/client/interrupt.h"
#include "cli/message.h"
#include "cli/resource.h"
#include "client/millibox.h"

/* Executions of sessions. The record of a 'run' is gone with its response. */

#define ID_MAX     64
#define LIST_LIMIT 50

struct execution_options {
	struct common_options common;
	const char *status;
	uint64_t limit;
	bool follow;
};

static const struct resource_column columns[] = {
	{"ID", "execution_id", NULL, 24},        {"STATUS", "status", NULL, 11},
	{"EXIT", "exit_code", NULL, 6},          {"LANGUAGE", "language", NULL, 10},
	{"SECONDS", "execution_time", NULL, 10}, {"BACKGROUND", "background", NULL, 11},
	{"CREATED", "created_at", NULL, 0},
};

static const struct resource executions = {
	.list = "executions",
	RESOURCE_COLUMNS(columns),
};

/* clang-format off */
static const struct resource_line shown[] = {
	{"execution_id"}, {"session_id"}, {"status"}, {"exit_code"}, {"signal"}, {"language"},
	{"created_at"}, {"started_at"}, {"completed_at"}, {"timeout"}, {"limit"}, {"result"},
	{"background"}, {"tty"}, {"error_message"}, {"execution_time"},
	{"metrics", .between = " "}, {"denials"}, {"artifacts", .member = "path"},
	{"session_reset"}, {"why"},
};
/* clang-format on */

static int run_list(const void *values, const struct args *args, struct error *err)
{
	const struct execution_options *options = values;
	cleanup_daemon struct millibox_client *client = daemon_open(&options->common.at);
	cleanup_session struct millibox_session *session = NULL;
	json_auto_t *answer = NULL;
	int status, r;

	if (args->words_count != 1)
		return error_set(err, ERR_INVALID, 0, "expected one session id");
	if (daemon_session(client, args->words[0], &session, err) < 0)
		return -1;
	r = millibox_execution_list(session, options->status,
	                            resource_limit(options->limit, LIST_LIMIT), NULL);
	status = resource_finish(&options->common, client, r, &answer, err);
	if (answer)
		resource_print_list(&executions, answer, true);
	if (json_is_true(json_object_get(answer, "has_more")))
		message_show("the list is incomplete; --limit shows up to 200");
	return status;
}

/* Return: 0, or -1 (ERR_INVALID): not the id of one execution. */
static int check_words(const struct args *args, struct error *err)
{
	if (args->words_count != 1)
		return error_set(err, ERR_INVALID, 0, "expected one execution id");
	if (!id_is_valid(args->words[0], ID_MAX))
		return error_set(err, ERR_INVALID, 0, "'%s' is not a valid execution id",
		                 args->words[0]);
	return 0;
}

static int run_show(const void *values, const struct args *args, struct error *err)
{
	const struct execution_options *options = values;
	cleanup_daemon struct millibox_client *client = daemon_open(&options->common.at);
	json_auto_t *answer = NULL;
	int status;

	if (check_words(args, err) < 0)
		return -1;
	status = resource_finish(&options->common, client,
	                         millibox_execution_info(client, args->words[0], NULL), &answer,
	                         err);
	if (answer)
		resource_print_object(answer, shown, ARRAY_SIZE(shown));
	return status;
}

/*
 * The latest execution of session @id. Return: 1 with its owned id, 0: the session has none, -1
 * with *err: no answer, or without: no session has this id.
 */
static int find_latest(struct millibox_client *client, const char *id, char **ret_latest,
                       struct error *err)
{
	cleanup_session struct millibox_session *session = NULL;
	json_auto_t *answer = NULL;
	const json_t *list;
	int status = 0, r;

	if (daemon_session(client, id, &session, err) < 0)
		return -1;
	r = millibox_execution_list(session, NULL, 1, NULL);
	if (daemon_answer(client, r, &answer, &status, err) < 0 || r < 0)
		return -1;
	list = json_object_get(answer, "executions");
	if (json_array_size(list) == 0)
		return 0;
	*ret_latest = xstrdup(message_text(json_array_get(list, 0), "execution_id"));
	return 1;
}

/* @call found no execution with this id: it may be that of a session. */
static int follow_latest(const struct execution_options *options, struct exec_call *call,
                         struct millibox_client *client, const char *id, struct error *err)
{
	int interrupt_fd = call->interrupt_fd;
	cleanup_free char *latest = NULL;
	int found = find_latest(client, id, &latest, err);

	if (found < 0)
		return error_is_set(err) ? -1 : 0;
	exec_call_done(call);
	exec_call_init(call, interrupt_fd, false);
	if (found > 0)
		return exec_call_follow(call, client, latest, options->follow, err);
	message_show("session %s has no executions yet", id);
	return 0;
}

static int follow(const struct execution_options *options, struct exec_call *call,
                  struct millibox_client *client, const char *id, struct error *err)
{
	int r = exec_call_follow(call, client, id, options->follow, err);

	if (r < 0 || !str_equal(message_text(call->problem, "error_code"),
	                        error_text(ERR_EXECUTION_NOT_FOUND)))
		return r;
	return follow_latest(options, call, client, id, err);
}

static int run_logs(const void *values, const struct args *args, struct error *err)
{
	const struct execution_options *options = values;
	cleanup_daemon struct millibox_client *client = daemon_open(&options->common.at);
	cleanup_close int interrupt_fd = -1;
	cleanup_exec_call struct exec_call call = {0};
	int signo;

	if (check_words(args, err) < 0)
		return -1;
	interrupt_fd = interrupt_open(err);
	if (interrupt_fd < 0 || daemon_require(client, err) < 0)
		return -1;
	exec_call_init(&call, interrupt_fd, false);
	if (follow(options, &call, client, args->words[0], err) < 0) {
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

static int run_cancel(const void *values, const struct args *args, struct error *err)
{
	const struct execution_options *options = values;
	cleanup_daemon struct millibox_client *client = daemon_open(&options->common.at);
	json_auto_t *answer = NULL;

	if (check_words(args, err) < 0)
		return -1;
	return resource_finish(&options->common, client,
	                       millibox_execution_cancel(client, args->words[0]), &answer, err);
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
#define LOGS_TEXT "Of a session: the output of its latest execution.\n"
COMMAND(execution_logs, "execution logs", "(EXECUTION | SESSION)",
        "Print the output of an execution so far", run_logs, logs_rows, struct execution_options,
        .text = LOGS_TEXT);
COMMAND(logs, "logs", "(SESSION | EXECUTION)",
        "Print the output of an execution so far; short for execution logs", run_logs, logs_rows,
        struct execution_options, .text = LOGS_TEXT);
COMMAND(cancel, "cancel", "EXECUTION", "Cancel an execution; short for execution cancel",
        run_cancel, resource_rows, struct execution_options);
COMMAND(execution_cancel, "execution cancel", "EXECUTION",
        "Cancel an execution; its session continues", run_cancel, resource_rows,
        struct execution_options);
