/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/encode.h"
#include "api/json/encode_file.h"
#include "api/json/json.h"
#include "api/json/report.h"
#include "api/op/download.h"
#include "api/op/outputs.h"
#include "api/reply.h"
#include "api/tools/remedy.h"
#include "api/tools/sandbox_uri.h"
#include "api/tools/shorten.h"
#include "base/alloc.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/config/config.h"
#include "core/policy/policy.h"
#include "core/run/markers.h"
#include "core/run/run_record.h"
#include "http/media_type.h"
#include "json/json_dump.h"
#include <string.h>

/*
 * Theory of operation. A program's end becomes text for the model, a result object with the keys
 * that clients read, and items that clients display: figures, links to files. Output in text and
 * object is shortened; a resource has all of it.
 */

#define TEXT_MAX  (1u << 20)
#define LINKS_MAX 20
#define FRAMES    12 /* kept lines of a traceback */
#define LOST_TEXT                                                                                  \
	"the interpreter was lost: variables and imports of this session are gone, its files "     \
	"remain"

struct stream {
	char *text; /* owned; UTF-8 */
	size_t len;
	struct buf brief;
	bool cut; /* @brief is shorter than @text */
};

struct summary {
	struct call *call;
	const struct run_record_info *run;
	const struct outcome *o;
	size_t room; /* bytes of a text: mcp.max_text */
	struct report report;
	struct stream streams[OUTPUT_COUNT];
};

static const char *const stream_names[] = {[OUTPUT_STDOUT] = "stdout", [OUTPUT_STDERR] = "stderr"};
static_assert(ARRAY_SIZE(stream_names) == OUTPUT_COUNT, "every stream has its name");

/* How the reader gets all of it: a tool that is listed, or a resource. */
static char *name_output(const struct summary *t, enum output_stream which)
{
	if (t->call->brief)
		return xasprintf("read_output, execution_id \"%s\", stream \"%s\"", t->run->id,
		                 stream_names[which]);
	return xasprintf(SANDBOX_URI_EXECUTION "%s/%s", t->run->id, stream_names[which]);
}

static void read_stream(struct summary *t, enum output_stream which)
{
	const struct buf *raw = which == OUTPUT_STDOUT ? &t->o->out : &t->o->err;
	const char *data = raw->data ? raw->data : "";
	struct stream *s = &t->streams[which];
	size_t len = raw->len;
	cleanup_free char *stripped = t->o->handler ? markers_strip(data, len, &len) : NULL;
	cleanup_free char *where = name_output(t, which);

	s->text = utf8_sanitize(stripped ? stripped : data, len, &s->len);
	buf_init(&s->brief, TEXT_MAX + t->room);
	s->cut = shorten(&s->brief, s->text, s->len, t->room, where) > 0;
}

bool tool_is_image(const char *type)
{
	return str_equal(type, "image/png") || str_equal(type, "image/jpeg") ||
	       str_equal(type, "image/gif") || str_equal(type, "image/webp");
}

json_t *tool_image(const char *type, json_t *data)
{
	json_t *item = json_object();

	json_set(item, "type", json_string("image"));
	json_set(item, "data", data);
	json_set(item, "mimeType", json_string(type));
	return item;
}

/* Figures become content items. Return: owned. */
static json_t *split_results(const struct summary *t, json_t *content)
{
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(t->report.results); i++) {
		json_t *one = json_array_get(t->report.results, i), *kept = json_object(), *value;
		const char *type;

		json_object_foreach (one, type, value) {
			if (!tool_is_image(type))
				json_set(kept, type, json_incref(value));
			else if (json_is_string(value))
				(void)!json_array_append_new(content,
				                             tool_image(type, json_incref(value)));
		}
		(void)!json_array_append_new(list, kept);
	}
	return list;
}

