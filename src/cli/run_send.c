/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_send.h"

#include "base/alloc.h"
#include "cli/client/exec_call.h"
#include "cli/client/own_daemon.h"
#include "cli/exit_status.h"
#include "cli/message.h"

#define EXECUTE_PATH "/api/v1/execute"

static int report_result(const struct run_send *run, const struct exec_call *call)
{
	const json_t *object = call->problem ? call->problem : call->result;
	int status = call->problem ? exit_status_of_problem(object) : exit_status_of_result(object);

	if (run->report)
		return run->report(run->ctx, call->problem ? NULL : call->result, call->problem);
	if (run->json) {
		message_print_json(object);
	} else if (call->problem) {
		message_show_problem(object);
	} else {
		message_show_warnings(object);
		exit_status_explain(object);
	}
	if (run->value && !run->json && !call->problem && status == CLI_OK)
		message_print_json(json_object_get(object, "result"));
	return status;
}

/* An interruption is no error. @own NULL: the daemon is not ours. */
static int report_failure(const struct exec_call *call, const struct own_daemon *own,
                          struct error *err)
{
	int signo = exec_call_signal(call);

	if (signo > 0) {
		error_clear(err);
		return CLI_SIGNAL + signo;
	}
	if (own)
		own_daemon_show_log(own);
	return CLI_ERROR;
}

int run_send_to(const struct run_send *run, const struct endpoint *endpoint, const char *path,
                struct exec_call *call, struct error *err)
{
	if (exec_call_run(call, endpoint, path, run->body, err) < 0)
		return report_failure(call, NULL, err);
	return report_result(run, call);
}

static int send_to_own_daemon(const struct run_send *run, struct exec_call *call, struct error *err)
{
	struct own_daemon *own = own_daemon_start(call->interrupt_fd, err);
	cleanup_endpoint struct endpoint endpoint = {0};
	int status;

	if (!own)
		return report_failure(call, NULL, err);
	endpoint.socket = xstrdup(own_daemon_socket(own));
	endpoint.url = xstrdup("http://localhost");
	if (exec_call_run(call, &endpoint, EXECUTE_PATH, run->body, err) < 0)
		status = report_failure(call, own, err);
	else
		status = report_result(run, call);
	own_daemon_end(own);
	return status;
}

int run_send(const struct run_send *run, const struct endpoint_options *at, struct exec_call *call,
             struct error *err)
{
	cleanup_endpoint struct endpoint endpoint = {0};

	if (endpoint_find(at, &endpoint, err) < 0)
		return exit_status_of_error(err);
	if (!endpoint.chosen && !endpoint_is_served(&endpoint))
		return send_to_own_daemon(run, call, err);
	return run_send_to(run, &endpoint, EXECUTE_PATH, call, err);
}
