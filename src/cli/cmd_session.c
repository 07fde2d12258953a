/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/message.h"
#include "cli/resource.h"

struct session_options {
	struct common_options common;
	const char *status;
	uint64_t limit;
};

/* Return: as resource_call. */
static int call_session(const struct session_options *options, const struct args *args,
                        const char *method, const char *suffix, json_t **ret_answer,
                        struct error *err)
{
	struct api_call call = {.method = method};
	cleanup_free char *path = NULL;

	if (args->words_count != 1)
		return error_set(err, ERR_INVALID, 0, "expected one session id");
	call.path = path = api_path(args->words[0], suffix, err);
	if (!str_equal(method, "GET"))
		call.body = "{}";
	return path ? resource_call(&options->common, &call, ret_answer, err) : -1;
}

struct change {
	const char *method, *suffix;
};

static int run_change(const void *values, const struct args *args, struct error *err)
{
	const struct change *change = args->data;
	json_auto_t *answer = NULL;

	return call_session(values, args, change->method, change->suffix, &answer, err);
}

static const struct resource_column columns[] = {
	{"ID", "session_id", NULL, 24},
	{"STATE", "state", NULL, 12},
	{"MODE", "mode", NULL, 12},
	{"LANGUAGE", "language", NULL, 10},
	{"LAST ACTIVITY", "last_activity_at", NULL, 0},
};

static const struct resource sessions = {
	.list = "sessions",
	RESOURCE_COLUMNS(columns),
};

static int run_list(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct session_options *options = values;
	unsigned long long limit = options->limit ? options->limit : 50;
	const char *state = options->status ? options->status : "";
	cleanup_free char *path = xasprintf("/api/v1/sessions?limit=%llu%s%s", limit,
	                                    options->status ? "&status=" : "", state);
	const struct api_call call = {.method = "GET", .path = path};
	json_auto_t *answer = NULL;
	int status;

	/* It becomes part of a query. */
	if (state[strspn(state, "abcdefghijklmnopqrstuvwxyz")] != '\0')
		return error_set(err, ERR_INVALID, 0, "--status: '%s' is not a session state",
		                 state);
	status = resource_call(&options->common, &call, &answer, err);
	if (answer)
		resource_print_list(&sessions, answer, true);
	if (json_is_true(json_object_get(answer, "has_more")))
		message_show("the list is incomplete; --limit shows up to 200");
	return status;
}

static const char *const shown_keys[] = {
	"session_id",   "state",      "mode",         "language",
	"agent_id",     "created_at", "updated_at",   "last_activity_at",
	"completed_at", "reason",     "timeout",      "lifetime",
	"executions",   "queued",     "container_id", "resources",
	"env_vars",     NULL,
};

static int run_show(const void *values, const struct args *args, struct error *err)
{
	json_auto_t *answer = NULL;
	int status = call_session(values, args, "GET", "", &answer, err);

	if (answer)
		resource_print_object(answer, shown_keys);
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
        .data = &(const struct change){"POST", "/interrupt"});
COMMAND(session_pause, "session pause", "SESSION",
        "Pause a session: freeze its processes and stop its timers", run_change, resource_rows,
        struct session_options, .data = &(const struct change){"POST", "/pause"});
COMMAND(session_resume, "session resume", "SESSION", "Resume a paused session", run_change,
        resource_rows, struct session_options, .data = &(const struct change){"POST", "/resume"});
COMMAND(session_terminate, "session terminate", "SESSION",
        "Terminate a session; its executions stay readable", run_change, resource_rows,
        struct session_options, .data = &(const struct change){"POST", "/terminate"});
COMMAND(session_delete, "session delete", "SESSION",
        "Terminate a session and delete it with its executions", run_change, resource_rows,
        struct session_options, .data = &(const struct change){"DELETE", ""});
