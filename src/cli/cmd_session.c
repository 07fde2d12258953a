/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/client/api_call.h"
#include "cli/common_options.h"
#include "cli/message.h"

/* What can be asked of sessions in one request and told in a few lines. */

#define STATUS_OK 200

struct session_options {
	const char *status;
	struct endpoint_options at;
	uint64_t limit;
	bool json;
};

/* Return: 0 with the answer; otherwise everything was said, or is in *err. */
static int ask(const struct session_options *options, const struct api_call *call,
               json_t **ret_answer, struct error *err)
{
	cleanup_endpoint struct endpoint endpoint = {0};
	json_t *answer = NULL;
	int status = 0;

	if (api_endpoint(&options->at, &endpoint, err) < 0)
		return err->code == ERR_INVALID ? CLI_USAGE : CLI_ERROR;
	if (api_call(&endpoint, call, &answer, &status, err) < 0)
		return CLI_ERROR;
	if (status == STATUS_OK) {
		*ret_answer = answer;
		return CLI_OK;
	}
	if (options->json)
		message_print_json(answer);
	else
		message_show_problem(answer);
	json_decref(answer);
	return CLI_ERROR;
}

static int one_word(const struct args *args, const char **ret_id, struct error *err)
{
	if (args->words_count != 1)
		return error_set(err, ERR_INVALID, 0, "give the id of one session");
	*ret_id = args->words[0];
	return 0;
}

/* Something is done to a session; silence is success. */
static int act(const void *values, const struct args *args, const char *method, const char *suffix,
               struct error *err)
{
	const struct session_options *options = values;
	struct api_call call = {.method = method, .body = "{}"};
	cleanup_free char *path = NULL;
	const char *id = NULL;
	json_t *answer = NULL;
	int status;

	if (one_word(args, &id, err) < 0)
		return CLI_USAGE;
	call.path = path = api_path(id, suffix, err);
	if (!path)
		return CLI_USAGE;
	status = ask(options, &call, &answer, err);
	if (answer && options->json)
		message_print_json(answer);
	json_decref(answer);
	return status;
}

static const char *member(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "-";
}

static void print_cell(const json_t *object, const char *key, int width)
{
	const char *text = member(object, key);

	message_print_safe(stdout, text);
	(void)printf("%*s", width > (int)strlen(text) ? width - (int)strlen(text) : 1, "");
}

static void print_list(const json_t *answer)
{
	const json_t *list = json_object_get(answer, "sessions");

	(void)printf("%-24s%-12s%-12s%-10s%s\n", "ID", "STATUS", "MODE", "LANGUAGE",
	             "LAST ACTIVITY");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *session = json_array_get(list, i);

		print_cell(session, "session_id", 24);
		print_cell(session, "status", 12);
		print_cell(session, "mode", 12);
		print_cell(session, "language", 10);
		message_print_safe(stdout, member(session, "last_activity_at"));
		(void)putchar('\n');
	}
	if (json_is_true(json_object_get(answer, "has_more")))
		message_show("there are more; --limit shows up to 200");
}

static int run_list(const void *values, const struct args *args, struct error *err)
{
	const struct session_options *options = values;
	unsigned long long limit = options->limit ? options->limit : 50;
	cleanup_free char *path = NULL;
	struct api_call call = {.method = "GET"};
	json_t *answer = NULL;
	int status;

	if (args->words_count > 0) {
		(void)error_set(err, ERR_INVALID, 0, "takes no arguments");
		return CLI_USAGE;
	}
	/* It goes into a query as it is. */
	if (options->status &&
	    options->status[strspn(options->status, "abcdefghijklmnopqrstuvwxyz")] != '\0') {
		(void)error_set(err, ERR_INVALID, 0, "--status: '%s' is no state of a session",
		                options->status);
		return CLI_USAGE;
	}
	call.path = path = xasprintf("/api/v1/sessions?limit=%llu%s%s", limit,
	                             options->status ? "&status=" : "",
	                             options->status ? options->status : "");
	status = ask(options, &call, &answer, err);
	if (answer && options->json)
		message_print_json(answer);
	else if (answer)
		print_list(answer);
	json_decref(answer);
	return status;
}

/* Lines "name: value"; what is nothing is left out. */
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
	const struct session_options *options = values;
	struct api_call call = {.method = "GET"};
	cleanup_free char *path = NULL;
	const char *id = NULL;
	json_t *answer = NULL;
	int status;

	if (one_word(args, &id, err) < 0)
		return CLI_USAGE;
	call.path = path = api_path(id, "", err);
	if (!path)
		return CLI_USAGE;
	status = ask(options, &call, &answer, err);
	if (answer && options->json)
		message_print_json(answer);
	else if (answer)
		print_session(answer);
	json_decref(answer);
	return status;
}

static int run_interrupt(const void *values, const struct args *args, struct error *err)
{
	return act(values, args, "POST", "/interrupt", err);
}

static int run_pause(const void *values, const struct args *args, struct error *err)
{
	return act(values, args, "POST", "/pause", err);
}

static int run_resume(const void *values, const struct args *args, struct error *err)
{
	return act(values, args, "POST", "/resume", err);
}

static int run_terminate(const void *values, const struct args *args, struct error *err)
{
	return act(values, args, "POST", "/terminate", err);
}

static int run_delete(const void *values, const struct args *args, struct error *err)
{
	return act(values, args, "DELETE", "", err);
}

#define AT(member) offsetof(struct session_options, member)

/* A row is one option, however long its line. */
/* clang-format off */
#define COMMON_ROWS \
	{"json",   0, OPTION_FLAG, AT(json),   NULL,   "print the daemon's answer as it is"}, \
	ENDPOINT_ROWS(AT(at))

static const struct option_row common_rows[] = {COMMON_ROWS};
static const struct option_row list_rows[] = {
	{"status", 's', OPTION_TEXT,   AT(status), "STATE", "only those in this state: ready, running, paused ..."},
	{"limit",  'n', OPTION_NUMBER, AT(limit),  "N",     "at most so many, up to 200; default 50"},
	COMMON_ROWS,
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
	.summary = "Tell about a session",
	.options = COMMON_OPTIONS,
	.values_size = sizeof(struct session_options),
	.run = run_show,
};

const struct command command_session_interrupt = {
	.name = "session interrupt",
	.arguments = "SESSION",
	.summary = "Interrupt what runs in a session, as Ctrl-C would; the session goes on",
	.options = COMMON_OPTIONS,
	.values_size = sizeof(struct session_options),
	.run = run_interrupt,
};

const struct command command_session_pause = {
	.name = "session pause",
	.arguments = "SESSION",
	.summary = "Freeze a session: nothing in it runs, and its time stands still",
	.options = COMMON_OPTIONS,
	.values_size = sizeof(struct session_options),
	.run = run_pause,
};

const struct command command_session_resume = {
	.name = "session resume",
	.arguments = "SESSION",
	.summary = "Let a frozen session go on",
	.options = COMMON_OPTIONS,
	.values_size = sizeof(struct session_options),
	.run = run_resume,
};

const struct command command_session_terminate = {
	.name = "session terminate",
	.arguments = "SESSION",
	.summary = "End a session; its executions stay readable",
	.options = COMMON_OPTIONS,
	.values_size = sizeof(struct session_options),
	.run = run_terminate,
};

const struct command command_session_delete = {
	.name = "session delete",
	.arguments = "SESSION",
	.summary = "End a session and forget it, executions included",
	.options = COMMON_OPTIONS,
	.values_size = sizeof(struct session_options),
	.run = run_delete,
};
