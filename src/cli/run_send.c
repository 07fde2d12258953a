/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_send.h"

#include "base/alloc.h"
#include "base/str.h"
#include "cli/client/exec_call.h"
#include "cli/exit_status.h"
#include "cli/message.h"
#include "cli/start_daemon.h"
#include "client/millibox.h"

#define RULE_LINE 1 /* of "why": which rule refused */

/* The daemon has read the error output: see find_clue of encode_why.c. */
static bool lacks_network(const json_t *result)
{
	const char *rule =
		json_string_value(json_array_get(json_object_get(result, "why"), RULE_LINE));

	return rule && str_has_prefix(rule, "Rule network.mode: the box has no network");
}

static void show_hint(const struct run_send *run, const json_t *result)
{
	struct neighbour_search search = run->near;
	cleanup_free char *hint = NULL;

	search.error = json_object_get(result, "error");
	/* Python's word for an input() at the end of the input. */
	if (run->lacks_input && str_equal(message_text(search.error, "name"), "EOFError"))
		message_show("the program read its input, which is empty: add '-i' to type at it, "
		             "or '--stdin FILE'");
	if (run->no_network && lacks_network(result))
		message_show("%s", run->no_network);
	hint = neighbour_hint(&search);
	if (hint)
		message_show("%s", hint);
}

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
		if (run->hints)
			show_hint(run, object);
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
	return exit_status_of_error(err);
}

int run_send_to(const struct run_send *run, struct millibox_client *client,
                struct millibox_session *session, struct exec_call *call, struct error *err)
{
	if (exec_call_run(call, client, session, run->request, err) < 0)
		return report_failure(call, NULL, err);
	return report_result(run, call);
}

int run_send(const struct run_send *run, const struct daemon_options *at, struct exec_call *call,
             struct error *err)
{
	cleanup_daemon struct millibox_client *client = daemon_open(at);
	cleanup_own_daemon struct own_daemon *own = NULL;

	if (start_daemon_find(at, client, call->interrupt_fd, &own, err) < 0 ||
	    exec_call_run(call, client, NULL, run->request, err) < 0)
		return report_failure(call, own, err);
	return report_result(run, call);
}
