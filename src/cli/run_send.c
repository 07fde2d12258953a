/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_send.h"

#include "base/alloc.h"
#include "cli/command.h"
#include "cli/exec_call.h"
#include "cli/own_daemon.h"

#define EXECUTE_PATH "/api/v1/execute"

/* A daemon for this one run. */
static int run_with_own_daemon(struct exec_call *call, const char *body, struct error *err)
{
	struct own_daemon *own = own_daemon_start(call->interrupt_fd, err);
	struct endpoint endpoint = {0};
	const struct exec_target target = {&endpoint, EXECUTE_PATH, own};
	int status;

	if (!own)
		return exec_call_explain(call, NULL, err);
	endpoint.socket = xstrdup(own_daemon_socket(own));
	endpoint.url = xstrdup("http://localhost");
	status = exec_call_run(call, &target, body, err);
	endpoint_done(&endpoint);
	own_daemon_end(own);
	return status;
}

int run_send(struct exec_call *call, const struct run_send *what, struct error *err)
{
	cleanup_endpoint struct endpoint endpoint = {0};
	const struct exec_target target = {&endpoint, EXECUTE_PATH, NULL};

	if (endpoint_find(&what->at, &endpoint, err) < 0)
		return err->code == ERR_INVALID ? CLI_USAGE : CLI_OURS;
	if (!endpoint.chosen && !endpoint_is_served(&endpoint))
		return run_with_own_daemon(call, what->body, err);
	return exec_call_run(call, &target, what->body, err);
}