static json_t *error_message(const struct summary *t)
{
	const char *name = json_string_value(json_object_get(t->report.error, "name"));
	const char *value = json_string_value(json_object_get(t->report.error, "value"));

	if (t->o->status == OUTCOME_SUCCESS)
		return json_null();
	if (t->o->status == OUTCOME_TIMEOUT)
		return json_sprintf(
			"Execution timed out after %.3g seconds.",
			(double)(t->run->timeout_us ? t->run->timeout_us : t->o->duration_us) /
				1e6);
	if (name)
		return json_sprintf("%s: %s", name, value ? value : "");
	if (outcome_limit_name(t->o->limit))
		return json_sprintf("The %s limit was reached.", outcome_limit_name(t->o->limit));
	return json_sprintf("Exit code %d.", t->o->exit_code);
}

static void set_output(const struct summary *t, json_t *j)
{
	bool cut = t->o->out_truncated || t->o->err_truncated;

	for (size_t i = 0; i < OUTPUT_COUNT; i++) {
		const struct stream *s = &t->streams[i];

		if (t->call->whole) {
			json_set(j, stream_names[i], json_text(s->text, s->len));
			continue;
		}
		json_set(j, stream_names[i],
		         json_text(s->brief.data ? s->brief.data : "", s->brief.len));
		cut |= s->cut;
	}
	json_set(j, "stdout_size", json_integer((json_int_t)t->o->stdout_bytes));
	json_set(j, "stderr_size", json_integer((json_int_t)t->o->stderr_bytes));
	json_set(j, "output_truncated", json_boolean(cut));
}

/* Adds figures to @content. */
static json_t *make_structured(struct summary *t, json_t *content)
{
	json_t *j = encode_result_brief(t->o, &t->report, NULL);
	double ms = (double)t->o->duration_us / 1e3;
	enum outcome_status status = t->o->status;
	bool exited = (t->o->exited || t->o->signal) && status != OUTCOME_TIMEOUT;
	/* Callers without a session expect a stateless sandbox's words. */
	bool plain = t->run->session_id || status == OUTCOME_SUCCESS || status == OUTCOME_TIMEOUT;

	json_set(j, "execution_id", json_string(t->run->id));
	json_set(j, "session_id",
	         t->run->session_id ? json_string(t->run->session_id) : json_null());
	json_set(j, "status", json_string(plain ? outcome_status_name(status) : "execution_error"));
	json_set(j, "outcome", json_string(outcome_status_name(status)));
	json_set(j, "exit_code", json_integer(exited ? t->o->exit_code : -1));
	set_output(t, j);
	(void)!json_object_update(j, t->call->asked);
	json_set(j, "results", split_results(t, content));
	json_set(j, "return_value", json_incref(t->report.result));
	json_set(
		j, "artifacts",
		encode_artifacts(&t->o->artifacts, t->run->files_stay ? t->run->session_id : NULL));
	json_set(j, "session_reset", json_boolean(t->run->session_reset));
	json_set(j, "duration", json_real((double)t->o->duration_us / 1e6));
	json_set(j, "execution_time_ms", json_real(ms));
	json_set(j, "timed_out", json_boolean(status == OUTCOME_TIMEOUT));
	json_set(j, "error_message", error_message(t));
	return j;
}

static void add_stream(const struct summary *t, struct buf *b, enum output_stream which)
{
	const struct stream *s = &t->streams[which];

	if (s->brief.len == 0)
		return;
	if (which == OUTPUT_STDERR)
		(void)!buf_addf(b, "[stderr]\n");
	(void)!buf_add(b, s->brief.data, s->brief.len);
	if (s->brief.data[s->brief.len - 1] != '\n')
		(void)!buf_add_str(b, "\n");
}

static void add_shortened(const struct summary *t, struct buf *b, const char *text)
{
	(void)!shorten(b, text, strlen(text), t->room / 4, NULL);
	(void)!buf_add_str(b, "\n");
}

