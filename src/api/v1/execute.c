/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/decode.h"
#include "api/json/encode_result.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/json/report.h"
#include "api/json/text_stream.h"
#include "api/op/events.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/config/config.h"
#include "core/run/run.h"
#include "core/template/templates.h"
#include <errno.h>

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
	struct run *exec;         /* the service's */
	enum event_form form;
	bool began;
	uint64_t next_id;
	size_t max_bytes; /* of one answer or event, as text */
	bool trace;       /* the answer tells when each step was taken */
	uint64_t parsed_us;
	struct text_stream text[OUTPUT_COUNT];
};

static const char *const stream_names[] = {
	[OUTPUT_STDOUT] = "stdout",
	[OUTPUT_STDERR] = "stderr",
};
static_assert(ARRAY_SIZE(stream_names) == OUTPUT_COUNT, "every stream has its name");

/* The value of an event's member, in the one form that it has. */
struct event_value {
	const char *text; /* NULL: none; a JSON string is made of it */
	size_t text_len;
	json_t *json; /* borrowed, as all else */
	const struct outcome *outcome;
	const struct report *report;
};

static int add_result(struct buf *b, const struct exec_call *call, const struct outcome *outcome,
                      const struct report *report);

static int add_value(struct buf *b, const struct exec_call *call, const struct event_value *value)
{
	if (value->text)
		return json_add_text(b, value->text, value->text_len);
	if (value->json)
		return json_add(b, json_incref(value->json));
	return add_result(b, call, value->outcome, value->report);
}

static int emit(struct exec_call *call, const char *name, const char *key,
                const struct event_value *value)
{
	const struct event event = {call->form, name, call->next_id, key};
	cleanup_buf struct buf b = BUF_INIT(call->max_bytes);

	if (event_open(&b, &event) < 0 || add_value(&b, call, value) < 0 ||
	    event_close(&b, call->form) < 0)
		return -ENOBUFS;
	call->next_id++;
	if (!call->began) {
		call->began = true;
		http_stream_begin(call->req, 200, event_form_type(call->form));
	}
	if (http_stream_write(call->req, b.data, b.len) < 0)
		reply_log(call->req, LOG_LEVEL_DEBUG,
		          "the client does not read, it is cut off"); /* on_gone follows */
	return 0;
}

/* @json is released. */
static void emit_json(struct exec_call *call, const char *name, const char *key, json_t *json)
{
	if (emit(call, name, key, &(struct event_value){.json = json}) < 0)
		reply_log(call->req, LOG_LEVEL_WARN, "no room for event %s", name);
	json_decref(json);
}

static void emit_text(struct exec_call *call, enum output_stream stream, const char *text,
                      size_t len)
{
	const struct event_value value = {.text = text, .text_len = len};

	if (len > 0 && emit(call, stream_names[stream], "data", &value) < 0)
		reply_log(call->req, LOG_LEVEL_WARN, "no room for output");
}

