/* SPDX-License-Identifier: Apache-2.0 */
#include "api/reply.h"

#include "api/internal.h"
#include "api/json/json.h"
#include "api/json/markers.h"
#include "api/json/report.h"
#include "api/json/view_artifact.h"
#include "api/sandboxes/sandboxes.h"
#include "api/sandboxes/tool.h"
#include "api/se/se.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "core/run/outcome.h"
#include "driver/driver.h"
#include "http/server.h"
#include "wire/layer.h"
#include <math.h>

#define JSON_TYPE         "application/json"
#define MIB               1048576.0
#define RETRY_AFTER       1 /* s, where nobody knows better */
#define HTTP_OK           200
#define HTTP_SERVER_ERROR 500

static json_t *number(double value)
{
	json_t *j = json_real(value);

	assert(j);
	return j;
}

static json_t *milliseconds(uint64_t us)
{
	return us == COUNTER_UNKNOWN ? json_null() : number((double)us / 1000);
}

static json_t *counter(uint64_t value)
{
	return value == COUNTER_UNKNOWN ? json_null() : json_integer((json_int_t)value);
}

static json_t *megabytes(uint64_t bytes)
{
	if (bytes == COUNTER_UNKNOWN)
		return json_null();
	return number(round((double)bytes / MIB * 1000) / 1000);
}

static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *metrics(const struct outcome *o)
{
	json_t *j = json_object();

	json_set(j, "duration_ms", milliseconds(o->duration_us));
	json_set(j, "start_ms", milliseconds(o->start_us));
	json_set(j, "queue_ms", milliseconds(o->queue_us));
	json_set(j, "cpu_time_ms", milliseconds(o->cpu_us));
	json_set(j, "memory_peak_mb", megabytes(o->memory_peak_bytes));
	json_set(j, "peak_memory_mb", megabytes(o->memory_peak_bytes));
	json_set(j, "io_read_bytes", counter(o->read_bytes));
	json_set(j, "io_write_bytes", counter(o->write_bytes));
	json_set(j, "processes_peak", counter(o->processes_peak));
	json_set(j, "stdout_bytes", counter(o->stdout_bytes));
	json_set(j, "stderr_bytes", counter(o->stderr_bytes));
	return j;
}

static json_t *denials(const struct outcome *o)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < o->denials_count && i < DENIALS_MAX; i++) {
		const struct denial *d = &o->denials[i];
		json_t *j = json_object();
		int r;

		json_set(j, "kind", json_string(d->kind));
		json_set(j, "what", json_text(d->what, strnlen(d->what, sizeof(d->what))));
		json_set(j, "rule", json_string(d->rule));
		json_set(j, "count", counter(d->count));
		r = json_array_append_new(list, j);
		assert(r == 0);
		(void)r;
	}
	return list;
}

static json_t *layers(uint32_t mask)
{
	json_t *list = json_array();

	for (int layer = 0; layer < LAYER_COUNT; layer++)
		if (mask & LAYER_BIT(layer)) {
			int r = json_array_append_new(
				list, json_string(layer_name((enum wire_layer)layer)));

			assert(r == 0);
			(void)r;
		}
	return list;
}

static json_t *isolation(const struct outcome *o)
{
	json_t *j = json_object();

	json_set(j, "driver", text_or_null(o->driver));
	json_set(j, "layers", layers(o->layers));
	json_set(j, "missing", layers(o->layers_missing));
	json_set(j, "start", json_string(o->start == BOX_START_ZYGOTE ? "zygote" : "cold"));
	json_set(j, "start_reason", text_or_null(box_start_reason(o->start)));
	json_set(j, "pooled", json_boolean(o->pooled));
	return j;
}

void reply_read_report(const struct outcome *o, struct report *ret_report)
{
	/* Not an error of ours: the payload can say anything, also nonsense. */
	if (report_read(o->report.data, o->report.len, ret_report) < 0)
		log_ctx(LOG_LEVEL_DEBUG, NULL, "%s: the runner's report is not one, ignoring",
		        o->execution_id);
}

