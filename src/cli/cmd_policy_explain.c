/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <string.h>

#include "base/alloc.h"
#include "cli/client/api_call.h"
#include "cli/common_options.h"
#include "cli/message.h"
#include "cli/resource.h"
#include "cli/run_request.h"
#include "http/status.h"

struct explain_options {
	struct run_options run;
	const char *mode;
	uint64_t lifetime_us;
	bool session;
};

#define AT(member)     offsetof(struct explain_options, member)
#define AT_RUN(member) AT(run.member)

static const struct resource_field fields[] = {
	{"lifetime", RESOURCE_SECONDS, AT(lifetime_us), "lifetime", NULL},
	{"language", RESOURCE_TEXT, AT(run.language), "language", NULL},
	{"mode", RESOURCE_TEXT, AT(mode), "mode", NULL},
};

/* Return: owned, or NULL with *err. */
static char *build_body(const struct explain_options *options, struct error *err)
{
	struct explain_options o = *options;
	json_auto_t *body = NULL;

	if (!o.session && (o.mode || o.lifetime_us)) {
		(void)error_set(err, ERR_INVALID, 0, "--mode and --lifetime require --session");
		return NULL;
	}
	if (!o.run.language && !o.session)
		o.run.language = "python";
	if (!o.mode && o.session)
		o.mode = "persistent";
	body = run_request_common(&o.run, err);
	if (!body || resource_add_fields(body, fields, ARRAY_SIZE(fields), &o, err) < 0)
		return NULL;
	(void)json_object_set_new(body, "kind", json_string(o.session ? "session" : "execute"));
	return api_body(body, err);
}

/* Strings without quotes, else JSON. */
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

static int run_explain(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct explain_options *options = values;
	cleanup_endpoint struct endpoint endpoint = {0};
	cleanup_free char *body = build_body(options, err);
	const struct api_call call = {
		.method = "POST", .path = "/api/v1/policy/explain", .body = body};
	json_auto_t *answer = NULL;
	bool allowed;
	int status = 0;

	if (!body || api_endpoint(&options->run.at, &endpoint, err) < 0 ||
	    api_call(&endpoint, &call, &answer, &status, err) < 0)
		return -1;
	allowed = json_is_true(json_object_get(answer, "allowed"));
	if (status != HTTP_OK)
		message_show_problem(answer);
	else if (options->run.json)
		message_print_json(answer);
	else if (allowed)
		print_grants(json_object_get(answer, "grants"));
	else
		message_show_problem(json_object_get(answer, "refusal"));
	if (status != HTTP_OK)
		return exit_status_of_problem(answer);
	return allowed ? CLI_OK : CLI_FAILED;
}

/* clang-format off */
static const struct option_row rows[] = {
	{"session",    0,   OPTION_FLAG,     AT(session),            NULL,         "explain a session instead of an execution"},
	{"mode",       0,   OPTION_TEXT,     AT(mode),               "MODE",       "mode of the session: persistent (default) or ephemeral"},
	{"lifetime",   0,   OPTION_DURATION, AT(lifetime_us),        "TIME",       "lifetime of the session"},
	POLICY_ROWS(AT_RUN),
	{"language",   'l', OPTION_TEXT,     AT(run.language),       "LANGUAGE",   "python (default) or shell"},
	{"timeout",    't', OPTION_DURATION, AT(run.timeout_us),     "TIME",       "time limit; idle time-out of a session"},
	LIMIT_ROWS(AT_RUN),
	OUTPUT_ROW(AT_RUN),
	ENV_ROW(AT_RUN),
	{"json",       0,   OPTION_FLAG,     AT(run.json),           NULL,         "print the daemon's response as JSON"},
	ENDPOINT_ROWS(AT(run.at)),
};
/* clang-format on */

COMMAND(policy_explain, "policy explain", "",
        "Explain what a request would be granted, and by which rule", run_explain, rows,
        struct explain_options,
        .text = "Nothing is run or created. The exit status is 0 if the request would be granted, "
                "1 if it\nwould be refused.\n");
