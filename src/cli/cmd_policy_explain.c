/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/client/api_call.h"
#include "cli/common_options.h"
#include "cli/message.h"
#include "cli/run_request.h"

#define STATUS_OK 200

struct explain_options {
	struct run_options run;
	const char *mode;
	uint64_t lifetime_us;
	bool session;
};

static int set_text(json_t *body, const char *key, const char *text, struct error *err)
{
	if (text && json_object_set_new(body, key, json_string(text)) < 0)
		return error_set(err, ERR_INVALID, 0, "--%s: not UTF-8 text", key);
	return 0;
}

static int fill(json_t *body, const struct explain_options *o, struct error *err)
{
	const char *language = o->run.language;

	if (!o->session && (o->mode || o->lifetime_us))
		return error_set(err, ERR_INVALID, 0, "--mode and --lifetime are for --session");
	if (!language && !o->session)
		language = "python";
	if (o->lifetime_us)
		(void)json_object_set_new(body, "lifetime",
		                          json_real((double)o->lifetime_us / USEC_PER_SEC));
	if (set_text(body, "kind", o->session ? "session" : "execute", err) < 0 ||
	    set_text(body, "language", language, err) < 0)
		return -1;
	return o->session ? set_text(body, "mode", o->mode ? o->mode : "persistent", err) : 0;
}

static char *build(const struct explain_options *o, struct error *err)
{
	json_t *body = run_request_common(&o->run, err);
	char *text = NULL;

	if (body && fill(body, o, err) == 0) {
		text = json_dumps(body, JSON_COMPACT);
		if (!text)
			(void)error_set(err, ERR_SYSTEM, ENOMEM, "make the request");
	}
	json_decref(body);
	return text;
}

/* Numbers and lists as JSON has them, words without quotes. */
static void print_value(const json_t *value, int width)
{
	cleanup_free char *dump = json_is_string(value) || json_is_null(value)
	                                  ? NULL
	                                  : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT |
	                                                              JSON_REAL_PRECISION(12));
	const char *text = json_is_string(value) ? json_string_value(value) : dump ? dump : "-";
	int len = (int)strlen(text);

	message_print_safe(stdout, text);
	(void)printf("%*s", width > len ? width - len : 1, "");
}

static void print_grant(const char *name, const json_t *grant)
{
	const char *rule =
		json_string_value(json_object_get(json_object_get(grant, "rule"), "text"));

	(void)printf("%-16s", name);
	print_value(json_object_get(grant, "requested"), 14);
	print_value(json_object_get(grant, "granted"), 14);
	message_print_safe(stdout, rule ? rule : "-");
	(void)putchar('\n');
}

static void print_grants(const json_t *grants)
{
	json_t *limits = json_object_get(grants, "limits");
	const char *const words[] = {"language", "network", "on_overflow", "isolation"};
	const char *name;
	json_t *grant;

	(void)printf("%-16s%-14s%-14s%s\n", "WHAT", "REQUESTED", "GRANTED", "RULE");
	json_object_foreach (limits, name, grant)
		print_grant(name, grant);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		print_grant(words[i], json_object_get(grants, words[i]));
}

static int show(const json_t *answer, bool json)
{
	bool allowed = json_is_true(json_object_get(answer, "allowed"));

	if (json)
		message_print_json(answer);
	else if (allowed)
		print_grants(json_object_get(answer, "grants"));
	else
		message_show_problem(json_object_get(answer, "refusal"));
	return allowed ? CLI_OK : CLI_FAILED;
}

static int run(const void *values, const struct args *args, struct error *err)
{
	const struct explain_options *options = values;
	cleanup_endpoint struct endpoint endpoint = {0};
	cleanup_free char *body = NULL;
	struct api_call call = {.method = "POST", .path = "/api/v1/policy/explain"};
	json_t *answer = NULL;
	int status = 0;
	int result = CLI_ERROR;

	if (args->words_count > 0) {
		(void)error_set(err, ERR_INVALID, 0, "takes no arguments");
		return CLI_USAGE;
	}
	call.body = body = build(options, err);
	if (!body || api_endpoint(&options->run.at, &endpoint, err) < 0)
		return err->code == ERR_INVALID ? CLI_USAGE : CLI_ERROR;
	if (api_call(&endpoint, &call, &answer, &status, err) < 0)
		return CLI_ERROR;
	if (status == STATUS_OK)
		result = show(answer, options->run.json);
	else
		message_show_problem(answer);
	json_decref(answer);
	return result;
}

#define AT(member) offsetof(struct explain_options, member)

/* A row is one option, however long its line. */
/* clang-format off */
static const struct option_row rows[] = {
	{"session",    0,   OPTION_FLAG,     AT(session),            NULL,         "ask about a session instead of an execution"},
	{"mode",       0,   OPTION_TEXT,     AT(mode),               "MODE",       "of the session: persistent (the default) or ephemeral"},
	{"lifetime",   0,   OPTION_DURATION, AT(lifetime_us),        "TIME",       "of the session"},
	{"policy",     0,   OPTION_TEXT,     AT(run.policy),         "NAME",       "a policy to be held to besides one's own"},
	{"network",    0,   OPTION_TEXT,     AT(run.network),        "MODE",       "none, allowlist, bridge or host"},
	{"language",   'l', OPTION_TEXT,     AT(run.language),       "LANGUAGE",   "python (the default) or shell"},
	{"timeout",    't', OPTION_DURATION, AT(run.timeout_us),     "TIME",       "time limit; of a session its idle time"},
	{"memory",     'm', OPTION_SIZE,     AT(run.memory_bytes),   "SIZE",       "memory limit: 512Mi, 1Gi"},
	{"cpu",        0,   OPTION_CPU,      AT(run.cpu_millicores), "CORES",      "processor share: 1, 0.5, 500m"},
	{"disk",       0,   OPTION_SIZE,     AT(run.disk_bytes),     "SIZE",       "room for files: 256Mi"},
	{"processes",  0,   OPTION_NUMBER,   AT(run.processes),      "N",          "processes and threads alive at a time"},
	{"max-output", 0,   OPTION_SIZE,     AT(run.output_bytes),   "SIZE",       "kept output of each stream: 1Mi"},
	{"env",        'e', OPTION_LIST,     AT(run.env),            "NAME=VALUE", "an environment variable; may be repeated"},
	{"json",       0,   OPTION_FLAG,     AT(run.json),           NULL,         "print the daemon's answer"},
	ENDPOINT_ROWS(AT(run.at)),
};
/* clang-format on */

const struct command command_policy_explain = {
	.name = "policy explain",
	.arguments = "",
	.summary = "Tell what a request would get, and which rule decides",
	.text = "Nothing is run or made. The exit status is 0 when the request would be served, 1 "
		"when it\nwould be refused.\n",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct explain_options),
	.run = run,
};