/* What comes before the output ... */
static json_t *result_head(const struct outcome *o)
{
	json_t *j = json_object();

	json_set(j, "execution_id", json_string(o->execution_id));
	json_set(j, "session_id", json_null());
	json_set(j, "status", json_string(exec_status_name(o->status)));
	json_set(j, "exit_code", o->exited ? json_integer(o->exit_code) : json_null());
	json_set(j, "signal", o->signal ? json_integer(o->signal) : json_null());
	return j;
}

/* ... and what comes after it. */
static json_t *result_tail(const struct outcome *o, const struct report *report)
{
	json_t *j = json_object();

	json_set(j, "stdout_truncated", json_boolean(o->out_truncated));
	json_set(j, "stderr_truncated", json_boolean(o->err_truncated));
	json_set(j, "result", json_incref(report->result));
	json_set(j, "results", json_incref(report->results));
	json_set(j, "error", json_incref(report->error));
	json_set(j, "execution_time", number((double)o->duration_us / 1e6));
	json_set(j, "metrics", metrics(o));
	json_set(j, "limit", text_or_null(exec_limit_name(o->limit)));
	json_set(j, "denials", denials(o));
	json_set(j, "artifacts", view_artifacts(&o->artifacts, NULL));
	json_set(j, "artifacts_truncated", json_boolean(o->artifacts.truncated));
	json_set(j, "session_reset", json_false());
	json_set(j, "isolation", isolation(o));
	return j;
}

static int add_member(struct buf *b, const char *key, const struct buf *output, bool marked)
{
	const char *text = output->data ? output->data : "";
	size_t len = output->len;
	cleanup_free char *stripped = marked ? markers_strip(text, len, &len) : NULL;

	if (buf_addf(b, ",\"%s\":", key) < 0)
		return -1;
	return json_add_text(b, stripped ? stripped : text, len);
}

/* @extra wins over @own, which is returned. */
static json_t *amend(json_t *own, const json_t *extra)
{
	/* jansson counts references and takes no const for it; nothing is changed. */
	int r = extra ? json_object_update(own, (json_t *)(uintptr_t)extra) : 0;

	assert(r == 0);
	(void)r;
	return own;
}

int reply_add_result(struct buf *b, const struct outcome *o, const struct report *report,
                     const struct reply_extra *extra)
{
	size_t joint;

	if (json_add(b, amend(result_head(o), extra ? extra->head : NULL)) < 0)
		return -1;
	b->len--; /* the brace: the object goes on */
	if (add_member(b, "stdout", &o->out, o->handler) < 0 ||
	    add_member(b, "stderr", &o->err, false) < 0)
		return -1;
	joint = b->len;
	if (json_add(b, amend(result_tail(o, report), extra ? extra->tail : NULL)) < 0)
		return -1;
	b->data[joint] = ',';
	return 0;
}

json_t *reply_result_brief(const struct outcome *o, const struct report *report,
                           const struct reply_extra *extra)
{
	json_t *j = amend(result_head(o), extra ? extra->head : NULL);
	json_t *tail = amend(result_tail(o, report), extra ? extra->tail : NULL);

	json_set(j, "stdout", json_null());
	json_set(j, "stderr", json_null());
	(void)amend(j, tail);
	json_decref(tail);
	return j;
}

bool reply_is_internal(const struct error *err)
{
	return error_http(err->code) == HTTP_SERVER_ERROR || err->code == ERR_BOX_FAILED ||
	       err->code == ERR_AGENT_LOST;
}

json_t *reply_error_object(const struct error *err, const char *request_id)
{
	json_t *j = json_object();
	char detail[sizeof(err->field) + sizeof(err->msg) + 2];

	if (reply_is_internal(err))
		(void)snprintf(detail, sizeof(detail), "The log of the daemon tells more.");
	else
		(void)snprintf(detail, sizeof(detail), "%s%s%s", err->field,
		               err->field[0] ? ": " : "", err->msg);
	json_set(j, "error_code", json_string(error_text(err->code)));
	json_set(j, "description", json_string(error_describe(err->code)));
	json_set(j, "error_detail", json_text(detail, strlen(detail)));
	json_set(j, "solution", json_string(error_solution(err->code)));
	json_set(j, "request_id", json_string(request_id));
	/* The same once more, as the later control plane says it. */
	json_set(j, "error", json_string(error_describe(err->code)));
	json_set(j, "message", json_text(detail, strlen(detail)));
	json_set(j, "detail", json_text(detail, strlen(detail)));
	json_set(j, "field",
	         err->field[0] ? json_text(err->field, strlen(err->field)) : json_null());
	return j;
}

