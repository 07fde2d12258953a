/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/run/run_record.h"
#include "core/session/session.h"
#include "http/status.h"
#include <stdlib.h>
#include <string.h>

/*
 * Theory of operation. A sandbox's log is the output of its executions, line by line, and its
 * states. Lines are collected backwards from the end, so the cost does not depend on its length. A
 * line's time is when its execution started.
 */

#define LINE_MAX_LEN 4096 /* returned of a line */
/* Searched for a response. */
#define LOG_EXECUTIONS 200

struct line {
	uint64_t at_ms;
	size_t order; /* among equal times, larger is earlier */
	const char *source, *text;
	size_t len;
	const char *execution_id; /* NULL: of the sandbox itself */
};

struct lines {
	struct line *all; /* owned */
	size_t count, room;
	const char *source; /* only this one; NULL: all */
};

static bool is_full(const struct lines *lines)
{
	return lines->count == lines->room;
}

static void add_line(struct lines *lines, const struct line *line)
{
	if (is_full(lines) || (lines->source && !str_equal(lines->source, line->source)))
		return;
	lines->all[lines->count] = *line;
	lines->all[lines->count].order = lines->count;
	lines->count++;
}

/* The last line first. */
static void add_text(struct lines *lines, struct line line, const struct buf *text)
{
	size_t end = text->len;

	if (end > 0 && text->data[end - 1] == '\n')
		end--;
	while (text->len > 0 && !is_full(lines)) {
		const char *at = end > 0 ? memrchr(text->data, '\n', end) : NULL;
		size_t start = at ? (size_t)(at - text->data) + 1 : 0;

		line.text = text->data + start;
		line.len = end - start;
		add_line(lines, &line);
		if (!at)
			return;
		end = start - 1;
	}
}

static void add_execution(struct lines *lines, const struct run_record *e)
{
	struct run_record_info info = {0};
	struct line line = {0};

	run_record_info(e, &info);
	line.at_ms = info.started_ms ? info.started_ms : info.created_ms;
	line.execution_id = info.id;
	line.source = "stderr";
	add_text(lines, line, run_record_printed(e, OUTPUT_STDERR));
	line.source = "stdout";
	add_text(lines, line, run_record_printed(e, OUTPUT_STDOUT));
}

static void add_states(struct lines *lines, const struct session *session)
{
	struct session_step steps[SESSION_HISTORY_MAX];
	size_t count = session_history(session, steps);

	while (count-- > 0) {
		const char *name = session_state_name(steps[count].state);

		add_line(lines, &(struct line){.at_ms = steps[count].at_ms,
		                               .source = "system",
		                               .text = name,
		                               .len = strlen(name)});
	}
}

static int by_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->at_ms != y->at_ms)
		return x->at_ms < y->at_ms ? -1 : 1;
	return x->order > y->order ? -1 : 1;
}

static json_t *view_line(const struct line *line)
{
	json_t *j = json_object(), *metadata = json_object();
	bool bad = str_equal(line->source, "stderr");

	json_set(j, "timestamp", encode_moment(line->at_ms));
	json_set(j, "level", json_string(bad ? "error" : "info"));
	json_set(j, "source", json_string(line->source));
	json_set(j, "message",
	         json_text(line->text, line->len < LINE_MAX_LEN ? line->len : LINE_MAX_LEN));
	if (line->execution_id)
		json_set(metadata, "execution_id", json_string(line->execution_id));
	json_set(j, "metadata", metadata);
	return j;
}

static void reply_lines(struct http_request *req, const char *id, const struct lines *lines,
                        uint64_t tail)
{
	size_t first = lines->count > tail ? lines->count - tail : 0;
	json_t *j = json_object(), *list = json_array();

	for (size_t i = first; i < lines->count; i++)
		(void)!json_array_append_new(list, view_line(&lines->all[i]));
	json_set(j, "sandbox_id", json_string(id));
	json_set(j, "total", json_integer((json_int_t)json_array_size(list)));
	json_set(j, "logs", list);
	json_set(j, "start_time",
	         first < lines->count ? encode_moment(lines->all[first].at_ms) : json_null());
	json_set(j, "end_time",
	         lines->count > 0 ? encode_moment(lines->all[lines->count - 1].at_ms)
	                          : json_null());
	json_set(j, "timestamp", sandboxes_now());
	reply_json(req, HTTP_OK, j);
}

struct log_query {
	uint64_t tail;
	const char *source; /* NULL: all */
};

static const char *const sources[] = {"stdout", "stderr", "system", NULL};

/* clang-format off */
static const struct field log_rows[] = {
	{"tail", FIELD_INTEGER, AT(struct log_query, tail), .max = 1000, .clamp = true, .fallback = "100", .description = "Lines; values over 1000 count as 1000."},
	{"source", FIELD_WORD, AT(struct log_query, source), .words = sources, .description = "Only lines from here."},
	FIELDS_END,
};
/* clang-format on */
const struct fields sandboxes_log_query = {.rows = log_rows};

