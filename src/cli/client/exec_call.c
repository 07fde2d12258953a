/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/exec_call.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/client/api_call.h"
#include "cli/client/endpoint.h"
#include "cli/client/interrupt.h"
#include "http/client.h"
#include "http/status.h"

static int write_out(struct exec_call *call, int out, const char *data, size_t len)
{
	if (out == STDOUT_FILENO && len > 0)
		call->in_line = data[len - 1] != '\n';
	return interrupt_write(call->interrupt_fd, out, data, len);
}

/* On a line of its own. One without a text, such as an image, is not printed. */
static int write_value(struct exec_call *call, const json_t *bundle)
{
	const json_t *text = json_object_get(bundle, "text/plain");
	cleanup_free char *line =
		json_is_string(text)
			? xasprintf("%s%s\n", call->in_line ? "\n" : "", json_string_value(text))
			: NULL;

	return line ? write_out(call, STDOUT_FILENO, line, strlen(line)) : 0;
}

static int on_event(void *ctx, const struct event *event)
{
	struct exec_call *call = ctx;
	int out = event->kind == EVENT_STDERR ? STDERR_FILENO : STDOUT_FILENO;

	if (event->kind == EVENT_STDOUT || event->kind == EVENT_STDERR)
		return call->quiet ? 0 : write_out(call, out, event->data, event->len);
	if (event->kind == EVENT_RESULT)
		return call->values ? write_value(call, event->object) : 0;
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

	if (status == HTTP_OK && call->stream)
		call->failure = events_feed(&call->events, data, len);
	else
		call->failure = buf_add(&call->body, data, len);
	return call->failure;
}

void exec_call_init(struct exec_call *call, int interrupt_fd, bool quiet)
{
	*call = (struct exec_call){.interrupt_fd = interrupt_fd, .quiet = quiet, .stream = !quiet};
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

int exec_call_run(struct exec_call *call, const struct endpoint *endpoint, const char *path,
                  const char *body, struct error *err)
{
	cleanup_free char *url = xasprintf("%s%s", endpoint->url, path);
	struct http_client_request request = {
		ENDPOINT_REQUEST(endpoint),
		.method = body ? "POST" : "GET",
		.url = url,
		.body = body,
		.body_len = body ? strlen(body) : 0,
		.accept = call->stream ? "application/x-ndjson" : "application/json",
		.cancel_fd = call->interrupt_fd,
		.on_data = on_data,
		.ctx = call,
	};
	int status = 0;

	if (http_client_run(&request, &status, err) < 0) {
		if (call->failure == 0)
			return -1;
		error_clear(err);
		return error_set(err, ERR_PROTOCOL, -call->failure,
		                 call->failure == -EPROTO ? "cannot parse the daemon's response"
		                                          : "cannot write the program's output");
	}
	if (status != HTTP_OK || !call->stream) {
		json_t *object = api_parse_object(call->body.data, call->body.len, status, err);

		*(status == HTTP_OK ? &call->result : &call->problem) = object;
		return object ? 0 : -1;
	}
	if (!call->result && !call->problem && !call->partial)
		return error_set(err, ERR_PROTOCOL, 0, "the daemon closed the stream early");
	return 0;
}

int exec_call_signal(const struct exec_call *call)
{
	return call->failure == -EPIPE ? SIGPIPE : interrupt_taken(call->interrupt_fd);
}
