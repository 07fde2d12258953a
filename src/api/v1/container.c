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
#include "core/run/run_record.h"
#include "core/session/session.h"
#include "http/status.h"
#include <string.h>
#include <time.h>

/*
 * Theory of operation. The control plane's containers are the boxes of persistent sessions, which
 * live long enough to be inspected. A box is known as long as its session is. Its log is the latest
 * output of its executions.
 */

#define TAIL_DEFAULT 100
#define TAIL_MAX     10000

static const char *const words[] = {"created", "running", "paused", "exited", "deleting"};
enum word {
	WORD_CREATED,
	WORD_RUNNING,
	WORD_PAUSED,
	WORD_EXITED,
	WORD_DELETING,
	WORD_COUNT
};
static_assert(ARRAY_SIZE(words) == WORD_COUNT, "every state has its word");

static const char *word_of(const struct session_info *info)
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
	json_set(j, "container_id", json_string(info.container_id));
	json_set(j, "id", json_string(info.container_id));
	json_set(j, "status", json_string(word_of(&info)));
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

static int check_type(const struct http_request *req, bool *ret_none, struct error *err)
{
	const char *type = http_query(req, "runtime_type");

	*ret_none = type && (str_equal(type, "docker") || str_equal(type, "kubernetes"));
	if (!type || *ret_none || str_equal(type, "native"))
		return 0;
	return error_field(err, "runtime_type", "must be native, docker or kubernetes");
}

/* Walks all sessions of the tenant, because some have no box; their number is limited. */
void v1_container_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *tenant = args->principal->tenant;
	const struct session *session;
	struct query_page page;
	struct error err = {0};
	bool none;
	size_t matched = 0;

	if (check_type(req, &none, &err) < 0 ||
	    query_page(req, words, ARRAY_SIZE(words), &page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	session = none ? NULL : session_at(r->parts.sessions, tenant, 0);
	for (; session; session = session_older(session)) {
		struct session_info info = {0};

		session_info(session, &info);
		if (!info.container_id || (page.status && !str_equal(page.status, word_of(&info))))
			continue;
		if (matched >= page.offset && matched - page.offset < page.limit)
			query_page_add(&page, view_container(session));
		matched++;
	}
	page.matched = matched;
	reply_json(req, HTTP_OK, query_page_object(&page, "containers", matched));
}

static struct session *find_container(struct router *r, struct http_request *req,
                                      const struct route_args *args)
{
	struct session *session =
		args->id[0] ? session_find_box(r->parts.sessions, args->principal->tenant, args->id)
			    : NULL;
	struct error err = {0};

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
	json_set(j, "container_id", json_string(info.container_id));
	json_set(j, "container_status", json_string(word_of(&info)));
	json_set(j, "healthy", json_boolean(healthy));
	json_set(j, "status",
	         json_string(healthy                          ? "healthy"
	                     : info.state == SESSION_CREATING ? "starting"
	                                                      : "unhealthy"));
	reply_json(req, HTTP_OK, j);
}

/* Seconds since the epoch, or 2026-11-15T04:19:36Z. */
static int read_since(const struct http_request *req, uint64_t *ret_ms, struct error *err)
{
	const char *text = http_query(req, "since");
	struct tm tm = {0};
	uint64_t seconds;
	const char *end;

	*ret_ms = 0;
	if (!text || !*text)
		return 0;
	if (parse_u64(text, &seconds) == 0 && seconds < UINT64_MAX / 1000) {
		*ret_ms = seconds * 1000;
		return 0;
	}
	end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (end && *end == '.')
		end += 1 + strspn(end + 1, "0123456789");
	if (!end || (!str_equal(end, "Z") && !str_equal(end, "+00:00") && *end))
		return error_field(
			err, "since",
			"must be seconds since 1970 or a time like 2026-11-15T04:19:36Z");
	*ret_ms = (uint64_t)timegm(&tm) * 1000;
	return 0;
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
	struct error err = {0};
	uint64_t tail = TAIL_DEFAULT, since_ms;

	if (!session)
		return;
	if (query_u64(req, "tail", UINT64_MAX, &tail, &err) < 0 ||
	    read_since(req, &since_ms, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	if (tail > TAIL_MAX)
		tail = TAIL_MAX;
	session_info(session, &info);
	session_log_tail(r->parts.executions, &info, since_ms, tail, &log);
	answer_log(req, info.container_id, &log, tail);
}
