/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_terminal.h"

#include "cli/client/attach.h"
#include "cli/exit_status.h"
#include "cli/message.h"
#include "cli/own_session.h"
#include "cli/run_request.h"
#include "cli/start_daemon.h"
#include "client/millibox.h"

/* Theory of operation. Only programs in sessions have terminals: this one gets a session of its
 * own, which ends with it. */

struct terminal_run {
	const struct run_options *options;
	struct millibox_client *client;   /* owned */
	struct millibox_session *session; /* owned; NULL: none */
	struct millibox_request *request; /* owned */
	char *execution_id;               /* owned; NULL: not started */
};

int run_terminal_start(struct millibox_client *client, struct millibox_session *session,
                       struct millibox_request *request, char **ret_id, struct error *err)
{
	json_auto_t *answer = NULL;
	int rows, cols, status = 0, r;

	attach_size(&rows, &cols);
	(void)millibox_request_set_number(request, "tty.rows", rows);
	(void)millibox_request_set_number(request, "tty.cols", cols);
	r = millibox_session_start(session, request, ret_id);
	if (daemon_answer(client, r, &answer, &status, err) < 0)
		return -1;
	if (r < 0) {
		message_show_problem(answer);
		return exit_status_of_problem(answer);
	}
	message_show_warnings(answer);
	return CLI_OK;
}

/* The end of the session ends what still runs. */
static int converse(struct terminal_run *t, struct error *err)
{
	json_auto_t *exit = NULL;
	int r = attach_run(t->client, t->execution_id, &exit, err);

	if (r != 0)
		return r > 0 ? CLI_SIGNAL + r : -1;
	exit_status_explain(exit);
	return exit_status_of_result(exit);
}

static int run_in_session(struct terminal_run *t, struct error *err)
{
	const struct run_options session = own_session_options(t->options);
	int status = own_session_create(t->client, &session, &t->session, err);

	if (status == CLI_OK)
		status = run_terminal_start(t->client, t->session, t->request, &t->execution_id,
		                            err);
	if (status == CLI_OK)
		status = converse(t, err);
	own_session_delete(t->client, t->session);
	return status;
}

int run_terminal(const struct run_options *options, const struct run_input *input,
                 const struct args *args, struct error *err)
{
	const struct run_options program = own_session_program(options);
	struct terminal_run t = {.options = options};
	struct own_daemon *own = NULL;
	int status = -1;

	t.request = run_request_build(&program, input, args, err);
	if (!t.request)
		return -1;
	t.client = daemon_open(&options->at);
	/* Ctrl-C ends us while we wait for a daemon; then it is a key. */
	if (start_daemon_find(&options->at, t.client, -1, &own, err) == 0)
		status = run_in_session(&t, err);
	own_daemon_end(own);
	millibox_client_free(t.client);
	millibox_request_free(t.request);
	millibox_free(t.execution_id);
	return status;
}
