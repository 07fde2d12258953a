/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/json.h"
#include "api/op/events.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/config/config.h"
#include "http/status.h"
#include <string.h>

/*
 * Theory of operation. A request ends with its tool or its client. A stream begins with the first
 * output, so that an earlier refusal has its own status.
 *
 * Not run_reply: a tool need not run a program, its events have neither "start" nor rich results,
 * and a disconnect kills a session's program too.
 */

struct waiter {
	struct pending pending;
	struct call call;
	sandboxes_render_fn *render;
	size_t max_bytes; /* of one event */
	enum event_form form;
	bool strict, streaming;
	uint64_t events;
};

/* The dialect's code of each error. */
static const char *const codes[] = {
	[ERR_NONE] = "OK",
	[ERR_INVALID] = "INVALID_PARAMETERS",
	[ERR_BAD_JSON] = "INVALID_PARAMETERS",
	[ERR_UNKNOWN_FIELD] = "INVALID_PARAMETERS",
	[ERR_BAD_MEDIA] = "INVALID_PARAMETERS",
	[ERR_TOO_LARGE] = "INVALID_PARAMETERS",
	[ERR_NOT_FOUND] = "TOOL_NOT_FOUND",
	[ERR_BAD_METHOD] = "METHOD_NOT_ALLOWED",
	[ERR_CONFLICT] = "CONTAINER_NOT_RUNNING",
	[ERR_UNAUTHENTICATED] = "UNAUTHORIZED",
	[ERR_FORBIDDEN] = "FORBIDDEN",
	[ERR_DENIED] = "PERMISSION_DENIED",
	[ERR_BUSY] = "RATE_LIMIT_EXCEEDED",
	[ERR_TIMEOUT] = "TIMEOUT",
	[ERR_SESSION_NOT_FOUND] = "SANDBOX_NOT_FOUND",
	[ERR_EXECUTION_NOT_FOUND] = "EXECUTION_NOT_FOUND",
	[ERR_WAIT_TIMEOUT] = "EXECUTION_TIMEOUT",
	[ERR_QUOTA] = "INSUFFICIENT_RESOURCES",
	[ERR_NO_SCOPE] = "PERMISSION_DENIED",
	[ERR_KEY_NOT_FOUND] = "NOT_FOUND",
	[ERR_TENANT_NOT_FOUND] = "NOT_FOUND",
	[ERR_FILE_NOT_FOUND] = "FILE_NOT_FOUND",
	[ERR_BAD_RANGE] = "INVALID_PARAMETERS",
	[ERR_DISK_FULL] = "RESOURCE_LIMIT_EXCEEDED",
	[ERR_TEMPLATE_NOT_FOUND] = "IMAGE_NOT_FOUND",
	[ERR_TEMPLATE_IN_USE] = "CONFLICT",
	[ERR_SECRET_NOT_FOUND] = "NOT_FOUND",
	[ERR_NO_LANGUAGE] = "INVALID_PARAMETERS",
	[ERR_UNAVAILABLE] = "INSUFFICIENT_RESOURCES",
	[ERR_BOX_FAILED] = "CONTAINER_START_FAILED",
	[ERR_AGENT_LOST] = "EXECUTION_FAILED",
	[ERR_UNTRUSTED] = "INTERNAL_ERROR",
	[ERR_PROTOCOL] = "INTERNAL_ERROR",
	[ERR_CONFIG] = "INTERNAL_ERROR",
	[ERR_SYSTEM] = "INTERNAL_ERROR",
	[ERR_STORAGE] = "INTERNAL_ERROR",
};
static_assert(ARRAY_SIZE(codes) == ERR_COUNT, "every error has its code");

const char *sandboxes_code(enum error_code code)
{
	return codes[code] ? codes[code] : "INTERNAL_ERROR";
}

