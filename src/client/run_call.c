/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run_call.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"
#include "client/api_call.h"
#include "client/endpoint.h"
#include "http/client.h"
#include "http/status.h"

/* Between attempts to reach the daemon again. */
#define FIRST_DELAY_US (50 * USEC_PER_MS)
#define LAST_DELAY_US  USEC_PER_SEC
#define ID_MAX         64
/* A caller waits for it after a call that has failed. */
#define CANCEL_TIMEOUT_US (5 * USEC_PER_SEC)

/* Return: whether the caller has it already, of a stream that broke. */
static bool is_repeated(struct run_call *call, const struct event *event)
{
	if (event->number > 0) {
		call->last = event->number;
		call->loose = call->repeated = 0;
		return false;
	}
	if (event->kind != EVENT_STDOUT && event->kind != EVENT_STDERR &&
	    event->kind != EVENT_RESULT)
		return false;
	if (call->repeated > 0) {
		call->repeated--;
		return true;
	}
	call->loose++;
	return false;
}

static int take_event(void *ctx, const struct event *event)
{
	struct run_call *call = ctx;

	call->progress = true;
	if (is_repeated(call, event))
		return 0;
	if (event->kind == EVENT_PENDING &&
	    str_copy(call->execution_id, sizeof(call->execution_id), event->data) < 0)
		return -EPROTO;
	if (event->kind == EVENT_END && !call->result)
		call->result = json_incref(event->object);
	if (event->kind == EVENT_ERROR && !call->problem)
		call->problem = json_incref(event->object);
	return call->on_event ? call->on_event(call->ctx, event) : 0;
}

static int on_data(void *ctx, int status, const char *data, size_t len)
{
	struct run_call *call = ctx;

	if (status == HTTP_OK && call->stream)
		call->failure = events_feed(&call->events, data, len);
	else
		call->failure = buf_add(&call->body, data, len);
	return call->failure;
}

void run_call_init(struct run_call *call)
{
	*call = (struct run_call){0};
	events_init(&call->events, EVENTS_LINE_MAX, take_event, call);
	buf_init(&call->body, EVENTS_LINE_MAX);
}

void run_call_done(struct run_call *call)
{
	events_done(&call->events);
	buf_done(&call->body);
	json_decref(call->result);
	json_decref(call->problem);
}

/* For one transfer of several. */
static uint64_t time_left(const struct run_call *call)
{
	uint64_t now = clock_us();

	if (call->deadline_us == 0)
		return 0;
	return now < call->deadline_us ? call->deadline_us - now : 1;
}

static int send_once(struct run_call *call, const struct endpoint *endpoint, const char *path,
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
		.timeout_us = time_left(call),
		.cancel_fd = call->cancel_fd,
		.on_data = on_data,
		.ctx = call,
	};

	if (http_client_run(&request, &call->status, err) < 0) {
		if (call->failure == 0)
			return -1;
		error_clear(err);
		return error_set(err, ERR_PROTOCOL, -call->failure,
		                 call->failure == -EPROTO ? "cannot parse the daemon's response"
		                                          : "cannot write the program's output");
	}
	if (call->status != HTTP_OK || !call->stream) {
		json_t *object =
			api_parse_object(call->body.data, call->body.len, call->status, err);

		*(call->status == HTTP_OK ? &call->result : &call->problem) = object;
		return object ? 0 : -1;
	}
	if (!call->result && !call->problem && !call->partial)
		return error_set(err, ERR_PROTOCOL, 0, "the daemon closed the stream early");
	return 0;
}

/* Whether the daemon may have more of the stream than came. */
static bool is_broken(const struct run_call *call, const struct error *err)
{
	return call->patience_us > 0 && id_is_valid(call->execution_id, ID_MAX) && !call->result &&
	       !call->problem && call->failure == 0 && err->sys != ECANCELED &&
	       (err->code == ERR_UNAVAILABLE || err->code == ERR_PROTOCOL);
}

static const char *problem_code(const struct run_call *call)
{
	const char *code = json_string_value(json_object_get(call->problem, "error_code"));

	return code ? code : "";
}