/* Of the last line or the handler. */
static void add_values(const struct summary *t, struct buf *b, bool marked)
{
	bool shown = false;

	for (size_t i = 0; i < json_array_size(t->report.results); i++) {
		const char *text = json_string_value(
			json_object_get(json_array_get(t->report.results, i), "text/plain"));

		if (text) {
			(void)!buf_add_str(b, marked ? "[result] " : "");
			add_shortened(t, b, text);
			shown = true;
		}
	}
	if (!shown && !json_is_null(t->report.result)) {
		cleanup_free char *text = json_dump_text(t->report.result, 0);

		(void)!buf_add_str(b, marked ? "[return value] " : "");
		add_shortened(t, b, text ? text : "");
	}
}

/* Mostly on stderr too; a persistent interpreter reports it only here. */
static void add_exception(const struct summary *t, struct buf *b)
{
	const json_t *frames = json_object_get(t->report.error, "traceback");
	const char *name = json_string_value(json_object_get(t->report.error, "name"));
	const char *value = json_string_value(json_object_get(t->report.error, "value"));
	size_t count = json_array_size(frames), i = count > FRAMES ? count - FRAMES : 0;

	if (!name || (*name && strstr(t->streams[OUTPUT_STDERR].text, name)))
		return;
	for (; i < count; i++) {
		const char *line = json_string_value(json_array_get(frames, i));

		(void)!shorten(b, line ? line : "", line ? strlen(line) : 0, t->room / 4, NULL);
		if (line && *line && line[strlen(line) - 1] != '\n')
			(void)!buf_add_str(b, "\n");
	}
	(void)!buf_addf(b, "[error] %s: ", name);
	add_shortened(t, b, value ? value : "");
}

/* For limits that end a program. */
static const char *const advice[] = {
	[OUTCOME_LIMIT_TIME] = "out of time; use a larger timeout or do less at once",
	[OUTCOME_LIMIT_CPU] = "out of processor time",
	[OUTCOME_LIMIT_MEMORY] = "out of memory, files included; memory_limit can be larger",
	[OUTCOME_LIMIT_PROCESSES] = "too many processes and threads; use fewer",
	[OUTCOME_LIMIT_OUTPUT] = "too much output; write long output to a file",
	[OUTCOME_LIMIT_DISK] = "/workspace is full; remove files, or ask for a larger disk_limit",
	[OUTCOME_LIMIT_HOST_MEMORY] = "the host ran short of memory; use less, or try again later",
};
static_assert(ARRAY_SIZE(advice) == OUTCOME_LIMIT_COUNT, "every limit has its advice");

void tool_add_cuts(struct buf *b, const struct policy_cuts *cuts)
{
	for (size_t i = 0; cuts && i < cuts->count; i++) {
		const struct policy_cut *cut = &cuts->list[i];

		(void)!buf_addf(b, "[%s: %s was requested, %s is granted: %s]\n", cut->name,
		                cut->asked, cut->granted, cut->why);
	}
}

static void add_end(const struct summary *t, struct buf *b)
{
	const struct outcome *o = t->o;

	if (o->status == OUTCOME_TIMEOUT)
		(void)!buf_addf(b, "[timed out after %.3g s; its output until then is above]\n",
		                (double)o->duration_us / 1e6);
	else if (o->signal)
		(void)!buf_addf(b, "[ended by signal %d]\n", o->signal);
	else if (o->status == OUTCOME_FAILED)
		(void)!buf_addf(b, "[exit code %d]\n", o->exit_code);
	else if (o->status != OUTCOME_SUCCESS)
		(void)!buf_addf(b, "[%s]\n", outcome_status_name(o->status));
	if (o->limit != OUTCOME_LIMIT_NONE && advice[o->limit])
		(void)!buf_addf(b, "[limit: %s]\n", advice[o->limit]);
	tool_add_cuts(b, t->run->cuts);
	if (t->run->session_reset)
		(void)!buf_add_str(b, "[" LOST_TEXT "]\n");
}

