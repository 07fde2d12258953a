/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/op/session_log.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/config/config.h"
#include "core/config/engines.h"
#include "core/run/run_record.h"
#include "core/session/session.h"
#include "http/status.h"
#include <string.h>
#include <time.h>

/*
 * Theory of operation. The control plane's containers are the boxes of sessions that keep theirs,
 * and ephemeral sessions, which are not listed. The log is the latest output of a session's
 * executions.
 */

static const char *const words[] = {"created", "running", "paused", "exited", "deleting", NULL};
enum word {
	WORD_CREATED,
	WORD_RUNNING,
	WORD_PAUSED,
	WORD_EXITED,
	WORD_DELETING,
	WORD_COUNT
};
static_assert(ARRAY_SIZE(words) == WORD_COUNT + 1, "every state has its word");

struct container_query {
	struct query_page page;
	const char *engine; /* NULL: all */
};

struct log_query {
	uint64_t tail, since_ms;
};

/* Seconds since the epoch, or 2026-11-15T04:19:36Z. */
static int take_since(const struct field_value *v)
{
	uint64_t seconds, *ms = fields_target(v);
	struct tm tm = {0};
	const char *end;

	if (!v->text[0])
		return 0;
	if (parse_u64(v->text, &seconds) == 0 && seconds < UINT64_MAX / 1000) {
		*ms = seconds * 1000;
		return 0;
	}
	end = strptime(v->text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (end && *end == '.')
		end += 1 + strspn(end + 1, "0123456789");
	if (!end || (!str_equal(end, "Z") && !str_equal(end, "+00:00") && *end))
		return fields_wrong(v, "seconds since 1970 or a time like 2026-11-15T04:19:36Z");
	*ms = (uint64_t)timegm(&tm) * 1000;
	return 0;
}

/* clang-format off */
static const struct field list_rows[] = {
	QUERY_STATUS_ROW(words),
	{"runtime_type", FIELD_STRING, AT(struct container_query, engine), .description = "Only containers of this engine."},
	QUERY_PAGE_ROWS,
	FIELDS_END,
};
const struct fields v1_container_query = {.rows = list_rows};

static const struct field log_rows[] = {
	{"tail", FIELD_INTEGER, AT(struct log_query, tail), .max = 10000, .clamp = true, .fallback = "100", .description = "Lines; values over 10000 count as 10000."},
	{"since", FIELD_CUSTOM, AT(struct log_query, since_ms), .check = take_since, .schema = "{\"type\": \"string\"}", .description = "Seconds since 1970 or an RFC 3339 time in UTC."},
	FIELDS_END,
};
const struct fields v1_container_log_query = {.rows = log_rows};
/* clang-format on */

static const char *status_word(const struct session_info *info)
{
	static const enum word states[] = {
		[SESSION_CREATING] = WORD_CREATED,  [SESSION_READY] = WORD_RUNNING,
		[SESSION_RUNNING] = WORD_RUNNING,   [SESSION_PAUSED] = WORD_PAUSED,
		[SESSION_TERMINATED] = WORD_EXITED, [SESSION_FAILED] = WORD_EXITED,
	};
	enum word word = states[info->state];

	static_assert(ARRAY_SIZE(states) == SESSION_STATE_COUNT, "every state has its word");
	return words[word == WORD_EXITED && info->box_id ? WORD_DELETING : word];
}

static const char *container_name(const struct session_info *info)
{
	return info->container_id ? info->container_id : info->id;
}

static json_t *view_container(const struct session *session)
{
	struct session_info info = {0};
	json_t *j = json_object();
	cleanup_json json_t *whole = encode_session(session);
	static const char *const same[] = {"session_id", "template_id", "runtime_type",
	                                   "resources",  "created_at",  "pod_name"};
	uint64_t until;

	session_info(session, &info);
	until = info.ended_ms ? info.ended_ms : clock_real_ms();
	json_set(j, "container_id", json_string(container_name(&info)));
	json_set(j, "id", json_string(container_name(&info)));
	json_set(j, "status", json_string(status_word(&info)));
	json_set(j, "node_name", json_incref(json_object_get(whole, "runtime_node")));
	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		json_t *value = json_object_get(whole, same[i]);

		json_set(j, same[i], value ? json_incref(value) : json_null());
	}
	json_set(j, "exited_at", json_incref(json_object_get(whole, "completed_at")));
	json_set(
		j, "uptime_seconds",
		json_integer((json_int_t)(until > info.created_ms ? (until - info.created_ms) / 1000
	                                                          : 0)));
	return j;
}