/* A daemon that starts or is busy refuses for a while; one that was killed may have forgotten. */
static int judge_problem(struct run_call *call, struct error *err)
{
	if (str_equal(problem_code(call), error_text(ERR_UNAVAILABLE)) ||
	    json_is_integer(json_object_get(call->problem, "retry_after"))) {
		json_decref(TAKE_PTR(call->problem));
		return error_set(err, ERR_UNAVAILABLE, 0, "the daemon is not ready");
	}
	if (!str_equal(problem_code(call), error_text(ERR_EXECUTION_NOT_FOUND)))
		return 0;
	json_decref(TAKE_PTR(call->problem));
	return error_set(
		err, ERR_EXECUTION_NOT_FOUND, 0,
		"the daemon was killed and has lost the program; its session may be alive");
}

static int resume_stream(struct run_call *call, const struct endpoint *endpoint, struct error *err)
{
	cleanup_free char *path = xasprintf("/api/v1/executions/%s/events?after=%llu",
	                                    call->execution_id, (unsigned long long)call->last);

	call->repeated = call->loose;
	events_restart(&call->events);
	buf_reset(&call->body);
	if (send_once(call, endpoint, path, NULL, err) < 0)
		return -1;
	return call->problem ? judge_problem(call, err) : 0;
}

/* Return: 0, or -ECANCELED. */
static int wait_a_while(const struct run_call *call, uint64_t delay_us)
{
	struct pollfd cancel = {.fd = call->cancel_fd > 0 ? call->cancel_fd : -1, .events = POLLIN};
	int r = poll(&cancel, 1, (int)(delay_us / USEC_PER_MS));

	return r > 0 ? -ECANCELED : 0;
}

static int follow_broken(struct run_call *call, const struct endpoint *endpoint, struct error *err)
{
	uint64_t delay = FIRST_DELAY_US, spent = 0;
	int r = -1;

	while (r < 0 && is_broken(call, err) && spent < call->patience_us) {
		error_clear(err);
		if (wait_a_while(call, delay) < 0)
			return error_set(err, ERR_UNAVAILABLE, ECANCELED, "stopped");
		spent += delay;
		delay = delay * 2 < LAST_DELAY_US ? delay * 2 : LAST_DELAY_US;
		call->progress = false;
		r = resume_stream(call, endpoint, err);
		if (call->progress) {
			delay = FIRST_DELAY_US;
			spent = 0;
		}
	}
	return r;
}

/* Until the daemon begins it. Return: as run_call_send. */
static int send_first(struct run_call *call, const struct endpoint *endpoint, const char *path,
                      const char *body, struct error *err)
{
	for (;;) {
		int r = send_once(call, endpoint, path, body, err), again = 0;

		if (r < 0)
			again = retry_unreached(&call->retry, err);
		else if (call->problem && call->status != HTTP_OK)
			again = retry_refused(&call->retry, call->problem, err);
		if (again == 0)
			return r;
		json_decref(TAKE_PTR(call->problem));
		if (again < 0)
			return -1;
		events_restart(&call->events);
		buf_reset(&call->body);
	}
}

int run_call_send(struct run_call *call, const struct endpoint *endpoint, const char *path,
                  const char *body, struct error *err)
{
	int r;

	call->deadline_us = call->timeout_us ? clock_us() + call->timeout_us : 0;
	if (call->deadline_us && call->deadline_us < call->retry.until_us)
		call->retry.until_us = call->deadline_us;
	r = send_first(call, endpoint, path, body, err);
	return r < 0 ? follow_broken(call, endpoint, err) : r;
}

int run_call_cancel(const struct endpoint *endpoint, const char *execution_id, struct error *err)
{
	cleanup_free char *path = xasprintf("/api/v1/executions/%s/cancel", execution_id);
	const struct api_call cancel = {
		.method = "POST", .path = path, .body = "{}", .timeout_us = CANCEL_TIMEOUT_US};
	json_auto_t *answer = NULL;
	int status = 0;

	if (!id_is_valid(execution_id, ID_MAX))
		return 0;
	return api_call(endpoint, &cancel, &answer, &status, err);
}