/* What was refused; else what the output hints at. */
static void add_denials(const struct summary *t, struct buf *b)
{
	const char *change = NULL, *hint = encode_hint(t->o, t->report.error, &change);

	for (unsigned i = 0; i < t->o->denials_count && i < DENIALS_MAX; i++) {
		const struct denial *d = &t->o->denials[i];
		cleanup_json json_t *remedy = d->remedy ? json_loads(d->remedy, 0, NULL) : NULL;
		const char *text = json_string_value(json_object_get(remedy, "text"));

		(void)!buf_addf(b, "[denied by rule %s: %s%.95s (%llu time%s)%s", d->rule,
		                str_equal(d->kind, DENIAL_KIND_LIMIT) ? "more " : "", d->what,
		                (unsigned long long)d->count, d->count == 1 ? "" : "s",
		                text ? ". " : "");
		remedy_add_text(text ? text : "", b);
		(void)!buf_add_str(b, "]\n");
	}
	if (hint)
		(void)!buf_addf(b, "[%s %s]\n", hint, change);
}

static void add_artifacts(const struct summary *t, struct buf *b)
{
	const struct artifacts *a = &t->o->artifacts;

	for (size_t i = 0; i < a->count && i < LINKS_MAX; i++)
		(void)!buf_addf(b, "[file] %s (%llu bytes)\n", a->list[i].path,
		                (unsigned long long)a->list[i].size);
	if (a->count > LINKS_MAX)
		(void)!buf_addf(b, "[and %zu more files]\n", a->count - LINKS_MAX);
	if (a->count > 0 && !t->run->files_stay)
		(void)!buf_add_str(b, "[these files were deleted with their box; use a sandbox "
		                      "to keep files]\n");
}

static void set_text(json_t *j, const char *name, const struct buf *b)
{
	size_t len = b->len;

	while (len > 0 && b->data[len - 1] == '\n')
		len--;
	if (len > 0)
		json_set(j, name, json_text(b->data, len));
}

static json_t *list_paths(const struct artifacts *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->count && i < LINKS_MAX; i++)
		json_append(list, json_text(a->list[i].path, strlen(a->list[i].path)));
	return list;
}

/* What went wrong. The exception is in the output if the program printed it. */
static void add_failure(const struct summary *t, struct buf *b)
{
	cleanup_json json_t *message = error_message(t);

	add_exception(t, b);
	if (b->len == 0 && json_is_string(message))
		(void)!buf_addf(b, "%s\n", json_string_value(message));
	if (t->o->limit != OUTCOME_LIMIT_NONE && advice[t->o->limit])
		(void)!buf_addf(b, "%s\n", advice[t->o->limit]);
	if (t->run->session_reset)
		(void)!buf_add_str(b, LOST_TEXT "\n");
	add_denials(t, b);
}

/* For a model; adds figures to @content. What there is not is left out. */
static json_t *make_brief(struct summary *t, json_t *content)
{
	cleanup_buf struct buf output = BUF_INIT(TEXT_MAX + 2 * t->room),
			       error = BUF_INIT(TEXT_MAX + 2 * t->room),
			       result = BUF_INIT(TEXT_MAX + t->room), cuts = BUF_INIT(TEXT_MAX);
	json_t *j = json_object();

	json_decref(split_results(t, content));
	add_stream(t, &output, OUTPUT_STDOUT);
	add_stream(t, &output, OUTPUT_STDERR);
	add_values(t, &result, false);
	add_failure(t, &error);
	json_set(j, "status", json_string(outcome_status_name(t->o->status)));
	json_set(j, "output", json_text(output.data ? output.data : "", output.len));
	set_text(j, "result", &result);
	set_text(j, "error", &error);
	tool_add_cuts(&cuts, t->run->cuts);
	set_text(j, "warnings", &cuts);
	json_set(j, "limit",
	         outcome_limit_name(t->o->limit) ? json_string(outcome_limit_name(t->o->limit))
	                                         : json_null());
	json_set(j, "language", json_incref(json_object_get(t->call->asked, "language")));
	/* Weaker isolation is never silent. */
	if (t->o->isolation && t->o->isolation[0] && !str_equal(t->o->isolation, "strict"))
		json_set(j, "isolation", json_string(t->o->isolation));
	if (t->run->files_stay)
		json_set(j, "files", list_paths(&t->o->artifacts));
	return j;
}

