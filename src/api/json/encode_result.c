/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/encode_result.h"

#include "api/json/encode.h"
#include "api/json/encode_file.h"
#include "api/json/json.h"
#include "api/json/markers.h"
#include "api/json/report.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "core/run/outcome.h"
#include "driver/driver.h"
#include <math.h>
#include <string.h>

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
	return number(round((double)bytes / (double)MIB * 1000) / 1000);
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

		json_set(j, "kind", json_string(d->kind));
		json_set(j, "what", json_text(d->what, strnlen(d->what, sizeof(d->what))));
		json_set(j, "rule", json_string(d->rule));
		json_set(j, "count", counter(d->count));
		json_append(list, j);
	}
	return list;
}

static json_t *isolation(const struct outcome *o)
{
	json_t *j = json_object();

	json_set(j, "driver", encode_text(o->driver));
	json_set(j, "layers", encode_layers(o->layers));
	json_set(j, "missing", encode_layers(o->layers_missing));
	json_set(j, "start", json_string(o->start == BOX_START_ZYGOTE ? "zygote" : "cold"));
	json_set(j, "start_reason", encode_text(box_start_reason(o->start)));
	json_set(j, "pooled", json_boolean(o->pooled));
	return j;
}

void encode_result_report(const struct outcome *o, struct report *ret_report)
{
	/* Not our error: the program can write anything. */
	if (report_read(o->report.data, o->report.len, ret_report) < 0)
		log_ctx(LOG_LEVEL_DEBUG, NULL, "%s: ignoring a malformed report of the runner",
		        o->execution_id);
}

/* Members before the output ... */
static json_t *result_head(const struct outcome *o)
{
	json_t *j = json_object();

	json_set(j, "execution_id", json_string(o->execution_id));
	json_set(j, "session_id", json_null());
	json_set(j, "status", json_string(outcome_status_name(o->status)));
	json_set(j, "exit_code", o->exited ? json_integer(o->exit_code) : json_null());
	json_set(j, "signal", o->signal ? json_integer(o->signal) : json_null());
	return j;
}

/* ... and those after it. */
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
	json_set(j, "limit", encode_text(outcome_limit_name(o->limit)));
	json_set(j, "denials", denials(o));
	json_set(j, "artifacts", encode_artifacts(&o->artifacts, NULL));
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

/* @extra overrides @own, which is returned. */
static json_t *merge_members(json_t *own, const json_t *extra)
{
	/* jansson counts references and so takes no const. */
	int r = extra ? json_object_update(own, (json_t *)(uintptr_t)extra) : 0;

	assert(r == 0);
	(void)r;
	return own;
}

int encode_result_add(struct buf *b, const struct outcome *o, const struct report *report,
                      const struct encode_result_extra *extra)
{
	size_t joint;

	if (json_add(b, merge_members(result_head(o), extra ? extra->head : NULL)) < 0)
		return -1;
	b->len--; /* replaces the brace */
	if (add_member(b, "stdout", &o->out, o->handler) < 0 ||
	    add_member(b, "stderr", &o->err, false) < 0)
		return -1;
	joint = b->len;
	if (json_add(b, merge_members(result_tail(o, report), extra ? extra->tail : NULL)) < 0)
		return -1;
	b->data[joint] = ',';
	return 0;
}

json_t *encode_result_brief(const struct outcome *o, const struct report *report,
                            const struct encode_result_extra *extra)
{
	json_t *j = merge_members(result_head(o), extra ? extra->head : NULL);
	json_t *tail = merge_members(result_tail(o, report), extra ? extra->tail : NULL);

	json_set(j, "stdout", json_null());
	json_set(j, "stderr", json_null());
	(void)merge_members(j, tail);
	json_decref(tail);
	return j;
}
