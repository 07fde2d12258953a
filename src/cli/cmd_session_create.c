/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "cli/message.h"
#include "cli/package.h"
#include "cli/resource.h"
#include "cli/run_request.h"
#include "client/millibox.h"

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
	const struct create_options *options = values;
	const struct common_options common = {options->run.at, options->run.json};
	json_auto_t *object = run_request_common(&options->run, err), *answer = NULL;
	cleanup_daemon struct millibox_client *client = daemon_open(&common.at);
	cleanup_session struct millibox_session *session = NULL;
	cleanup_request struct millibox_request *request = NULL;
	int status;

	if (!object || resource_add_fields(object, fields, ARRAY_SIZE(fields), options, err) < 0)
		return -1;
	request = daemon_request(object);
	status = resource_finish(&common, client,
	                         millibox_session_create(client, request, &session), &answer, err);
	if (answer) {
		message_print_safe(stdout, millibox_session_id(session));
		(void)putchar('\n');
	}
	return status;
}

/* clang-format off */
static const struct option_row rows[] = {
	{"id",        0,   OPTION_TEXT,     AT(id),                 "ID",         "id of the session: letters, digits, '_', '-'"},
	{"mode",      0,   OPTION_TEXT,     AT(mode),               "MODE",       "mode of the session: persistent (default), workspace or ephemeral"},
	{"language",  'l', OPTION_TEXT,     AT(run.language),       "LANGUAGE",   "default language, see 'millibox languages'; default: python"},
	{"template",  0,   OPTION_TEXT,     AT(run.template_id),    "TEMPLATE",   "template of the box"},
	{"package",   0,   OPTION_LIST,     AT(run.packages),       "NAME",       "install this package first, like NAME or NAME==1.2; may be repeated"},
	{"packages",  0,   OPTION_TEXT,     AT(run.package_names),  "NAMES",      "install these packages first, with commas between: numpy,requests==2.32"},
	{"lock",      0,   OPTION_TEXT,     AT(run.lock),           "FILE",       PACKAGE_LOCK_HELP},
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
