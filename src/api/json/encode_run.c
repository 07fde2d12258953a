/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/encode.h"

#include "api/json/encode_file.h"
#include "api/json/json.h"
#include "api/json/report.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "core/run/markers.h"
#include "core/run/outcome.h"
#include "core/run/receipt.h"
#include "driver/driver.h"
#include "http/media_type.h"
#include <math.h>
#include <string.h>

/*
 * Theory of operation. A result has members before the output, the output, and members after it.
 * Output may be megabytes and is written directly (json_add_text), so is `isolation`, which most
 * runs share; the rest as objects. A session's run is a result with the members of its record.
 *
 * There are two forms. A run without a session is only in Millibox's own paths: each fact has one
 * name, and what has nothing to say is left out. Clients of the control plane read runs of
 * sessions, and those of tools their results: these have every name, always.
 */

enum result_form {
	RESULT_OWN,
	RESULT_SHARED,
};

const char *encode_run_status_name(const struct run_record_info *info)
{
	static const char *const names[] = {
		[RUN_RECORD_PENDING] = "pending",
		[RUN_RECORD_RUNNING] = "running",
		[RUN_RECORD_ENDED] = "crashed", /* no outcome: no box to run it */
	};
	static_assert(ARRAY_SIZE(names) == RUN_RECORD_STATE_COUNT, "every state has its name");

	if (info->state == RUN_RECORD_ENDED && info->outcome)
		return outcome_status_name(info->outcome->status);
	return names[info->state];
}

/* Clients that read `state` expect "completed" for success. */
static const char *state_name(const struct run_record_info *info)
{
	const char *name = encode_run_status_name(info);

	return str_equal(name, outcome_status_name(OUTCOME_SUCCESS)) ? "completed" : name;
}

json_t *encode_run_ticket(const struct run_record *e)
{
	struct run_record_info info = {0};
	json_t *j = json_object();

	run_record_info(e, &info);
	json_set(j, "execution_id", json_string(info.id));
	json_set(j, "session_id", json_string(info.session_id));
	json_set(j, "status", json_string(encode_run_status_name(&info)));
	json_set(j, "submitted_at", encode_moment(info.created_ms));
	json_set(j, "created_at", encode_moment(info.created_ms));
	if (info.cuts)
		json_set(j, "limits", encode_cuts(info.cuts));
	json_set(j, "background", json_boolean(info.background));
	json_set(j, "tty", json_boolean(info.terminal));
	return j;
}

json_t *encode_run_status(const struct run_record *e)
{
	struct run_record_info info = {0};
	json_t *j = encode_run_ticket(e);

	run_record_info(e, &info);
	json_set(j, "id", json_string(info.id));
	json_set(j, "state", json_string(state_name(&info)));
	if (info.spec || info.later)
		json_set(j, "status", json_string(state_name(&info)));
	json_set(j, "language", encode_text(info.language));
	json_set(j, "started_at", encode_moment(info.started_ms));
	json_set(j, "completed_at", encode_moment(info.completed_ms));
	return j;
}

/* Unknown values are null, not zero. */
static const struct outcome nothing = {
	.duration_us = COUNTER_UNKNOWN,
	.start_us = COUNTER_UNKNOWN,
	.queue_us = COUNTER_UNKNOWN,
	.cpu_us = COUNTER_UNKNOWN,
	.memory_peak_bytes = COUNTER_UNKNOWN,
	.processes_peak = COUNTER_UNKNOWN,
	.read_bytes = COUNTER_UNKNOWN,
	.write_bytes = COUNTER_UNKNOWN,
	.net_sent = COUNTER_UNKNOWN,
	.net_received = COUNTER_UNKNOWN,
	.net_connections = COUNTER_UNKNOWN,
	.stdout_bytes = COUNTER_UNKNOWN,
	.stderr_bytes = COUNTER_UNKNOWN,
	.status = OUTCOME_CRASHED,
};

/* One line: the exception, or why there is no result. */
static json_t *error_message(const struct run_record_info *info, const json_t *error)
{
	const char *name = json_string_value(json_object_get(error, "name"));
	const char *value = json_string_value(json_object_get(error, "value"));

	if (name)
		return json_sprintf("%s: %s", name, value ? value : "");
	if (info->outcome && info->outcome->limit == OUTCOME_LIMIT_HOST_MEMORY)
		return json_string(OUTCOME_HOST_MEMORY_REASON);
	if (!info->failure)
		return json_null();
	return error_is_internal(info->failure) ? json_string(error_text(info->failure->code))
	                                        : encode_text(info->failure->msg);
}

