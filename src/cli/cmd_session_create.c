/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "base/alloc.h"
#include "base/clock.h"
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

static char *build_body(const struct create_options *o, struct error *err)
{
	json_auto_t *body = run_request_common(&o->run, err);
	const char *mode = o->mode ? o->mode : "persistent"; /* the API's default is ephemeral */

	if (!body || run_request_set(body, "mode", "mode", mode, err) < 0 ||
	    run_request_set(body, "id", "id", o->id, err) < 0 ||
	    run_request_set(body, "agent_id", "agent", o->agent, err) < 0 ||
	    run_request_set(body, "language", "language", o->run.language, err) < 0)
		return NULL;
	if (o->lifetime_us)
		(void)json_object_set_new(body, "lifetime",
		                          json_real((double)o->lifetime_us / USEC_PER_SEC));
	return api_body(body, err);
}

static int run(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct create_options *options = values;
	const struct common_options common = {options->run.at, options->run.json};
	cleanup_free char *body = build_body(options, err);
	const struct api_call call = {.method = "POST", .path = "/api/v1/sessions", .body = body};
	json_auto_t *answer = NULL;
	int status = body ? resource_call(&common, &call, &answer, err) : -1;
	const char *id = json_string_value(json_object_get(answer, "session_id"));

	if (answer) {
		message_print_safe(stdout, id ? id : "");
		(void)putchar('\n');
	}
	return status;
}

#define AT(member) offsetof(struct create_options, member)

/* A row is one option, however long its line. */
/* clang-format off */
static const struct option_row rows[] = {
	{"id",        0,   OPTION_TEXT,     AT(id),                 "ID",         "id of the session: letters, digits, '_', '-'"},
	{"mode",      0,   OPTION_TEXT,     AT(mode),               "MODE",       "persistent (default) or ephemeral"},
	{"language",  'l', OPTION_TEXT,     AT(run.language),       "LANGUAGE",   "default language: python or shell"},
	{"template",  0,   OPTION_TEXT,     AT(run.template_id),    "TEMPLATE",   "template of the box"},
	{"agent",     0,   OPTION_TEXT,     AT(agent),              "ID",         "reuse the idle session of this agent, if any"},
	{"timeout",   't', OPTION_DURATION, AT(run.timeout_us),     "TIME",       "terminate the session after it was idle for TIME"},
	{"lifetime",  0,   OPTION_DURATION, AT(lifetime_us),        "TIME",       "terminate the session at this age"},
	{"memory",    'm', OPTION_SIZE,     AT(run.memory_bytes),   "SIZE",       "memory limit: 512Mi, 1Gi"},
	{"cpu",       0,   OPTION_CPU,      AT(run.cpu_millicores), "CORES",      "CPU limit: 1, 0.5, 500m"},
	{"disk",      0,   OPTION_SIZE,     AT(run.disk_bytes),     "SIZE",       "disk limit: 256Mi"},
	{"processes", 0,   OPTION_NUMBER,   AT(run.processes),      "N",          "limit of processes and threads"},
	{"env",       'e', OPTION_LIST,     AT(run.env),            "NAME=VALUE", "set an environment variable; may be repeated"},
	{"policy",    0,   OPTION_TEXT,     AT(run.policy),         "NAME",       "apply this policy in addition to your own"},
	{"network",   0,   OPTION_TEXT,     AT(run.network),        "MODE",       "none, allowlist, bridge or host"},
	{"json",      0,   OPTION_FLAG,     AT(run.json),           NULL,         "print the session instead of its id"},
	ENDPOINT_ROWS(AT(run.at)),
};
/* clang-format on */

COMMAND(session_create, "session create", "", "Create a session and print its id", run, rows,
        struct create_options);
