/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/message.h"
#include "cli/resource.h"

/* Session commands that are one request each. */

struct session_options {
	struct common_options common;
	const char *status;
	uint64_t limit;
};

/* One request about the session that @args names. Return: as resource_call. */
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

/* Prints nothing on success. */
static int change_session(const void *values, const struct args *args, const char *method,
                          const char *suffix, struct error *err)
{
	json_t *answer = NULL;
	int status = call_session(values, args, method, suffix, &answer, err);

	json_decref(answer);
	return status;
}

static void print_list(const json_t *answer)
{
	const json_t *list = json_object_get(answer, "sessions");

	(void)printf("%-24s%-12s%-12s%-10s%s\n", "ID", "STATUS", "MODE", "LANGUAGE",
	             "LAST ACTIVITY");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *session = json_array_get(list, i);

		resource_print_cell(session, "session_id", 24);
		resource_print_cell(session, "status", 12);
		resource_print_cell(session, "mode", 12);
		resource_print_cell(session, "language", 10);
		resource_print_cell(session, "last_activity_at", 0);
		(void)putchar('\n');
	}
	if (json_is_true(json_object_get(answer, "has_more")))
		message_show("the list is incomplete; --limit shows up to 200");
}

static int run_list(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct session_options *options = values;
	unsigned long long limit = options->limit ? options->limit : 50;
	const char *state = options->status ? options->status : "";
	cleanup_free char *path = xasprintf("/api/v1/sessions?limit=%llu%s%s", limit,
	                                    options->status ? "&status=" : "", state);
	const struct api_call call = {.method = "GET", .path = path};
	json_t *answer = NULL;
	int status;

	/* The state becomes part of a query. */
	if (state[strspn(state, "abcdefghijklmnopqrstuvwxyz")] != '\0')
		return error_set(err, ERR_INVALID, 0, "--status: '%s' is not a session state",
		                 state);
	status = resource_call(&options->common, &call, &answer, err);
	if (answer)
		print_list(answer);
	json_decref(answer);
	return status;
}

/* Prints lines "name value" without null values. */
static void print_session(const json_t *session)
{
	static const char *const keys[] = {
		"session_id",   "status",     "mode",         "language",
		"agent_id",     "created_at", "updated_at",   "last_activity_at",
		"completed_at", "reason",     "timeout",      "lifetime",
		"executions",   "queued",     "container_id", "resources",
		"env_vars",
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const json_t *value = json_object_get(session, keys[i]);
		char *text = json_is_string(value) ? xstrdup(json_string_value(value))
		                                   : json_dumps(value, JSON_ENCODE_ANY);

		if (text && !json_is_null(value)) {
			(void)printf("%-18s", keys[i]);
			message_print_safe(stdout, text);
			(void)putchar('\n');
		}
		free(text);
	}
}

static int run_show(const void *values, const struct args *args, struct error *err)
{
	json_t *answer = NULL;
	int status = call_session(values, args, "GET", "", &answer, err);

	if (answer)
		print_session(answer);
	json_decref(answer);
	return status;
}

static int run_interrupt(const void *values, const struct args *args, struct error *err)
{
	return change_session(values, args, "POST", "/interrupt", err);
}

static int run_pause(const void *values, const struct args *args, struct error *err)
{
	return change_session(values, args, "POST", "/pause", err);
}

static int run_resume(const void *values, const struct args *args, struct error *err)
{
	return change_session(values, args, "POST", "/resume", err);
}

static int run_terminate(const void *values, const struct args *args, struct error *err)
{
	return change_session(values, args, "POST", "/terminate", err);
}

static int run_delete(const void *values, const struct args *args, struct error *err)
{
	return change_session(values, args, "DELETE", "", err);
}

#define AT(member) offsetof(struct session_options, member)

/* A row is one option, however long its line. */
/* clang-format off */
static const struct option_row common_rows[] = {COMMON_ROWS(AT(common))};
static const struct option_row list_rows[] = {
	{"status", 's', OPTION_TEXT,   AT(status), "STATE", "only sessions in this state: ready, running, paused ..."},
	{"limit",  'n', OPTION_NUMBER, AT(limit),  "N",     "list at most N, up to 200; default: 50"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

#define COMMON_OPTIONS                                                                             \
	{                                                                                          \
		common_rows, ARRAY_SIZE(common_rows)                                               \
	}

const struct command command_session_list = {
	.name = "session list",
	.arguments = "",
	.summary = "List sessions, newest first",
	.options = {list_rows, ARRAY_SIZE(list_rows)},
	.values_size = sizeof(struct session_options),
	.run = run_list,
};

const struct command command_session_show = {
	.name = "session show",
	.arguments = "SESSION",
	.summary = "Show a session",
	.options = COMMON_OPTIONS,
	.values_size = sizeof(struct session_options),
	.run = run_show,
};

const struct command command_session_interrupt = {
	.name = "session interrupt",
	.arguments = "SESSION",
	.summary = "Interrupt the running execution, as Ctrl-C would; the session continues",
	.options = COMMON_OPTIONS,
	.values_size = sizeof(struct session_options),
	.run = run_interrupt,
};

const struct command command_session_pause = {
	.name = "session pause",
	.arguments = "SESSION",
	.summary = "Pause a session: freeze its processes and stop its timers",
	.options = COMMON_OPTIONS,
	.values_size = sizeof(struct session_options),
	.run = run_pause,
};

const struct command command_session_resume = {
	.name = "session resume",
	.arguments = "SESSION",
	.summary = "Resume a paused session",
	.options = COMMON_OPTIONS,
	.values_size = sizeof(struct session_options),
	.run = run_resume,
};

const struct command command_session_terminate = {
	.name = "session terminate",
	.arguments = "SESSION",
	.summary = "Terminate a session; its executions stay readable",
	.options = COMMON_OPTIONS,
	.values_size = sizeof(struct session_options),
	.run = run_terminate,
};

const struct command command_session_delete = {
	.name = "session delete",
	.arguments = "SESSION",
	.summary = "Terminate a session and delete it with its executions",
	.options = COMMON_OPTIONS,
	.values_size = sizeof(struct session_options),
	.run = run_delete,
};