static json_t *milliseconds(uint64_t us)
{
	return us == COUNTER_UNKNOWN ? json_null() : json_real((double)us / 1000);
}

static json_t *counter(uint64_t value)
{
	return value == COUNTER_UNKNOWN ? json_null() : json_integer((json_int_t)value);
}

static json_t *megabytes(uint64_t bytes)
{
	if (bytes == COUNTER_UNKNOWN)
		return json_null();
	return json_real(round((double)bytes / (double)MIB * 1000) / 1000);
}

static void set_count(json_t *j, const char *name, uint64_t value, enum result_form form)
{
	if (form == RESULT_SHARED || (value != 0 && value != COUNTER_UNKNOWN))
		json_set(j, name, counter(value));
}

static json_t *metrics(const struct outcome *o, enum result_form form)
{
	json_t *j = json_object();

	json_set(j, "duration_ms", milliseconds(o->duration_us));
	json_set(j, "start_ms", milliseconds(o->start_us));
	json_set(j, "queue_ms", milliseconds(o->queue_us));
	json_set(j, "cpu_time_ms", milliseconds(o->cpu_us));
	json_set(j, "memory_peak_mb", megabytes(o->memory_peak_bytes));
	if (form == RESULT_SHARED)
		json_set(j, "peak_memory_mb", megabytes(o->memory_peak_bytes));
	json_set(j, "processes_peak", counter(o->processes_peak));
	set_count(j, "io_read_bytes", o->read_bytes, form);
	set_count(j, "io_write_bytes", o->write_bytes, form);
	set_count(j, "stdout_bytes", o->stdout_bytes, form);
	set_count(j, "stderr_bytes", o->stderr_bytes, form);
	set_count(j, "network_sent_bytes", o->net_sent, form);
	set_count(j, "network_received_bytes", o->net_received, form);
	set_count(j, "network_connections", o->net_connections, form);
	if (o->net_shared && o->net_sent != COUNTER_UNKNOWN)
		json_set(j, "network_shared", json_true());
	return j;
}

static json_t *remedy(const struct denial *d)
{
	json_t *j = d->remedy ? json_loads(d->remedy, 0, NULL) : NULL;

	return j ? j : json_null();
}

static json_t *denials(const struct outcome *o)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < o->denials_count && i < DENIALS_MAX; i++) {
		const struct denial *d = &o->denials[i];
		json_t *j = json_object();

		json_set(j, "kind", json_string(d->kind));
		json_set(j, "what", json_text(d->what, strnlen(d->what, sizeof(d->what))));
		json_set(j, "detail",
		         d->detail ? json_text(d->detail, strlen(d->detail)) : json_null());
		json_set(j, "rule", json_string(d->rule));
		json_set(j, "errno",
		         d->error ? encode_text(strerrorname_np(d->error)) : json_null());
		json_set(j, "count", counter(d->count));
		json_set(j, "remedy", remedy(d));
		if (d->shared)
			json_set(j, "shared", json_true());
		json_append(list, j);
	}
	return list;
}

static const char *artifact_kind(const char *path)
{
	const char *dot = strrchr(path, '.');

	if (str_has_prefix(path, "output/"))
		return "output";
	return str_has_prefix(path, "logs/") || (dot && str_equal(dot, ".log")) ? "log"
	                                                                        : "artifact";
}

