/* SPDX-License-Identifier: Apache-2.0 */
#include "api/se/se.h"

#include "api/durable_reply.h"
#include "api/json/encode.h"
#include "api/json/fields.h"
#include "api/json/json.h"
#include "api/op/file.h"
#include "api/op/health.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/session/session.h"
#include "core/session/session_files.h"
#include <string.h>

#define MOUNT_POINT "/workspace"

void se_healthy(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *j = json_object();

	(void)r;
	(void)args;
	json_set(j, "status", json_string("success"));
	se_reply(req, j, json_string("ok"));
}

void se_health(struct router *r, struct http_request *req, const struct route_args *args)
{
	(void)args;
	health_reply(r, req);
}

#define SIZE_WHAT "a size like \"100M\""

struct session_body {
	uint64_t size;
};

/* Twice the size must not overflow. */
static int check_size(const struct field_value *v)
{
	return *(uint64_t *)fields_target(v) < UINT64_MAX / 4 ? 0 : fields_wrong(v, SIZE_WHAT);
}

static const struct field session_rows[] = {
	{"size", FIELD_SIZE, AT(struct session_body, size), .check = check_size, .what = SIZE_WHAT,
         .schema = "{\"default\": \"100M\"}", .description = "Size of the workspace."},
	FIELDS_END,
};
const struct fields se_session_fields = {
	.name = "SeSession", .rows = session_rows, .flags = FIELDS_OPEN | FIELDS_LOOSE};

void se_session_create(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session_body body = {0};
	struct session *session = NULL;
	struct session_info info = {0};
	struct error err = {0};
	json_t *j;

	if (se_decode(req, args, &se_session_fields, &body) < 0)
		return;
	if (se_session_known(r, args))
		(void)error_field(&err, "session_id", "Session already exists: %s", args->id);
	else
		session = se_session_create_named(r, args, body.size, http_request_id(req), &err);
	if (!session) {
		reply_error(req, &err);
		return;
	}
	session_info(session, &info);
	/* The caller asks for files only. */
	encode_cuts_warn(info.cuts, "disk", reply_warnings(req));
	j = json_object();
	json_set(j, "session_id", json_string(args->id));
	durable_reply_session_created(req, session, SE_OK, se_envelope(j, json_string(args->id)),
	                              r->parts.sessions);
}

static struct session *find_existing(struct router *r, struct http_request *req,
                                     const struct route_args *args)
{
	struct session *session = se_session_known(r, args);
	struct error err = {0};

	if (!session) {
		(void)error_set(&err, ERR_SESSION_NOT_FOUND, 0, "no session has this id");
		reply_error(req, &err);
	}
	return session;
}

void se_session_delete(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session = find_existing(r, req, args);
	json_t *j;

	if (!session)
		return;
	j = json_object();
	json_set(j, "status", json_string("success"));
	durable_reply_session_delete(req, session, se_envelope(j, NULL));
}

static void answer_status(void *ctx, struct http_request *req, const struct file_result *result)
{
	json_t *j = json_incref(ctx);

	if (result->failure) {
		json_decref(j);
		reply_error(req, result->failure);
		return;
	}
	json_set(j, "files", se_view_files(result->items, result->count));
	se_reply(req, j, NULL);
}

static void release_json(void *ctx)
{
	json_decref(ctx);
}

void se_status(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session = find_existing(r, req, args);
	struct session_info info = {0};
	json_t *j;

	if (!session)
		return;
	session_info(session, &info);
	j = json_object();
	json_set(j, "id", json_string(args->id));
	json_set(j, "session_id", json_string(args->id));
	json_set(j, "exists", json_true());
	json_set(j, "created_at", encode_moment(info.created_ms));
	json_set(j, "mount_point", json_string(MOUNT_POINT));
	json_set(j, "is_mounted", json_true());
	op_file_reply(req, session,
	              &(struct op_file_reply){
			      .request = {.op = BOX_FILE_LIST, .path = "", .limit = FILES_LIST_MAX},
			      .answer = answer_status,
			      .free = release_json,
			      .ctx = j});
}

void se_workspaces(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *j = json_object(), *all = json_object();
	struct session *session = session_at(r->parts.sessions, args->principal->tenant, 0);

	for (; session; session = session_older(session)) {
		struct session_info info = {0};
		json_t *item;

		session_info(session, &info);
		if (!se_is_own(session) || info.ended_ms)
			continue;
		item = json_object();
		json_set(item, "mount_point", json_string(MOUNT_POINT));
		json_set(item, "created_at", encode_moment(info.created_ms));
		json_set(all, info.id, item);
	}
	json_set(j, "workspaces", all);
	se_reply(req, j, NULL);
}

/* A client that leaves does not stop the deletion. */
struct cleanup {
	struct pending pending;
	json_t *skipped, *failed; /* owned */
	json_int_t total, success;
	size_t waiting;
};

struct cleanup_one {
	struct cleanup *all;
	char id[SESSION_ID_MAX + 1];
};

