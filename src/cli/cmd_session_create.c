/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/client/api_call.h"
#include "cli/common_options.h"
#include "cli/message.h"
#include "cli/run_request.h"

struct create_options {
	struct run_options run; /* what an execution may ask for, too */
	const char *id;
	const char *mode;
	const char *agent;
	uint64_t lifetime_us;
};

/* NULL is left out. */
static int set_text(json_t *body, const char *key, const char *text, struct error *err)
{
	if (text && json_object_set_new(body, key, json_string(text)) < 0)
		return error_set(err, ERR_INVALID, 0, "--%s: not UTF-8 text", key);
	return 0;
}

static char *build(const struct create_options *o, struct error *err)
{
	json_t *body = run_request_common(&o->run, err);
	char *text = NULL;

	if (!body)
		return NULL;
	/* Who types commands one by one means to find things as they were left. */
	if (set_text(body, "mode", o->mode ? o->mode : "persistent", err) == 0 &&
	    set_text(body, "id", o->id, err) == 0 &&
	    set_text(body, "agent_id", o->agent, err) == 0 &&
	    set_text(body, "language", o->run.language, err) == 0) {
		if (o->lifetime_us)
			(void)json_object_set_new(body, "lifetime",
			                          json_real((double)o->lifetime_us / USEC_PER_SEC));
		text = json_dumps(body, JSON_COMPACT);
		if (!text)
			(void)error_set(err, ERR_SYSTEM, ENOMEM, "make the request");
	}
	json_decref(body);
	return text;
}

static void print_id(const json_t *answer)
{
	const char *id = json_string_value(json_object_get(answer, "session_id"));

	message_print_safe(stdout, id ? id : "");
	(void)putchar('\n');
}

static int run(const void *values, const struct args *args, struct error *err)
{
	const struct create_options *options = values;
	cleanup_endpoint struct endpoint endpoint = {0};
	cleanup_free char *body = NULL;
	struct api_call call = {.method = "POST", .path = "/api/v1/sessions"};
	json_t *answer = NULL;
	int status = 0;

	if (args->words_count > 0) {
		(void)error_set(err, ERR_INVALID, 0, "takes no arguments");
		return CLI_USAGE;
	}
	call.body = body = build(options, err);
	if (!body || api_endpoint(&options->run.at, &endpoint, err) < 0)
		return err->code == ERR_INVALID ? CLI_USAGE : CLI_ERROR;
	if (api_call(&endpoint, &call, &answer, &status, err) < 0)
		return CLI_ERROR;
	if (options->run.json)
		message_print_json(answer);
	else if (status >= 300)
		message_show_problem(answer);
	else
		print_id(answer);
	json_decref(answer);
	return status >= 300 ? CLI_ERROR : CLI_OK;
}

#define AT(member) offsetof(struct create_options, member)

/* A row is one option, however long its line. */
/* clang-format off */
static const struct option_row rows[] = {
	{"id",        0,   OPTION_TEXT,     AT(id),                 "ID",         "an id of your choice: letters, digits, '_', '-'"},
	{"mode",      0,   OPTION_TEXT,     AT(mode),               "MODE",       "persistent (the default) or ephemeral"},
	{"language",  'l', OPTION_TEXT,     AT(run.language),       "LANGUAGE",   "of executions that say none: python or shell"},
	{"template",  0,   OPTION_TEXT,     AT(run.template_id),    "TEMPLATE",   "what its box is made of"},
	{"agent",     0,   OPTION_TEXT,     AT(agent),              "ID",         "take the idle session of this agent, if there is one"},
	{"timeout",   't', OPTION_DURATION, AT(run.timeout_us),     "TIME",       "end the session when nobody uses it for so long"},
	{"lifetime",  0,   OPTION_DURATION, AT(lifetime_us),        "TIME",       "end the session when it is so old"},
	{"memory",    'm', OPTION_SIZE,     AT(run.memory_bytes),   "SIZE",       "memory limit: 512Mi, 1Gi"},
	{"cpu",       0,   OPTION_CPU,      AT(run.cpu_millicores), "CORES",      "processor share: 1, 0.5, 500m"},
	{"disk",      0,   OPTION_SIZE,     AT(run.disk_bytes),     "SIZE",       "room for files: 256Mi"},
	{"processes", 0,   OPTION_NUMBER,   AT(run.processes),      "N",          "processes and threads alive at a time"},
	{"env",       'e', OPTION_LIST,     AT(run.env),            "NAME=VALUE", "set an environment variable; may be repeated"},
	{"policy",    0,   OPTION_TEXT,     AT(run.policy),         "NAME",       "a policy to be held to besides one's own"},
	{"network",   0,   OPTION_TEXT,     AT(run.network),        "MODE",       "none, allowlist, bridge or host, as the policy allows"},
	{"json",      0,   OPTION_FLAG,     AT(run.json),           NULL,         "print the session instead of its id"},
	ENDPOINT_ROWS(AT(run.at)),
};
/* clang-format on */

const struct command command_session_create = {
	.name = "session create",
	.arguments = "",
	.summary = "Make a session and print its id",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct create_options),
	.run = run,
};