void sandboxes_logs(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *tenant = args->principal->tenant;
	const struct session *session;
	const struct run_record *e;
	struct lines lines = {0};
	struct log_query query = {0};
	struct error err = {0};

	session = sandboxes_find(r, req, args, SANDBOXES_V2);
	if (!session)
		return;
	if (query_decode(req, args->query, &query, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	lines = (struct lines){.room = query.tail + SESSION_HISTORY_MAX, .source = query.source};
	lines.all = xcalloc(lines.room, sizeof(*lines.all));
	add_states(&lines, session);
	for (size_t i = 0; i < LOG_EXECUTIONS && !is_full(&lines); i++) {
		e = run_records_of(r->parts.executions, tenant, args->id, i);
		if (!e)
			break;
		add_execution(&lines, e);
	}
	qsort(lines.all, lines.count, sizeof(*lines.all), by_time);
	reply_lines(req, args->id, &lines, query.tail);
	free(lines.all);
}

static json_t *number(uint64_t value)
{
	return value == COUNTER_UNKNOWN ? json_null() : json_integer((json_int_t)value);
}

static json_t *percentage(double part, double whole)
{
	return whole > 0 ? json_real(part * 100 / whole) : json_null();
}

static json_t *view_cpu(const struct session_info *info, const struct box_counters *c, double up_s)
{
	double cores = info->limits.cpu_millicores / 1000.0, spent = (double)c->cpu_us / 1e6;
	bool known = c->cpu_us != COUNTER_UNKNOWN;
	json_t *j = json_object();

	json_set(j, "usage", known ? percentage(spent, up_s * cores) : json_null());
	json_set(j, "total_time", known ? json_real(spent) : json_null());
	/* Only the sum is known. */
	json_set(j, "user_time", json_null());
	json_set(j, "system_time", json_null());
	json_set(j, "cores", json_real(cores));
	return j;
}

static json_t *view_memory(const struct session_info *info, const struct box_counters *c)
{
	uint64_t total = info->limits.memory_bytes, used = c->memory_bytes;
	bool known = used != COUNTER_UNKNOWN;
	json_t *j = json_object(), *swap = json_object();

	json_set(j, "used", number(used));
	json_set(j, "total", json_integer((json_int_t)total));
	json_set(j, "available",
	         known ? json_integer(used < total ? (json_int_t)(total - used) : 0) : json_null());
	json_set(j, "usage", known ? percentage((double)used, (double)total) : json_null());
	json_set(j, "peak", number(c->memory_peak_bytes));
	/* Boxes have no swap. */
	json_set(swap, "used", json_integer(0));
	json_set(swap, "total", json_integer(0));
	json_set(swap, "usage", json_real(0));
	json_set(j, "swap", swap);
	return j;
}

static json_t *view_disk(const struct session_info *info)
{
	static const char *const unknown[] = {"used",      "available",  "usage",      "read_ops",
	                                      "write_ops", "read_bytes", "write_bytes"};
	json_t *j = json_object();

	json_set(j, "total", json_integer((json_int_t)info->limits.workspace_bytes));
	/* Counted as memory. */
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		json_set(j, unknown[i], json_null());
	return j;
}

static json_t *view_network(const struct session_info *info)
{
	static const char *const counters[] = {"bytes_received", "bytes_sent", "packets_received",
	                                       "packets_sent",   "errors",     "drops"};
	json_t *j = json_object();

	json_set(j, "mode", json_string(box_network_name(info->network)));
	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		json_set(j, counters[i],
		         info->network == BOX_NETWORK_NONE ? json_integer(0) : json_null());
	return j;
}

void sandboxes_metrics(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session_info info = {0};
	struct box_counters c;
	struct session *session;
	uint64_t now, up_ms;
	json_t *j;

	session = sandboxes_find(r, req, args, SANDBOXES_V2);
	if (!session)
		return;
	session_info(session, &info);
	session_counters(session, &c);
	now = clock_real_ms();
	up_ms = now > info.created_ms ? now - info.created_ms : 0;
	j = json_object();
	json_set(j, "sandbox_id", json_string(info.id));
	json_set(j, "cpu", view_cpu(&info, &c, (double)up_ms / 1000));
	json_set(j, "memory", view_memory(&info, &c));
	json_set(j, "disk", view_disk(&info));
	json_set(j, "network", view_network(&info));
	json_set(j, "processes", json_null());
	json_set(j, "processes_peak", number(c.pids_peak));
	/* Go clients read whole nanoseconds. */
	json_set(j, "uptime", json_integer((json_int_t)up_ms * 1000000));
	json_set(j, "last_updated", encode_moment(now));
	json_set(j, "metadata", encode_session_stats(session));
	reply_json(req, HTTP_OK, j);
}