void reply_text(struct http_request *req, int status, struct buf *text)
{
	struct http_answer answer = {.status = status, .content_type = JSON_TYPE};
	char *body = buf_take(text, &answer.len);

	/* A buffer grows by doubling; what was too much is not kept until the client has read. */
	answer.body = xrealloc_array(body, answer.len + 1, 1);
	http_reply_owned(req, &answer);
}

void reply_json(struct http_request *req, int status, json_t *body)
{
	size_t len;
	char *text = json_write(body, &len);

	http_reply_owned(req, &(struct http_answer){status, JSON_TYPE, text, len, NULL, 0});
}

const char *reply_log_ctx(const struct http_request *req, char ret_ctx[REPLY_CTX_LEN])
{
	/* The id is short: it fits. */
	(void)snprintf(ret_ctx, REPLY_CTX_LEN, "request_id=%s", http_request_id(req));
	return ret_ctx;
}

void reply_log_error(const struct http_request *req, const struct error *err)
{
	char ctx[REPLY_CTX_LEN];

	log_error_ctx(reply_log_ctx(req, ctx), "request failed", err);
}

/* In the words of the dialect that the path is of. */
static json_t *error_body(const struct error *err, const char *request_id, const char *path,
                          int *status)
{
	if (se_is_path(path))
		return se_error_object(err, request_id, path, status);
	if (sandboxes_tool_is_path(path))
		return sandboxes_tool_error_object(err, request_id);
	if (sandboxes_is_path(path))
		return sandboxes_error_object(err, request_id, *status);
	return reply_error_object(err, request_id);
}

static void send_error(struct http_request *req, const struct error *err, int status,
                       const struct http_header *header)
{
	const char *path = http_path(req);
	json_t *body = error_body(err, http_request_id(req), path, &status);
	struct http_answer answer = {
		.status = status,
		.content_type = JSON_TYPE,
		.headers = header,
		.headers_count = header != NULL,
	};

	http_set_tag(req, REQUEST_TAG_ERROR, (uintptr_t)err->code);
	if (reply_is_internal(err))
		reply_log_error(req, err);
	answer.body = json_write(body, &answer.len);
	http_reply_owned(req, &answer);
}

void reply_error_retry(struct http_request *req, const struct error *err, unsigned seconds)
{
	char text[16];
	const struct http_header retry = {"Retry-After", text};
	int status = error_http(err->code);

	(void)snprintf(text, sizeof(text), "%u", seconds);
	send_error(req, err, status, status == 429 || status == 503 ? &retry : NULL);
}

void reply_error_as(struct http_request *req, const struct error *err, int status)
{
	send_error(req, err, status, NULL);
}

void reply_error(struct http_request *req, const struct error *err)
{
	reply_error_retry(req, err, RETRY_AFTER);
}

void reply_unauthenticated(struct http_request *req, const struct error *err)
{
	const struct http_header header = {"WWW-Authenticate", "Bearer realm=\"millibox\""};

	send_error(req, err, error_http(err->code), &header);
}

void reply_not_allowed(struct http_request *req, const struct error *err, const char *allow)
{
	const struct http_header header = {"Allow", allow};

	send_error(req, err, error_http(err->code), &header);
}

void reply_error_header(struct http_request *req, const struct error *err,
                        const struct http_header *header)
{
	send_error(req, err, error_http(err->code), header);
}

void reply_nothing(struct http_request *req, int status)
{
	http_reply(req, &(struct http_answer){.status = status, .body = ""});
}
