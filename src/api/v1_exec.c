/* SPDX-License-Identifier: Apache-2.0 */
#include "api/decode.h"
#include "api/events.h"
#include "api/internal.h"
#include "api/json.h"
#include "api/reply.h"
#include "api/text_stream.h"
#include "base/alloc.h"
#include "base/log.h"
#include "core/config.h"
#include "core/exec.h"

/*
 * Theory of operation. An exec_call joins a request and an execution, and ends with whichever ends
 * first: the execution (on_end, on_error), which answers the request, or the client (on_gone),
 * which cancels the execution. Each of the three frees it, and after any of them none of the others
 * comes.
 *
 * A stream begins with the first event and not before, so that everything that fails earlier is
 * answered with its own HTTP status.
 */

struct exec_call {
	struct http_request *req; /* the server's */
	struct exec *exec;        /* the service's */
	enum event_form form;
	bool began;
	uint64_t next_id;
	struct text_stream text[OUTPUT_COUNT];
};

static const char *const stream_names[] = {
	[OUTPUT_STDOUT] = "stdout",
	[OUTPUT_STDERR] = "stderr",
};
static_assert(ARRAY_SIZE(stream_names) == OUTPUT_COUNT, "every stream has its name");

/* @object is released. */
static void emit(struct exec_call *call, const char *name, json_t *object)
{
	cleanup_free char *text = NULL;
	size_t len;

	if (!call->began) {
		call->began = true;
		http_stream_begin(call->req, 200, event_form_type(call->form));
	}
	text = event_render(call->form, name, call->next_id++, object, &len);
	if (http_stream_write(call->req, text, len) < 0)
		log_debug("request %s: the client does not read, it is cut off",
		          http_request_id(call->req)); /* on_gone follows */
}

static void emit_text(struct exec_call *call, enum output_stream stream, const char *text,
                      size_t len)
{
	json_t *object;

	if (len == 0)
		return;
	object = json_object();
	json_set(object, "data", json_text(text, len));
	emit(call, stream_names[stream], object);
}

static void on_start(void *ctx, const char *execution_id)
{
	struct exec_call *call = ctx;
	json_t *object = json_object();

	json_set(object, "execution_id", json_string(execution_id));
	emit(call, "start", object);
}

static void on_output(void *ctx, enum output_stream stream, const char *data, size_t len)
{
	struct exec_call *call = ctx;
	size_t text_len;
	cleanup_free char *text = text_stream_feed(&call->text[stream], data, len, &text_len);

	emit_text(call, stream, text, text_len);
}

static void emit_rest(struct exec_call *call, enum output_stream stream)
{
	size_t len;
	cleanup_free char *text = text_stream_end(&call->text[stream], &len);

	emit_text(call, stream, text, len);
}

/* @result is released. */
static void finish_stream(struct exec_call *call, json_t *result)
{
	const json_t *results = json_object_get(result, "results");
	json_t *end = json_object();

	emit_rest(call, OUTPUT_STDOUT);
	emit_rest(call, OUTPUT_STDERR);
	for (size_t i = 0; i < json_array_size(results); i++) {
		json_t *object = json_object();

		json_set(object, "data", json_incref(json_array_get(results, i)));
		emit(call, "result", object);
	}
	json_set(end, "result", result);
	emit(call, "end", end);
	http_stream_end(call->req);
}

static void on_end(void *ctx, const struct outcome *outcome)
{
	struct exec_call *call = ctx;
	json_t *result = reply_result(outcome);

	if (call->form == EVENT_FORM_NONE)
		reply_json(call->req, 200, result);
	else
		finish_stream(call, result);
	free(call);
}

static void on_error(void *ctx, const struct error *err)
{
	struct exec_call *call = ctx;
	json_t *object;

	if (!call->began) {
		reply_error(call->req, err);
		free(call);
		return;
	}
	if (reply_is_internal(err))
		log_error(http_request_id(call->req), err);
	object = json_object();
	json_set(object, "error", reply_error_object(err, http_request_id(call->req)));
	emit(call, "error", object);
	http_stream_end(call->req);
	free(call);
}

static void on_gone(void *ctx)
{
	struct exec_call *call = ctx;

	log_debug("request %s: the client left", http_request_id(call->req));
	exec_cancel(call->exec);
	free(call);
}

void v1_execute(struct router *r, struct http_request *req, const char *id)
{
	const struct decode_limits limits = {.max_code_bytes = r->config->max_code_bytes};
	cleanup_decoded_exec struct decoded_exec decoded = {0};
	cleanup_free struct exec_call *call = NEW(struct exec_call);
	struct exec_events events = {.ctx = call, .on_end = on_end, .on_error = on_error};
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);

	(void)id;
	if (decode_exec(body, len, &limits, &decoded, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	call->req = req;
	call->form = event_form_choose(http_header(req, "Accept"), decoded.stream);
	if (call->form != EVENT_FORM_NONE) {
		events.on_start = on_start;
		events.on_output = on_output;
	}
	if (exec_start(r->execs, &decoded.request, &events, &call->exec, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	http_drop_body(req);
	http_set_gone(req, on_gone, call);
	(void)TAKE_PTR(call); /* the callbacks' */
}