static void finish_cleanup(struct cleanup *c)
{
	struct http_request *req;
	json_t *j;

	if (--c->waiting > 0)
		return;
	req = pending_resume(&c->pending);
	j = json_object();
	json_set(j, "total", json_integer(c->total));
	json_set(j, "success", json_integer(c->success));
	json_set(j, "failed", c->failed);
	json_set(j, "skipped", c->skipped);
	if (req)
		se_reply(req, j, NULL);
	else
		json_decref(j);
	free(c);
}

static void on_cleaned(void *ctx, const struct error *err)
{
	cleanup_free struct cleanup_one *one = ctx;

	if (err)
		json_append(one->all->failed, json_string(one->id));
	else
		one->all->success++;
	finish_cleanup(one->all);
}

static void clean_one(struct cleanup *c, struct session *session, const char *id)
{
	struct cleanup_one *one = NEW(struct cleanup_one);
	struct error err = {0};
	int r;

	one->all = c;
	(void)!str_copy(one->id, sizeof(one->id), id); /* fits */
	c->waiting++;
	r = session_delete_kept(session, on_cleaned, one, &err);
	if (r != 0)
		on_cleaned(one, r < 0 ? &err : NULL);
}

struct cleanup_body {
	bool force;
};

static int take_force(const struct field_value *v)
{
	*(bool *)fields_target(v) = json_is_true(v->value);
	return 0;
}

static const struct field cleanup_rows[] = {
	{"force", FIELD_CUSTOM, AT(struct cleanup_body, force), .check = take_force,
         .schema = "{\"default\": false}",
         .description = "Also those with running programs; anything but true is false."},
	FIELDS_END,
};
const struct fields se_cleanup_fields = {
	.name = "SeCleanup", .rows = cleanup_rows, .flags = FIELDS_OPEN | FIELDS_LOOSE};

void se_cleanup_all(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct cleanup_body body = {0};
	struct session *next, *session;
	struct cleanup *c;

	if (se_decode(req, args, &se_cleanup_fields, &body) < 0)
		return;
	c = NEW(struct cleanup);
	*c = (struct cleanup){.skipped = json_array(), .failed = json_array(), .waiting = 1};
	pending_wait(&c->pending, req, NULL);
	for (session = session_at(r->parts.sessions, args->principal->tenant, 0); session;
	     session = next) {
		struct session_info info = {0};

		next = session_older(session);
		session_info(session, &info);
		if (!se_is_own(session) || info.ended_ms)
			continue;
		c->total++;
		if ((info.state == SESSION_RUNNING || info.queued > 0) && !body.force)
			json_append(c->skipped, json_string(info.id));
		else
			clean_one(c, session, info.id);
	}
	finish_cleanup(c);
}

/* The daemon makes no outgoing requests. */
static json_t *refuse_document(const json_t *params)
{
	json_t *j = json_object(), *docid = json_object_get(params, "docid");

	json_set(j, "docid", docid ? json_incref(docid) : json_null());
	json_set(j, "success", json_false());
	json_set(j, "status", json_string("failed"));
	json_set(j, "error",
	         json_string(
			 "this server has no access to a document store: upload the file instead"));
	return j;
}

struct efast_body {
	json_t *params, *path;
};

/* clang-format off */
static const struct field efast_rows[] = {
	{"file_params", FIELD_LIST, AT(struct efast_body, params), .required = true, .min = 1, .max = 100, .what = "a list of 1 to 100 documents", .schema = "{\"items\": {\"type\": \"object\"}}"},
	{"save_path", FIELD_ANY, AT(struct efast_body, path), .schema = "{\"type\": \"string\"}"},
	{"efast_url", FIELD_ANY, .schema = "{\"type\": \"string\"}"},
	{"token", FIELD_ANY, .schema = "{\"type\": \"string\"}"},
	{"timeout", FIELD_ANY, .schema = "{\"type\": \"number\"}"},
	FIELDS_END,
};
/* clang-format on */
const struct fields se_efast_fields = {
	.name = "SeDocuments", .rows = efast_rows, .flags = FIELDS_OPEN | FIELDS_LOOSE};

static void efast_body_done(struct efast_body *body)
{
	fields_done(&se_efast_fields, body);
}

void se_download_from_efast(struct router *r, struct http_request *req,
                            const struct route_args *args)
{
	attr_cleanup(efast_body_done) struct efast_body body = {0};
	json_t *j, *results;
	size_t count;

	if (se_decode(req, args, &se_efast_fields, &body) < 0 || !se_session(r, req, args))
		return;
	count = json_array_size(body.params);
	results = json_array();
	for (size_t i = 0; i < count; i++)
		json_append(results, refuse_document(json_array_get(body.params, i)));
	j = json_object();
	json_set(j, "message", json_string("0 files were downloaded"));
	json_set(j, "success_count", json_integer(0));
	json_set(j, "failed_count", json_integer((json_int_t)count));
	json_set(j, "total_count", json_integer((json_int_t)count));
	json_set(j, "results", results);
	json_set(j, "save_path", body.path ? json_incref(body.path) : json_string(""));
	se_reply(req, j, NULL);
}