static void on_start(void *ctx, const char *execution_id)
{
	emit_json(ctx, "start", "execution_id", json_string(execution_id));
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

/* Either an answer of its own, or the last event of a stream that has begun. */
static void answer_error(struct exec_call *call, const struct error *err)
{
	if (!call->began) {
		reply_error(call->req, err);
		return;
	}
	if (error_is_internal(err))
		reply_log_error(call->req, err);
	emit_json(call, "error", "error", reply_error_object(err, http_request_id(call->req)));
	http_stream_end(call->req);
}

/* Microseconds since the request was received; null where a step was not taken. Owned. */
static json_t *view_trace(const struct exec_call *call, const struct outcome *outcome)
{
	struct trace t = outcome->trace;
	json_t *j = json_object();

	t.us[TRACE_RECEIVED] = http_received_us(call->req);
	t.us[TRACE_PARSED] = call->parsed_us;
	t.us[TRACE_RENDERED] = clock_us();
	for (size_t i = 0; i < TRACE_COUNT; i++)
		json_set(j, trace_step_name((enum trace_step)i),
		         t.us[i] ? json_integer((json_int_t)(t.us[i] - t.us[TRACE_RECEIVED]))
		                 : json_null());
	return j;
}

/* The result as text, and when what was done where that is asked for. */
static int add_result(struct buf *b, const struct exec_call *call, const struct outcome *outcome,
                      const struct report *report)
{
	if (encode_result_add(b, outcome, report, NULL) < 0)
		return -1;
	if (!call->trace)
		return 0;
	b->len--; /* the brace: the object goes on */
	if (buf_addf(b, ",\"trace\":") < 0 || json_add(b, view_trace(call, outcome)) < 0)
		return -1;
	return buf_add(b, "}", 1);
}

static int finish_stream(struct exec_call *call, const struct outcome *outcome,
                         const struct report *report)
{
	const struct event_value end = {.outcome = outcome, .report = report};

	emit_rest(call, OUTPUT_STDOUT);
	emit_rest(call, OUTPUT_STDERR);
	for (size_t i = 0; i < json_array_size(report->results); i++)
		emit_json(call, "result", "data", json_incref(json_array_get(report->results, i)));
	if (emit(call, "end", "result", &end) < 0)
		return -1;
	http_stream_end(call->req);
	return 0;
}

static int finish_whole(struct exec_call *call, const struct outcome *outcome,
                        const struct report *report)
{
	cleanup_buf struct buf text = BUF_INIT(call->max_bytes);

	if (add_result(&text, call, outcome, report) < 0)
		return -1;
	reply_text(call->req, 200, &text);
	return 0;
}

static void on_end(void *ctx, const struct outcome *outcome)
{
	cleanup_free struct exec_call *call = ctx;
	cleanup_report struct report report = {0};
	struct error err = {0};
	int r;

	encode_result_report(outcome, &report);
	r = call->form == EVENT_FORM_NONE ? finish_whole(call, outcome, &report)
	                                  : finish_stream(call, outcome, &report);
	if (r == 0)
		return;
	(void)error_set(&err, ERR_UNAVAILABLE, 0,
	                "the program ran, but there is no room for its output in an answer");
	answer_error(call, &err);
}

static void on_error(void *ctx, const struct error *err)
{
	cleanup_free struct exec_call *call = ctx;

	answer_error(call, err);
}

static void on_gone(void *ctx)
{
	struct exec_call *call = ctx;

	reply_log(call->req, LOG_LEVEL_DEBUG, "the client left");
	run_cancel(call->exec);
	free(call);
}

void v1_execute(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct decode_limits limits = {.max_code_bytes = r->config->max_code_bytes};
	cleanup_decoded_exec struct decoded_exec decoded = {0};
	cleanup_free struct exec_call *call = NEW(struct exec_call);
	struct run_events events = {.ctx = call, .on_end = on_end, .on_error = on_error};
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);

	if (query_bool(req, "trace", &call->trace, &err) < 0 ||
	    decode_exec(body, len, &limits, &decoded, &err) < 0 ||
	    run_request_find_template(r->parts.templates, args->principal->tenant, &decoded.request,
	                              &err) < 0) {
		reply_error(req, &err);
		return;
	}
	decoded.request.tenant = args->principal->tenant;
	decoded.request.key_id = args->principal->key_id;
	decoded.request.request_id = xstrdup(http_request_id(req));
	call->req = req;
	call->parsed_us = clock_us();
	call->max_bytes = r->config->max_answers_bytes;
	call->form = event_form_choose(http_header(req, "Accept"), decoded.stream);
	if (call->form != EVENT_FORM_NONE) {
		events.on_start = on_start;
		events.on_output = on_output;
	}
	if (run_start(r->runs, &decoded.request, &events, &call->exec, &err) < 0) {
		reply_error_retry(req, &err, run_service_retry_after(r->runs));
		return;
	}
	http_drop_body(req);
	http_set_gone(req, on_gone, call);
	(void)TAKE_PTR(call); /* the callbacks' */
}