static json_t *view_digest(const struct artifact *a)
{
	char hex[2 * BOX_SHA256_LEN + 1] = "";

	for (size_t i = 0; i < BOX_SHA256_LEN; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", a->sha256[i]);
	return a->hashed ? json_string(hex) : json_null();
}

static json_t *view_artifact(const struct artifact *a, const char *session_id,
                             enum result_form form)
{
	cleanup_free char *url = session_id ? encode_file_url(session_id, a->path) : NULL;
	const char *type = media_type_of(a->path);
	json_t *j = json_object();
	char time[32];

	clock_format_utc(a->changed_ms, time, sizeof(time));
	json_set(j, "path", json_text(a->path, strlen(a->path)));
	json_set(j, "size", json_integer((json_int_t)a->size));
	json_set(j, "mime_type", json_stringn(type, strcspn(type, ";")));
	json_set(j, "type", json_string(artifact_kind(a->path)));
	json_set(j, "created_at", json_string(time));
	json_set(j, "sha256", view_digest(a));
	if (form == RESULT_OWN)
		return j;
	json_set(j, "checksum", view_digest(a));
	json_set(j, "download_url", url ? json_string(url) : json_null());
	return j;
}

static json_t *view_artifacts(const struct artifacts *artifacts, const char *session_id,
                              enum result_form form)
{
	json_t *list = json_array();

	for (size_t i = 0; i < artifacts->count; i++)
		json_append(list, view_artifact(&artifacts->list[i], session_id, form));
	return list;
}

json_t *encode_artifacts(const struct artifacts *artifacts, const char *session_id)
{
	return view_artifacts(artifacts, session_id, RESULT_SHARED);
}

void encode_result_report(const struct outcome *o, struct report *ret_report)
{
	/* Not our error: the program can write anything. */
	if (report_read(o->report.data, o->report.len, ret_report) < 0)
		log_ctx(LOG_LEVEL_DEBUG, NULL, "%s: ignoring a malformed report of the runner",
		        o->execution_id);
}

/* Members before the output ... */
static json_t *result_head(const struct outcome *o, const struct run_record_info *run,
                           enum result_form form)
{
	json_t *j = json_object();

	json_set(j, "execution_id", json_string(run ? run->id : o->execution_id));
	if (form == RESULT_SHARED)
		json_set(j, "session_id", run ? json_string(run->session_id) : json_null());
	json_set(j, "status",
	         json_string(!run         ? outcome_status_name(o->status)
	                     : run->later ? state_name(run)
	                                  : encode_run_status_name(run)));
	json_set(j, "exit_code", o->exited ? json_integer(o->exit_code) : json_null());
	json_set(j, "signal", o->signal ? json_integer(o->signal) : json_null());
	if (run)
		json_set(j, "id", json_string(run->id));
	return j;
}

static void set_record(json_t *j, const struct run_record_info *run, const struct report *report,
                       bool brief)
{
	json_set(j, "background", json_boolean(run->background));
	json_set(j, "tty", json_boolean(run->terminal));
	json_set(j, "language", encode_text(run->language));
	json_set(j, "code",
	         run->code && !brief ? json_text(run->code, run->code_len) : json_null());
	json_set(j, "timeout", encode_seconds(run->timeout_us));
	json_set(j, "return_value", json_incref(report->result));
	json_set(j, "error_message", error_message(run, report->error));
	json_set(j, "retry_count", json_integer(0));
	json_set(j, "created_at", encode_moment(run->created_ms));
	json_set(j, "started_at", encode_moment(run->started_ms));
	json_set(j, "completed_at", encode_moment(run->completed_ms));
	if (run->cuts)
		json_set(j, "limits", encode_cuts(run->cuts));
}

/* Success without a denial needs no explanation. */
static json_t *explain(const struct outcome *o, const struct report *report, bool ended)
{
	if (!ended || (o->status == OUTCOME_SUCCESS && o->denials_count == 0))
		return json_null();
	return encode_why(o, report->error);
}

static json_t *text_or_null(const char *text)
{
	return *text ? json_text(text, strlen(text)) : json_null();
}

static json_t *number_or_null(unsigned number)
{
	return number ? json_integer(number) : json_null();
}

static json_t *diagnostics(const struct diagnostics *all)
{
	json_t *list = json_array();

	for (size_t i = 0; i < all->count; i++) {
		const struct diagnostic *one = &all->list[i];
		json_t *j = json_object();

		json_set(j, "file", text_or_null(one->file));
		json_set(j, "line", number_or_null(one->line));
		json_set(j, "column", number_or_null(one->column));
		json_set(j, "severity", text_or_null(one->severity));
		json_set(j, "code", text_or_null(one->code));
		json_set(j, "message", text_or_null(one->message));
		json_append(list, j);
	}
	return list;
}

static json_t *compile_step(const struct outcome_compile *c)
{
	json_t *j = json_object();

	json_set(j, "succeeded", json_boolean(!c->failed));
	json_set(j, "cached", json_boolean(c->cached));
	json_set(j, "duration_ms", milliseconds(c->duration_us));
	return j;
}

/* Of compiled languages only. */
static void set_compile(json_t *j, const struct outcome_compile *c)
{
	if (!c->used)
		return;
	json_set(j, "phase", json_string(c->failed ? "compile" : "run"));
	json_set(j, "compile", compile_step(c));
	json_set(j, "diagnostics", diagnostics(&c->diagnostics));
}

static void set_flag(json_t *j, const char *name, bool value, enum result_form form)
{
	if (form == RESULT_SHARED || value)
		json_set(j, name, json_boolean(value));
}

/* ... and those after it. @run may be NULL. */
static json_t *result_tail(const struct outcome *o, const struct report *report,
                           const struct run_record_info *run, enum result_form form)
{
	bool ended = !run || run->outcome;
	json_t *j = json_object();

	set_flag(j, "stdout_truncated", o->out_truncated, form);
	set_flag(j, "stderr_truncated", o->err_truncated, form);
	json_set(j, "result", json_incref(report->result));
	json_set(j, "results", json_incref(report->results));
	json_set(j, "error", json_incref(report->error));
	if (form == RESULT_SHARED)
		json_set(j, "execution_time",
		         ended ? json_real((double)o->duration_us / 1e6) : json_null());
	json_set(j, "metrics", metrics(o, form));
	json_set(j, "limit", encode_text(outcome_limit_name(o->limit)));
	json_set(j, "denials", denials(o));
	json_set(j, "why", explain(o, report, ended));
	json_set(j, "artifacts",
	         view_artifacts(&o->artifacts, run && run->files_stay ? run->session_id : NULL,
	                        form));
	set_flag(j, "artifacts_truncated", o->artifacts.truncated, form);
	if (form == RESULT_SHARED)
		json_set(j, "session_reset", json_boolean(run && run->session_reset));
	if (o->receipt)
		json_set(j, "receipt", json_incref(o->receipt));
	set_compile(j, &o->compile);
	if (!run && o->limit == OUTCOME_LIMIT_HOST_MEMORY)
		json_set(j, "error_message", json_string(OUTCOME_HOST_MEMORY_REASON));
	return j;
}

static int add_output(struct buf *b, const char *key, const struct buf *output, bool marked)
{
	const char *text = output->data ? output->data : "";
	size_t len = output->len;
	cleanup_free char *stripped = marked ? markers_strip(text, len, &len) : NULL;

	if (buf_addf(b, ",\"%s\":", key) < 0)
		return -1;
	return json_add_text(b, stripped ? stripped : text, len);
}

int encode_result_add(struct buf *b, const struct outcome *o, const struct report *report,
                      const struct run_record_info *run)
{
	enum result_form form = run ? RESULT_SHARED : RESULT_OWN;
	json_t *tail;
	size_t joint;

	if (json_add(b, result_head(o, run, form)) < 0)
		return -1;
	b->len--; /* replaces the brace */
	if (add_output(b, "stdout", &o->out, o->handler) < 0 ||
	    add_output(b, "stderr", &o->err, false) < 0)
		return -1;
	joint = b->len;
	tail = result_tail(o, report, run, form);
	if (run)
		set_record(tail, run, report, false);
	if (json_add(b, tail) < 0)
		return -1;
	b->data[joint] = ',';
	b->len--;
	if (buf_add_str(b, ",\"isolation\":") < 0 || receipt_isolation_add(b, o) < 0)
		return -1;
	return buf_add(b, "}", 1);
}

json_t *encode_result_brief(const struct outcome *o, const struct report *report,
                            const struct run_record_info *run)
{
	json_t *j = result_head(o, run, RESULT_SHARED);
	cleanup_json json_t *tail = result_tail(o, report, run, RESULT_SHARED);
	int r;

	if (run)
		set_record(tail, run, report, true);
	json_set(j, "stdout", json_null());
	json_set(j, "stderr", json_null());
	json_set(j, "isolation", receipt_isolation(o));
	r = json_object_update(j, tail);
	assert(r == 0);
	(void)r;
	return j;
}

int encode_run_add(struct buf *b, const struct run_record_info *run)
{
	cleanup_report struct report report = {0};
	const struct outcome *o = run->outcome ? run->outcome : &nothing;

	encode_result_report(o, &report);
	return encode_result_add(b, o, &report, run);
}

json_t *encode_run_brief(const struct run_record *e)
{
	cleanup_report struct report unread = {0};
	struct run_record_info run = {0};

	run_record_info(e, &run);
	/* Parsing the reports of a page, perhaps megabytes of untrusted JSON each, would block the
	 * loop. */
	encode_result_report(&nothing, &unread);
	return encode_result_brief(run.outcome ? run.outcome : &nothing, &unread, &run);
}
