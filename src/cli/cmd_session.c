/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <string.h>

#include "cli/message.h"
#include "cli/resource.h"
#include "client/millibox.h"

#define LIST_LIMIT 50

struct session_options {
	struct common_options common;
	const char *status;
	uint64_t limit;
};

struct change {
	int (*make)(struct millibox_session *session);
};

static int run_change(const void *values, const struct args *args, struct error *err)
{
	const struct session_options *options = values;
	const struct change *change = args->data;
	cleanup_daemon struct millibox_client *client = daemon_open(&options->common.at);
	cleanup_session struct millibox_session *session = NULL;
	json_auto_t *answer = NULL;

	if (args->words_count != 1)
		return error_set(err, ERR_INVALID, 0, "expected one session id");
	if (daemon_session(client, args->words[0], &session, err) < 0)
		return -1;
	return resource_finish(&options->common, client, change->make(session), &answer, err);
}

static const struct resource_column columns[] = {
	{"ID", "session_id", NULL, 24},
	{"STATE", "state", NULL, 12},
	{"MODE", "mode", NULL, 12},
	{"LANGUAGE", "language", NULL, 12},
	{"BACKGROUND", "background", NULL, 12},
	{"LAST ACTIVITY", "last_activity_at", NULL, 0},
};

static const struct resource sessions = {
	.list = "sessions",
	RESOURCE_COLUMNS(columns),
};

static int run_list(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct session_options *options = values;
	const char *state = options->status ? options->status : "";
	cleanup_daemon struct millibox_client *client = daemon_open(&options->common.at);
	json_auto_t *answer = NULL;
	int status, r;

	/* It becomes part of a query. */
	if (state[strspn(state, "abcdefghijklmnopqrstuvwxyz")] != '\0')
		return error_set(err, ERR_INVALID, 0, "--status: '%s' is not a session state",
		                 state);
	r = millibox_session_list(client, options->status,
	                          resource_limit(options->limit, LIST_LIMIT), NULL);
	status = resource_finish(&options->common, client, r, &answer, err);
	if (answer)
		resource_print_list(&sessions, answer, true);
	if (json_is_true(json_object_get(answer, "has_more")))
		message_show("the list is incomplete; --limit shows up to 200");
	return status;
}

/* clang-format off */
static const struct resource_line shown[] = {
	{"session_id"}, {"state"}, {"mode"}, {"language"}, {"agent_id"}, {"created_at"},
	{"updated_at"}, {"last_activity_at"}, {"completed_at"}, {"reason"}, {"timeout"},
	{"lifetime"}, {"executions"}, {"queued"}, {"container_id"},
	{"resources", .between = " "}, {"env_vars", .between = "="},
};
/* clang-format on */

static int run_show(const void *values, const struct args *args, struct error *err)
{
	const struct session_options *options = values;
	cleanup_daemon struct millibox_client *client = daemon_open(&options->common.at);
	cleanup_session struct millibox_session *session = NULL;
	json_auto_t *answer = NULL;
	int status;

	if (args->words_count != 1)
		return error_set(err, ERR_INVALID, 0, "expected one session id");
	if (daemon_check_id(args->words[0], err) < 0)
		return -1;
	status = resource_finish(&options->common, client,
	                         millibox_session_attach(client, args->words[0], &session), &answer,
	                         err);
	if (answer)
		resource_print_object(answer, shown, ARRAY_SIZE(shown));
	return status;
}

#define AT(member) offsetof(struct session_options, member)

/* clang-format off */
static const struct option_row list_rows[] = {
	{"status", 's', OPTION_TEXT,   AT(status), "STATE", "only sessions in this state: ready, running, paused ..."},
	{"limit",  'n', OPTION_NUMBER, AT(limit),  "N",     "list at most N, up to 200; default: 50"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(session_list, "session list", "", "List sessions, newest first", run_list, list_rows,
        struct session_options);
COMMAND(session_show, "session show", "SESSION", "Show a session", run_show, resource_rows,
        struct session_options);
COMMAND(session_interrupt, "session interrupt", "SESSION",
        "Interrupt the running execution, as Ctrl-C would; the session continues", run_change,
        resource_rows, struct session_options,
        .data = &(const struct change){millibox_session_interrupt});
COMMAND(session_pause, "session pause", "SESSION",
        "Pause a session: freeze its processes and stop its timers", run_change, resource_rows,
        struct session_options, .data = &(const struct change){millibox_session_pause});
COMMAND(session_resume, "session resume", "SESSION", "Resume a paused session", run_change,
        resource_rows, struct session_options,
        .data = &(const struct change){millibox_session_resume});
COMMAND(session_terminate, "session terminate", "SESSION",
        "Terminate a session; its executions stay readable", run_change, resource_rows,
        struct session_options, .data = &(const struct change){millibox_session_terminate});
COMMAND(session_delete, "session delete", "SESSION",
        "Terminate a session and delete it with its executions", run_change, resource_rows,
        struct session_options, .data = &(const struct change){millibox_session_delete});
