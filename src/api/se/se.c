/* SPDX-License-Identifier: Apache-2.0 */
#include "api/se/se.h"

#include "api/json/fields.h"
#include "api/json/json.h"
#include "api/op/file.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"
#include "base/str.h"
#include "core/identity/scope.h"
#include "core/observe/audit.h"
#include "core/request/workpath.h"
#include "core/session/session.h"
#include "http/status.h"
#include <string.h>

#define OWN_AGENT "workspace-se"
#define SIZE      (100 * MIB)
#define MEMORY    (512 * MIB)
#define HOUR_US   (3600 * USEC_PER_SEC)
#define IDLE_US   (24 * HOUR_US)
#define LIFE_US   (7 * 24 * HOUR_US)

/* The second version's codes for some of the core's errors. The misspelling is the real name. */
static const struct {
	enum error_code code;
	const char *text;
	int status;
} v2_codes[] = {
	{ERR_INVALID, "Sandbox.InvalidParameter", HTTP_BAD_REQUEST},
	{ERR_BAD_JSON, "Sandbox.InvalidParameter", HTTP_BAD_REQUEST},
	{ERR_NO_LANGUAGE, "Sandbox.InvalidParameter", HTTP_BAD_REQUEST},
	{ERR_TOO_LARGE, "Sandbox.InvalidParameter", HTTP_CONTENT_TOO_LARGE},
	{ERR_BUSY, "Sandbox.TooManyRequestsExection", HTTP_SERVICE_UNAVAILABLE},
	{ERR_UNAVAILABLE, "Sandbox.NotInitialized", HTTP_SERVICE_UNAVAILABLE},
	{ERR_SYSTEM, "Sandbox.InternalError", HTTP_INTERNAL_SERVER_ERROR},
	{ERR_BOX_FAILED, "Sandbox.InternalError", HTTP_INTERNAL_SERVER_ERROR},
	{ERR_AGENT_LOST, "Sandbox.InternalError", HTTP_INTERNAL_SERVER_ERROR},
};

static json_t *error_object(const struct error *err, const char *request_id, int *status)
{
	json_t *j = reply_error_shared(err, request_id);

	if (err->code == ERR_BUSY)
		*status = HTTP_SERVICE_UNAVAILABLE;
	json_set(j, "type",
	         json_string(error_is_internal(err) ? "UnexpectedError" : "SandboxError"));
	return j;
}

static json_t *wrap_detail(json_t *detail)
{
	json_t *j = json_object();

	json_set(j, "detail", detail);
	return j;
}

/* Its clients read `detail` of a refused request as text, that of a failed one as an object. */
json_t *se_error_body(const struct error *err, const char *request_id, int *status)
{
	json_t *j = error_object(err, request_id, status);

	return *status < HTTP_INTERNAL_SERVER_ERROR ? j : wrap_detail(j);
}

json_t *se_v2_error_body(const struct error *err, const char *request_id, int *status)
{
	json_t *j = wrap_detail(error_object(err, request_id, status));

	for (size_t i = 0; i < ARRAY_SIZE(v2_codes); i++)
		if (v2_codes[i].code == err->code) {
			json_set(json_object_get(j, "detail"), "error_code",
			         json_string(v2_codes[i].text));
			*status = v2_codes[i].status;
		}
	return j;
}

json_t *se_envelope(json_t *body, json_t *result)
{
	json_set(body, "result", result ? result : json_copy(body));
	return body;
}

void se_reply(struct http_request *req, json_t *body, json_t *result)
{
	reply_json(req, SE_OK, se_envelope(body, result));
}

int se_decode(struct http_request *req, const struct route_args *args, const struct fields *fields,
              void *out)
{
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);
	cleanup_json json_t *object = len > 0 ? json_read_object(body, len, &err) : json_object();

	if (object && fields_decode_open(fields, object, NULL, args->warnings, out, &err) == 0)
		return 0;
	reply_error(req, &err);
	return -1;
}

