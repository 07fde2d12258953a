/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec_call.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/endpoint.h"
#include "cli/interrupt.h"
#include "cli/own_daemon.h"
#include "cli/say.h"
#include "cli/verdict.h"
#include "http/client.h"

static int on_event(void *ctx, const struct event *event)
{
	struct exec_call *call = ctx;
	int out = event->kind == EVENT_STDERR ? STDERR_FILENO : STDOUT_FILENO;

	if (event->kind == EVENT_STDOUT || event->kind == EVENT_STDERR)
		return call->json
		               ? 0
		               : interrupt_write(call->interrupt_fd, out, event->data, event->len);
	if (event->kind == EVENT_PENDING)
		return str_copy(call->execution_id, sizeof(call->execution_id), event->data);
	if (event->kind == EVENT_END && !call->result)
		call->result = json_incref(event->object);
	if (event->kind == EVENT_ERROR && !call->problem)
		call->problem = json_incref(event->object);
	return 0;
}

static int on_data(void *ctx, int status, const char *data, size_t len)
{
	struct exec_call *call = ctx;

	if (status == 200 && call->stream)
		call->failure = events_feed(&call->events, data, len);
	else
		call->failure = buf_add(&call->body, data, len);
	return call->failure;
}

void exec_call_init(struct exec_call *call, int interrupt_fd, bool json)
{
	*call = (struct exec_call){.interrupt_fd = interrupt_fd, .json = json, .stream = !json};
	events_init(&call->events, EVENTS_LINE_MAX, on_event, call);
	buf_init(&call->body, EVENTS_LINE_MAX);
}

void exec_call_done(struct exec_call *call)
{
	events_done(&call->events);
	buf_done(&call->body);
	json_decref(call->result);
	json_decref(call->problem);
}

/* The answer that came in one piece: the result, or why there is none. */
static int read_body(struct exec_call *call, int status, struct error *err)
{
	const char *text = call->body.data ? call->body.data : "";
	json_t *object = json_loadb(text, call->body.len, JSON_ALLOW_NUL, NULL);

	if (!json_is_object(object)) {
		json_decref(object);
		return error_set(err, ERR_PROTOCOL, 0,
		                 "the answer (status %d) is not one of a Millibox daemon", status);
	}
	*(status == 200 ? &call->result : &call->problem) = object;
	return 0;
}

/* Return: 0 with call->result or call->problem filled, or -1. */
static int perform(struct exec_call *call, const struct exec_target *target, const char *body,
                   struct error *err)
{
	cleanup_free char *url = xasprintf("%s%s", target->endpoint->url, target->path);
	struct http_client_request request = {
		.method = "POST",
		.socket_path = target->endpoint->socket,
		.url = url,
		.bearer = target->endpoint->key,
		.ca_file = target->endpoint->ca_file,
		.untrusted = ENDPOINT_UNTRUSTED,
		.unreached = ENDPOINT_UNREACHED,
		.body = body,
		.body_len = strlen(body),
		.accept = call->stream ? "application/x-ndjson" : "application/json",
		.cancel_fd = call->interrupt_fd,
		.on_data = on_data,
		.ctx = call,
	};
	int status = 0;

	if (http_client_run(&request, &status, err) < 0)
		return -1;
	if (status != 200 || !call->stream)
		return read_body(call, status, err);
	if (!call->result && !call->problem)
		return error_set(err, ERR_PROTOCOL, 0, "the daemon ended its answer early");
	return 0;
}

static int report(const struct exec_call *call)
{
	const json_t *object = call->problem ? call->problem : call->result;

	if (call->show)
		return call->show(call->show_ctx, call->problem ? NULL : call->result,
		                  call->problem);
	if (call->json)
		say_json(object);
	else if (call->problem)
		say_problem(object);
	else
		verdict_explain(object);
	if (call->value && !call->json && !call->problem && verdict_exit_status(object) == CLI_OK)
		say_json(json_object_get(object, "result"));
	return call->problem ? problem_exit_status(object) : verdict_exit_status(object);
}

/* An interruption is not an error to talk about. */
int exec_call_explain(const struct exec_call *call, const struct own_daemon *own, struct error *err)
{
	int signo = interrupt_taken(call->interrupt_fd);

	if (call->failure == -EPIPE)
		signo = SIGPIPE;
	if (signo > 0) {
		error_clear(err);
		return CLI_SIGNAL + signo;
	}
	if (call->failure < 0) {
		error_clear(err);
		(void)error_set(err, ERR_PROTOCOL, -call->failure,
		                call->failure == -EPROTO
		                        ? "the daemon's answer cannot be understood"
		                        : "cannot pass the program's output on");
	}
	if (own)
		own_daemon_show_log(own);
	return CLI_OURS;
}

int exec_call_run(struct exec_call *call, const struct exec_target *target, const char *body,
                  struct error *err)
{
	if (perform(call, target, body, err) < 0)
		return exec_call_explain(call, target->own, err);
	return report(call);
}
