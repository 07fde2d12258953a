/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "base/alloc.h"
#include "cli/message.h"
#include "cli/resource.h"
#include "cli/run_request.h"

struct create_options {
	struct run_options run;
	const char *id;
	const char *mode;
	const char *agent;
	uint64_t lifetime_us;
};

#define AT(member)     offsetof(struct create_options, member)
#define AT_RUN(member) AT(run.member)

static const struct resource_field fields[] = {
	{"mode", RESOURCE_TEXT, AT(mode), "mode", NULL},
	{"id", RESOURCE_TEXT, AT(id), "id", NULL},
	{"agent", RESOURCE_TEXT, AT(agent), "agent_id", NULL},
	{"language", RESOURCE_TEXT, AT(run.language), "language", NULL},
	{"lifetime", RESOURCE_SECONDS, AT(lifetime_us), "lifetime", NULL},
};

static int run_create(const void *values, const struct args *args attr_unused, struct error *err)
{
	struct create_options options = *(const struct create_options *)values;
	const struct common_options common = {options.run.at, options.run.json};
	json_auto_t *object = run_request_common(&options.run, err), *answer = NULL;
	cleanup_free char *body = NULL;
	struct api_call call = {.method = "POST", .path = "/api/v1/sessions"};
	int status;

	options.mode = options.mode ? options.mode : "persistent"; /* the API's is ephemeral */
	if (!object || resource_add_fields(object, fields, ARRAY_SIZE(fields), &options, err) < 0)
		return -1;
	call.body = body = api_body(object, err);
	status = body ? resource_call(&common, &call, &answer, err) : -1;
	if (answer) {
		message_print_safe(stdout, message_text(answer, "session_id"));
		(void)putchar('\n');
	}
	return status;
}

/* clang-format off */
static const struct option_row rows[] = {
	{"id",        0,   OPTION_TEXT,     AT(id),                 "ID",         "id of the session: letters, digits, '_', '-'"},
	{"mode",      0,   OPTION_TEXT,     AT(mode),               "MODE",       "persistent (default) or ephemeral"},
	{"language",  'l', OPTION_TEXT,     AT(run.language),       "LANGUAGE",   "default language: python or shell"},
	{"template",  0,   OPTION_TEXT,     AT(run.template_id),    "TEMPLATE",   "template of the box"},
	{"agent",     0,   OPTION_TEXT,     AT(agent),              "ID",         "reuse the idle session of this agent, if any"},
	{"timeout",   't', OPTION_DURATION, AT(run.timeout_us),     "TIME",       "terminate the session after it was idle for TIME"},
	{"lifetime",  0,   OPTION_DURATION, AT(lifetime_us),        "TIME",       "terminate the session at this age"},
	LIMIT_ROWS(AT_RUN),
	ENV_ROW(AT_RUN),
	POLICY_ROWS(AT_RUN),
	{"json",      0,   OPTION_FLAG,     AT(run.json),           NULL,         "print the session instead of its id"},
	ENDPOINT_ROWS(AT(run.at)),
};
/* clang-format on */

COMMAND(session_create, "session create", "", "Create a session and print its id", run_create, rows,
        struct create_options);