static char *make_text(const struct summary *t)
{
	cleanup_buf struct buf b = BUF_INIT(TEXT_MAX + 4 * t->room);
	size_t len;

	add_stream(t, &b, OUTPUT_STDOUT);
	add_stream(t, &b, OUTPUT_STDERR);
	add_exception(t, &b);
	add_values(t, &b, true);
	add_end(t, &b);
	add_denials(t, &b);
	add_artifacts(t, &b);
	if (b.len == 0)
		(void)!buf_add_str(&b, "(no output)\n");
	return buf_take(&b, &len);
}

static json_t *make_link(char *uri, const char *name, const char *media_type, uint64_t size)
{
	json_t *item = json_object();

	json_set(item, "type", json_string("resource_link"));
	json_set(item, "uri", json_string(uri));
	json_set(item, "name", json_text(name, strlen(name)));
	json_set(item, "mimeType", json_stringn(media_type, strcspn(media_type, ";")));
	json_set(item, "size", json_integer((json_int_t)size));
	free(uri);
	return item;
}

static void add_links(const struct summary *t, json_t *content)
{
	const struct artifacts *a = &t->o->artifacts;

	for (size_t i = 0; t->run->files_stay && i < a->count && i < LINKS_MAX; i++) {
		const struct artifact *file = &a->list[i];

		(void)!json_array_append_new(
			content, make_link(sandbox_uri_file(t->run->session_id, file->path),
		                           file->path, media_type_of(file->path), file->size));
	}
	for (size_t i = 0; i < OUTPUT_COUNT; i++)
		if (t->streams[i].cut)
			(void)!json_array_append_new(
				content,
				make_link(xasprintf(SANDBOX_URI_EXECUTION "%s/%s", t->run->id,
			                            stream_names[i]),
			                  stream_names[i], "text/plain", t->streams[i].len));
}

void tool_result_finish(struct call *call, const struct run_record_info *run)
{
	struct summary t = {.call = call,
	                    .run = run,
	                    .o = run->outcome,
	                    .room = call->router->config->mcp_text_bytes};
	json_t *content = json_array(), *structured;
	struct buf whole[OUTPUT_COUNT] = {0};
	cleanup_free char *text = NULL;

	encode_result_report(t.o, &t.report);
	for (int i = 0; i < OUTPUT_COUNT; i++)
		read_stream(&t, (enum output_stream)i);
	/* A session's output is kept with its record. */
	for (size_t i = 0; i < OUTPUT_COUNT; i++)
		whole[i] = (struct buf){.data = t.streams[i].text, .len = t.streams[i].len};
	if (!run->session_id && (t.streams[OUTPUT_STDOUT].cut || t.streams[OUTPUT_STDERR].cut))
		outputs_keep(call->router->parts.outputs, call->principal->tenant, run->id, whole);
	text = make_text(&t);
	structured = call->brief ? make_brief(&t, content) : make_structured(&t, content);
	call->log = json_pack("{s:s, s:s, s:f}", "execution_id", run->id, "outcome",
	                      outcome_status_name(t.o->status), "duration",
	                      (double)t.o->duration_us / 1e6);
	if (!call->brief) /* some clients reject a result with links */
		add_links(&t, content);
	for (size_t i = 0; i < OUTPUT_COUNT; i++) {
		free(t.streams[i].text);
		buf_done(&t.streams[i].brief);
	}
	report_done(&t.report);
	tool_finish(call, text, structured, content, run->outcome->status != OUTCOME_SUCCESS);
}