static bool is_over(const struct session *session)
{
	struct session_info info = {0};

	session_info(session, &info);
	return info.state == SESSION_TERMINATED || info.state == SESSION_FAILED;
}

bool se_is_own(const struct session *session)
{
	struct session_info info = {0};

	session_info(session, &info);
	return info.agent_id && str_equal(info.agent_id, OWN_AGENT);
}

struct session *se_session_known(struct router *r, const struct route_args *args)
{
	struct session *session =
		args->id[0] ? session_find(r->parts.sessions, args->principal->tenant, args->id)
			    : NULL;

	return session && !is_over(session) ? session : NULL;
}

struct session *se_session_create_named(struct router *r, const struct route_args *args,
                                        uint64_t size, const char *request_id, struct error *err)
{
	struct session_request request = {
		.tenant = args->principal->tenant,
		.key_id = args->principal->key_id,
		.request_id = request_id,
		.id = (char *)(uintptr_t)args->id,
		.agent_id = (char *)OWN_AGENT,
		.mode = SESSION_PERSISTENT,
		.idle_timeout_us = IDLE_US,
		.lifetime_us = LIFE_US,
		.disk_bytes = size ? size : SIZE,
	};
	struct session *old, *session = NULL;
	bool reused;

	if (!args->id[0]) {
		(void)error_field(err, "session_id", "must be 1 to %d of A-Z a-z 0-9 _ -",
		                  SESSION_ID_MAX);
		return NULL;
	}
	/* Files are memory, and at most half of it: request twice as much. */
	if (2 * request.disk_bytes > MEMORY)
		request.memory_bytes = 2 * request.disk_bytes;
	/* The name of an ended session may be used again. */
	old = session_find(r->parts.sessions, args->principal->tenant, args->id);
	if (old && is_over(old))
		session_delete(old);
	if (session_create(r->parts.sessions, &request, &session, &reused, err) < 0)
		return NULL;
	return session;
}

/* Any route creates a session: it needs the scope of POST /session. */
static bool may_create(const struct router *r, const struct route_args *args, struct error *err)
{
	if (!scope_allows(args->principal->scopes, SCOPE_SESSIONS)) {
		(void)error_set(err, ERR_NO_SCOPE, 0,
		                "no session has this id, and creating one needs scope sessions");
		return false;
	}
	return audit_check(r->parts.audit, err) == 0;
}

struct session *se_session(struct router *r, struct http_request *req,
                           const struct route_args *args)
{
	struct session *session = se_session_known(r, args);
	struct error err = {0};

	/* Not GET or HEAD: a page could create sessions with links. */
	if (!session && !str_equal(http_method(req), "POST"))
		(void)error_set(&err, ERR_NOT_FOUND, 0, "no session has this id");
	else if (!session && may_create(r, args, &err))
		session = se_session_create_named(r, args, 0, http_request_id(req), &err);
	if (!session)
		reply_error(req, &err);
	return session;
}

int se_path(struct http_request *req, const char *path, const char *field, char *ret_path)
{
	struct error err = {0};

	if (workpath_clean(path, WORKPATH_STRIP, field, ret_path, &err) == 0)
		return 0;
	reply_error(req, &err);
	return -1;
}

json_t *se_view_files(const struct file_item *items, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		const struct file_item *item = &items[i];
		json_t *j;
		char at[40];

		if (str_equal(item->path, "stdout.log") || str_equal(item->path, "stderr.log"))
			continue;
		clock_format_utc(item->mtime_ns / 1000000, at, sizeof(at));
		j = json_object();
		json_set(j, "name", json_text(item->path, strlen(item->path)));
		json_set(j, "filename", json_incref(json_object_get(j, "name")));
		json_set(j, "size", json_integer((json_int_t)item->size));
		json_set(j, "type",
		         json_string(item->type == BOX_FILE_DIRECTORY ? "directory" : "file"));
		json_set(j, "modified_at", json_string(at));
		json_append(list, j);
	}
	return list;
}
