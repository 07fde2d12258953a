/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/own_session.h"

#include "cli/exit_status.h"
#include "cli/message.h"
#include "client/millibox.h"

static bool has_packages(const struct run_options *options)
{
	return options->packages.count || options->package_names || options->lock;
}

struct run_options own_session_options(const struct run_options *options)
{
	struct run_options session = *options;

	/* A session's time-out is another, and its language is the execution's, unless packages of
	 * it are to be installed. */
	session.timeout_us = session.output_bytes = 0;
	session.receipt = NULL;
	if (!has_packages(options))
		session.language = NULL;
	return session;
}

struct run_options own_session_program(const struct run_options *options)
{
	struct run_options program = *options;

	program.memory_bytes = program.disk_bytes = program.cpu_millicores = 0;
	program.processes = 0;
	program.policy = program.network = program.template_id = program.package_names = NULL;
	program.engine = program.min_isolation = NULL;
	program.lock = NULL;
	program.network_allow = program.secrets = program.mcp = program.packages =
		(struct option_list){0};
	program.in_session = true;
	/* A template may choose the language, and packages are those of the session's. */
	program.guess = !options->template_id && !has_packages(options);
	return program;
}

int own_session_create(struct millibox_client *client, const struct run_options *options,
                       struct millibox_session **ret_session, struct error *err)
{
	json_auto_t *fields = run_request_common(options, err), *answer = NULL;
	cleanup_request struct millibox_request *request = NULL;
	int status = 0, r;

	if (!fields)
		return -1;
	request = daemon_request(fields);
	if (options->language)
		(void)millibox_request_set(request, "language", options->language);
	r = millibox_session_create(client, request, ret_session);
	if (daemon_answer(client, r, &answer, &status, err) < 0)
		return -1;
	if (r < 0) {
		message_show_problem(answer);
		return exit_status_of_problem(answer);
	}
	message_show_warnings(answer);
	return CLI_OK;
}

void own_session_delete(struct millibox_client *client, struct millibox_session *session)
{
	struct error err = {0};

	/* One that has ended by itself was deleted, or will be. */
	if (session && millibox_session_delete(session) < 0 && !millibox_error_json(client)) {
		(void)daemon_fail(client, &err);
		message_show_error(&err);
	}
	millibox_session_free(session);
}