/* Clients that call tools show a result's text and code. */
bool sandboxes_is_refusal(const struct error *failure)
{
	static const enum error_code outcomes[] = {
		ERR_FILE_NOT_FOUND, ERR_TEMPLATE_NOT_FOUND, ERR_CONFLICT,
		ERR_DENIED,         ERR_DISK_FULL,          ERR_AGENT_LOST,
	};

	for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++)
		if (failure->code == outcomes[i])
			return false;
	return true;
}

/* The first match counts. */
static const char *failure_code(const json_t *metadata)
{
	static const struct {
		const char *exception, *code;
	} known[] = {
		{"SyntaxError", "PYTHON_SYNTAX_ERROR"},
		{"IndentationError", "PYTHON_SYNTAX_ERROR"},
		{"ModuleNotFoundError", "MODULE_NOT_FOUND"},
		{"MemoryError", "MEMORY_ERROR"},
	};
	const char *limit = json_string_value(json_object_get(metadata, "limit"));
	const char *name =
		json_string_value(json_object_get(json_object_get(metadata, "error"), "name"));

	if (json_is_true(json_object_get(metadata, "timed_out")))
		return "EXECUTION_TIMEOUT";
	if (limit)
		return str_equal(limit, "memory") ? "MEMORY_ERROR" : "RESOURCE_LIMIT_EXCEEDED";
	for (size_t i = 0; name && i < ARRAY_SIZE(known); i++)
		if (str_equal(known[i].exception, name))
			return known[i].code;
	return "EXECUTION_FAILED";
}

struct sandboxes_done sandboxes_done_of(const struct call *call, const json_t *result,
                                        const struct error *failure)
{
	return (struct sandboxes_done){
		.result = result,
		.structured = json_object_get(result, "structuredContent"),
		.failure = failure,
		.is_error = json_is_true(json_object_get(result, "isError")),
		.duration_us = clock_us() - call->started_us,
		.request_id = call->request_id,
	};
}

static const char *refusal_code(const struct error *failure)
{
	if (failure->code == ERR_INVALID && str_equal(failure->field, "packages"))
		return "PACKAGE_INSTALL_FAILED";
	if (failure->code == ERR_DENIED && str_equal(failure->field, "network_mode"))
		return "NETWORK_CONFIGURATION_ERROR";
	return sandboxes_code(failure->code);
}

json_t *sandboxes_metadata(const struct sandboxes_done *done)
{
	json_t *j = json_copy((json_t *)(uintptr_t)done->structured), *details, *context;

	if (!done->is_error)
		return j;
	if (!done->failure) {
		details = json_object_get(j, "error_message");
		json_set(j, "code", json_string(failure_code(j)));
		json_set(j, "details", details ? json_incref(details) : json_string(""));
		return j;
	}
	context = json_object();
	json_set(context, "error_code", json_string(error_text(done->failure->code)));
	json_set(context, "field", json_incref(json_object_get(j, "field")));
	json_set(context, "request_id", json_incref(json_object_get(j, "request_id")));
	json_set(j, "context", context);
	json_set(j, "code", json_string(refusal_code(done->failure)));
	json_set(j, "message", json_string(tool_result_text(done->result)));
	return j;
}

/* @value is JSON text. */
static void send_event(struct waiter *w, const char *name, const char *key, const struct buf *value)
{
	const struct event event = {
		.form = w->form, .name = name, .id = ++w->events, .has_id = true, .key = key};
	cleanup_buf struct buf b = BUF_INIT(w->max_bytes);

	if (!w->streaming)
		http_stream_begin(w->pending.req, HTTP_OK, event_form_type(w->form));
	w->streaming = true;
	if (event_open(&b, &event) < 0 || buf_add(&b, value->data, value->len) < 0 ||
	    event_close(&b, w->form) < 0 || http_stream_write(w->pending.req, b.data, b.len) < 0)
		reply_log(w->pending.req, LOG_LEVEL_DEBUG,
		          "the client does not read: disconnected"); /* on_left follows */
}