/* Clients of other systems ask for theirs. */
static bool is_engine(const struct router *r, const char *name)
{
	return engine_runtime_find(name) || engines_find(r->config, name) ||
	       str_equal(name, "kubernetes");
}

/* Walks all of the tenant's sessions, a limited number: some have no box. */
void v1_container_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *tenant = args->principal->tenant;
	const struct session *session;
	struct container_query query = {0};
	struct query_page *page = &query.page;
	struct error err = {0};

	if (query_page(req, args->query, page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	if (query.engine && !is_engine(r, query.engine)) {
		(void)error_field(&err, "runtime_type", "there is no engine '%.32s'", query.engine);
		reply_error(req, &err);
		return;
	}
	session = session_at(r->parts.sessions, tenant, 0);
	for (; session; session = session_older(session)) {
		struct session_info info = {0};

		session_info(session, &info);
		if (query.engine && !str_equal(query.engine, info.engine))
			continue;
		if (info.container_id && query_page_wants(page, status_word(&info)))
			query_page_add(page, view_container(session));
	}
	reply_json(req, HTTP_OK, query_page_object(page, "containers", page->matched));
}

/* An ephemeral session is known as a container by its own id. */
static struct session *find_ephemeral(struct router *r, const struct route_args *args)
{
	struct session *session =
		session_find(r->parts.sessions, args->principal->tenant, args->id);
	struct session_info info = {0};

	if (session)
		session_info(session, &info);
	return session && info.mode == SESSION_EPHEMERAL ? session : NULL;
}

static struct session *find_container(struct router *r, struct http_request *req,
                                      const struct route_args *args)
{
	struct session *session =
		args->id[0] ? session_find_box(r->parts.sessions, args->principal->tenant, args->id)
			    : NULL;
	struct error err = {0};

	if (!session && args->id[0])
		session = find_ephemeral(r, args);

	if (!session) {
		(void)error_set(&err, ERR_NOT_FOUND, 0, "no container has this id");
		reply_error(req, &err);
	}
	return session;
}

void v1_container_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct session *session = find_container(r, req, args);

	if (session)
		reply_json(req, HTTP_OK, view_container(session));
}

void v1_container_health(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session = find_container(r, req, args);
	struct session_info info = {0};
	bool healthy;
	json_t *j;

	if (!session)
		return;
	session_info(session, &info);
	healthy = info.state == SESSION_READY || info.state == SESSION_RUNNING ||
	          info.state == SESSION_PAUSED;
	j = encode_session_stats(session);
	json_set(j, "container_id", json_string(container_name(&info)));
	json_set(j, "container_status", json_string(status_word(&info)));
	json_set(j, "healthy", json_boolean(healthy));
	json_set(j, "status",
	         json_string(healthy                          ? "healthy"
	                     : info.state == SESSION_CREATING ? "starting"
	                                                      : "unhealthy"));
	reply_json(req, HTTP_OK, j);
}

static void answer_log(struct http_request *req, const char *id, const struct buf *log,
                       uint64_t tail)
{
	const char *accept = http_header(req, "Accept");
	struct http_answer answer = {.status = HTTP_OK,
	                             .content_type = "text/plain; charset=utf-8"};
	cleanup_free char *text = NULL;
	json_t *j;

	if (accept && strstr(accept, "application/json")) {
		j = json_object();
		json_set(j, "container_id", json_string(id));
		json_set(j, "logs", json_text(log->len ? log->data : "", log->len));
		json_set(j, "tail", json_integer((json_int_t)tail));
		reply_json(req, HTTP_OK, j);
		return;
	}
	text = utf8_sanitize(log->len ? log->data : "", log->len, &answer.len);
	answer.body = text;
	http_reply(req, &answer);
}

void v1_container_logs(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session = find_container(r, req, args);
	cleanup_buf struct buf log = BUF_INIT(SESSION_LOG_ROOM);
	struct session_info info = {0};
	struct log_query query = {0};
	struct error err = {0};

	if (!session)
		return;
	if (query_decode(req, args->query, &query, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	session_info(session, &info);
	session_log_tail(r->parts.executions, &info, query.since_ms, query.tail, &log);
	answer_log(req, container_name(&info), &log, query.tail);
}
