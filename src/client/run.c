/* SPDX-License-Identifier: Apache-2.0 */
#include "client/handle.h"

#include <errno.h>

#include "base/alloc.h"
#include "http/status.h"
#include "json/json_dump.h"

static int hand_out_text(millibox_text_fn *fn, void *ctx, const char *text)
{
	return fn && fn(ctx, text) != 0 ? -ECANCELED : 0;
}

static int hand_out_value(const struct millibox_request *request, const json_t *bundle)
{
	cleanup_free char *text = request->on_value ? json_dump_text(bundle, 0) : NULL;

	return hand_out_text(request->on_value, request->value_ctx, text);
}

int run_event(void *ctx, const struct event *event)
{
	const struct millibox_request *request = ctx;
	enum millibox_stream stream =
		event->kind == EVENT_STDOUT ? MILLIBOX_STDOUT : MILLIBOX_STDERR;

	if (event->kind == EVENT_INSTALL && request->on_install &&
	    request->on_install(request->install_ctx, stream, event->data, event->len) != 0)
		return -ECANCELED;

	if (event->kind == EVENT_PENDING)
		return hand_out_text(request->on_start, request->start_ctx, event->data);
	if (event->kind == EVENT_RESULT)
		return hand_out_value(request, event->object);
	if (!request->on_output || (event->kind != EVENT_STDOUT && event->kind != EVENT_STDERR))
		return 0;
	return request->on_output(request->output_ctx, stream, event->data, event->len) != 0
	               ? -ECANCELED
	               : 0;
}

/* Return: owned; NULL with *err. */
static char *make_body(const struct millibox_request *request, bool in_session, struct error *err)
{
	json_auto_t *fields = json_copy(request->body);

	/* As in all clients: plain REST refuses code whose language is not certain. A session has
	 * one. */
	if (!in_session && !json_object_get(fields, "language") &&
	    !json_object_get(fields, "default_language"))
		json_object_set_new(fields, "default_language", json_string("python"));
	return api_body(fields, err);
}

int run_send_call(struct millibox_client *client, const char *path, const char *body,
                  struct run_call *call, struct error *err)
{
	call->retry = client_retry(client);
	if (run_call_send(call, &client->endpoint, path, body, err) < 0) {
		if (call->failure == -ECANCELED) {
			error_clear(err);
			(void)error_set(err, ERR_UNAVAILABLE, ECANCELED,
			                "a callback stopped the program");
		}
		return -1;
	}
	if (!call->problem)
		return 0;
	(void)client_refuse(client, call->status, TAKE_PTR(call->problem), err);
	/* Of an event in a stream: the response was a success. */
	if (client->status == HTTP_OK)
		client->status = error_http(err->code);
	return -1;
}

int run_at(struct millibox_client *client, const char *path, const struct millibox_request *request,
           bool in_session, struct millibox_result **ret_result)
{
	cleanup_run_call struct run_call call;
	cleanup_free char *body = NULL;
	struct error err = {0};
	int r;

	run_call_init(&call);
	if (client_begin(client) < 0)
		return -1;
	if (error_is_set(&request->error))
		return client_end(client, -1, &request->error);
	/* The id comes with the stream only: without it, a session's program cannot be killed. */
	call.stream = in_session || request->on_output || request->on_install ||
	              request->on_start || request->on_value;
	call.timeout_us = request->deadline_us;
	call.patience_us = in_session ? client->patience_us : 0;
	call.cancel_fd = client->cancel_fd;
	call.on_event = run_event;
	call.ctx = (void *)(uintptr_t)request;
	body = make_body(request, in_session, &err);
	r = body ? run_send_call(client, path, body, &call, &err) : -1;
	/* Its error would hide the first one. */
	if (r < 0 && in_session && !client->problem)
		(void)!run_call_cancel(&client->endpoint, call.execution_id, &(struct error){0});
	if (r == 0)
		*ret_result = result_new(TAKE_PTR(call.result));
	return client_end(client, r, &err);
}

int millibox_run(struct millibox_client *client, const struct millibox_request *request,
                 struct millibox_result **ret_result)
{
	if (!request || !ret_result)
		return client_missing(client, request ? "ret_result" : "request");
	return run_at(client, "/api/v1/execute", request, false, ret_result);
}