static void on_output(void *ctx, enum output_stream stream, const char *text, size_t len)
{
	struct waiter *w = ctx;
	cleanup_buf struct buf b = BUF_INIT(w->max_bytes);

	if (json_add_text(&b, text, len) == 0)
		send_event(w, stream == OUTPUT_STDERR ? "stderr" : "stdout", "data", &b);
}

static void send_failure(struct waiter *w, const struct error *failure)
{
	cleanup_buf struct buf b = BUF_INIT(w->max_bytes);

	if (json_add(&b, reply_error_object(failure, http_request_id(w->pending.req))) == 0)
		send_event(w, "error", "error", &b);
	http_stream_end(w->pending.req);
}

/* @body is released. */
static void send_end(struct waiter *w, json_t *body)
{
	cleanup_buf struct buf b = BUF_INIT(w->max_bytes);
	struct error err = {0};

	if (json_add(&b, body) < 0) {
		(void)error_set(&err, ERR_UNAVAILABLE, 0, "the result is too large for a response");
		send_failure(w, &err);
		return;
	}
	send_event(w, "end", "result", &b);
	http_stream_end(w->pending.req);
}

static void waiter_free(struct waiter *w)
{
	call_release(&w->call);
	free(w);
}

static void on_left(struct pending *p)
{
	struct waiter *w = CONTAINER_OF(p, struct waiter, pending);

	call_cancel(&w->call);
	waiter_free(w);
}

/*
 * Its client shows the text of a result, and of an HTTP error only the number. So an HTTP error is
 * what the original documents as one: arguments that do not fit the schema, and no such sandbox.
 * execute_code is another system's tool, where that is a result as well.
 */
static bool is_http_error(const struct waiter *w, const struct error *failure)
{
	bool is_argument = failure->code == ERR_INVALID || failure->code == ERR_UNKNOWN_FIELD ||
	                   failure->code == ERR_NO_LANGUAGE;

	if (str_equal(w->call.tool->name, "execute_code") &&
	    (is_argument || failure->code == ERR_SESSION_NOT_FOUND))
		return false;
	return is_argument ? w->call.malformed : sandboxes_is_refusal(failure);
}

static void on_done(void *ctx, json_t *result, const struct error *failure)
{
	struct waiter *w = ctx;
	const struct sandboxes_done done = sandboxes_done_of(&w->call, result, failure);
	bool refused = failure && (w->strict || is_http_error(w, failure));
	struct http_request *req = pending_resume(&w->pending);

	if (refused && w->streaming)
		send_failure(w, failure);
	else if (refused)
		reply_error(req, failure);
	else if (w->form != EVENT_FORM_NONE)
		send_end(w, w->render(&done));
	else
		reply_json(req, HTTP_OK, w->render(&done));
	waiter_free(w);
}

void sandboxes_call(struct router *r, struct http_request *req, const struct route_args *args,
                    const struct sandboxes_call *call)
{
	cleanup_json json_t *arguments = call->arguments;
	const struct tool *tool = tool_find(r->config, call->tool);
	struct waiter *w;
	struct error err = {0};

	assert(!call->args != !arguments);
	if (!tool) {
		(void)error_set(&err, call->strict ? ERR_DENIED : ERR_NOT_FOUND, 0,
		                "tool %.64s does not exist or is disabled (mcp.disabled_tools)",
		                call->tool);
		reply_error(req, &err);
		return;
	}
	w = NEW(struct waiter);
	*w = (struct waiter){.render = call->render, .strict = call->strict};
	w->form = event_form_choose(http_header(req, "Accept"), call->stream);
	w->max_bytes = r->config->max_answers_bytes;
	w->call.whole = true;
	w->call.events = (struct call_events){
		.ctx = w,
		.on_output = w->form == EVENT_FORM_NONE ? NULL : on_output,
		.on_done = on_done,
	};
	call_init(&w->call, r, args->principal, http_request_id(req));
	pending_wait(&w->pending, req, on_left);
	if (call->args) {
		w->call.args = *call->args;
		*call->args = (struct tool_args){0};
	}
	tool_start(&w->call, tool, arguments);
}
