/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/decode_session.h"
#include "api/json/json.h"
#include "api/json/notes.h"
#include "api/kept.h"
#include "api/reply.h"
#include "api/sandboxes/life.h"
#include "api/tools/tool_internal.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/session/session.h"
#include <string.h>

#define HTTP_OK         200
#define HTTP_CREATED    201
#define HTTP_NO_CONTENT 204
#define NAME_MAX_LEN    128
#define METADATA_MAX    16384 /* bytes, written */

/* Fields are data, however long their lines. */
/* clang-format off */
static const char *const network_words[] = {"none", "allowlist", "bridge", "host", NULL};

static const struct tool_field create_fields[] = {
	{"image",        TOOL_STRING, true,  "A template's id, or the name of a common image"},
	{"name",         TOOL_STRING, false, "For people"},
	{"resources",    TOOL_OBJECT, false, "cpu, memory, disk"},
	{"environment",  TOOL_OBJECT, false, "NAME: value"},
	{"metadata",     TOOL_OBJECT, false, "Whatever the caller likes"},
	{"ttl",          TOOL_ANY,    false, "When it ends"},
	{"network_mode", TOOL_STRING, false, "What it reaches", .words = network_words},
	{NULL},
};

const struct tool_field sandboxes_update_fields[] = {
	{"name",        TOOL_STRING, false, "For people"},
	{"resources",   TOOL_OBJECT, false, "Only those that it has"},
	{"environment", TOOL_OBJECT, false, "NAME: value"},
	{"metadata",    TOOL_OBJECT, false, "Whatever the caller likes"},
	{NULL},
};

/* What the dialect calls a field of a session. */
static const struct {
	const char *own, *field;
} names[] = {
	{"environment", "env_vars"}, {"image", "template_id"}, {"network_mode", "network"}, {"ttl", "lifetime"}, {"ttl", "timeout"},
};
/* clang-format on */

/* An error is told with the name that the caller knows. */
static void rename_field(struct error *err)
{
	size_t base = strcspn(err->field, ".");
	char rest[sizeof(err->field)];

	(void)!str_copy(rest, sizeof(rest), err->field + base);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i].field) == base &&
		    strncmp(err->field, names[i].field, base) == 0) {
			(void)!str_format(err->field, sizeof(err->field), "%s%s", names[i].own,
			                  rest);
			return;
		}
}

static int check_notes(const json_t *body, const json_t *metadata, struct error *err)
{
	const char *name = json_string_value(json_object_get(body, "name"));
	cleanup_free char *text = metadata ? json_dumps(metadata, JSON_COMPACT) : NULL;

	if (name && strlen(name) > NAME_MAX_LEN)
		return error_field(err, "name", "must have at most %d bytes", NAME_MAX_LEN);
	if (text && strlen(text) > METADATA_MAX)
		return error_field(err, "metadata", "must have at most %d bytes", METADATA_MAX);
	return 0;
}

static void copy_member(json_t *to, const char *key, const json_t *from, const char *member)
{
	json_t *value = json_object_get(from, member);

	if (value)
		json_set(to, key, json_incref(value));
}

/* The body as that of a request for a session. Return: owned, or NULL. */
static json_t *session_body(const json_t *body, const char *template_id, struct error *err)
{
	json_t *j = json_object();
	const json_t *ttl = json_object_get(body, "ttl");
	double seconds;

	if (ttl && !json_is_null(ttl)) {
		if (sandboxes_seconds(ttl, "ttl", &seconds, err) < 0) {
			json_decref(j);
			return NULL;
		}
		/* Until then it stays, used or not. */
		json_set(j, "lifetime", json_real(seconds));
		json_set(j, "timeout", json_real(seconds));
	}
	json_set(j, "mode", json_string("persistent"));
	json_set(j, "template_id", json_string(template_id));
	copy_member(j, "env_vars", body, "environment");
	copy_member(j, "resources", body, "resources");
	copy_member(j, "network", body, "network_mode");
	return j;
}

static int make(struct router *r, const struct http_request *req, const struct principal *who,
                const json_t *body, struct session **ret_session, struct error *err)
{
	cleanup_session_request struct session_request request = {
		.tenant = who->tenant,
		.key_id = who->key_id,
		.request_id = http_request_id(req),
	};
	const char *image = json_string_value(json_object_get(body, "image")), *template_id;
	cleanup_json json_t *asked = NULL;
	bool reused;

	if (!image[0])
		return error_field(err, "image", "must not be empty");
	if (check_notes(body, json_object_get(body, "metadata"), err) < 0 ||
	    tool_find_image(r, who->tenant, image, &template_id, err) < 0)
		return -1;
	asked = session_body(body, template_id, err);
	if (asked && decode_session_object(asked, &request, err) == 0 &&
	    session_create(r->parts.sessions, &request, ret_session, &reused, err) == 0)
		return 0;
	rename_field(err);
	return -1;
}

void sandboxes_create(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_json json_t *body = NULL;
	struct session *session = NULL;
	struct error err = {0};
	json_t *notes;

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	body = sandboxes_body(req, create_fields);
	if (!body)
		return;
	if (make(r, req, args->principal, body, &session, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	notes = json_object();
	copy_member(notes, "image", body, "image");
	copy_member(notes, "name", body, "name");
	copy_member(notes, "metadata", body, "metadata");
	notes_write(session, notes);
	kept_session_made(req, session, HTTP_CREATED, sandboxes_view(session), r->parts.sessions);
}

void sandboxes_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct session *session;

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	session = sandboxes_find(r, req, args);
	if (session)
		reply_json(req, HTTP_OK, sandboxes_view(session));
}

void sandboxes_delete(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session;

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	session = sandboxes_find(r, req, args);
	if (!session)
		return;
	session_terminate(session, "terminated by its owner");
	kept_session_made(req, session, HTTP_NO_CONTENT, NULL, NULL);
}

/* Changing one. */

/* What a box may use is settled when it is made: the same again is fine, all else is not. */
static int check_resources(const struct session *session, const json_t *wanted, struct error *err)
{
	cleanup_session_request struct session_request request = {0};
	cleanup_json json_t *asked = json_object();
	struct session_info info = {0};

	if (!wanted)
		return 0;
	json_set(asked, "resources", json_incref((json_t *)(uintptr_t)wanted));
	if (decode_session_object(asked, &request, err) < 0)
		return -1;
	session_info(session, &info);
	if ((!request.memory_bytes || request.memory_bytes == info.limits.memory_bytes) &&
	    (!request.disk_bytes || request.disk_bytes == info.limits.workspace_bytes) &&
	    (!request.cpu_millicores || request.cpu_millicores == info.limits.cpu_millicores) &&
	    (!request.max_processes || request.max_processes == info.limits.pids))
		return 0;
	return error_field(err, "resources", "cannot be changed: make another sandbox");
}

/* With those of @changes; null takes one away. @whole: no others stay. Return: owned. */
static json_t *merge(const json_t *old, const json_t *changes, bool whole)
{
	json_t *j = old && !whole ? json_copy((json_t *)(uintptr_t)old) : json_object(), *value;
	const char *name;

	json_object_foreach ((json_t *)(uintptr_t)changes, name, value) {
		if (json_is_null(value))
			(void)json_object_del(j, name);
		else
			json_set(j, name, json_incref(value));
	}
	return j;
}

static int change_env(struct session *session, const json_t *changes, bool whole, struct error *err)
{
	cleanup_session_request struct session_request request = {0};
	cleanup_json json_t *asked = json_object(), *view = NULL;

	if (!changes)
		return 0;
	view = sandboxes_view(session);
	json_set(asked, "env_vars", merge(json_object_get(view, "environment"), changes, whole));
	if (decode_session_object(asked, &request, err) == 0 &&
	    session_set_env(session, request.env, err) == 0)
		return 0;
	rename_field(err);
	return -1;
}

/* As they are to be. Return: owned. */
static json_t *change_notes(const struct session *session, const json_t *body, bool whole)
{
	const json_t *metadata = json_object_get(body, "metadata");
	struct session_info info = {0};
	json_t *notes;

	session_info(session, &info);
	notes = notes_read(&info);
	copy_member(notes, "name", body, "name");
	if (metadata)
		json_set(notes, "metadata",
		         merge(json_object_get(notes, "metadata"), metadata, whole));
	return notes;
}

int sandboxes_change(struct session *session, const json_t *body, bool whole, struct error *err)
{
	cleanup_json json_t *notes = change_notes(session, body, whole);

	/* What it would have in all counts: small changes add up. The environment last: before it
	 * nothing was changed, after it nothing is refused. */
	if (check_notes(body, json_object_get(notes, "metadata"), err) < 0 ||
	    check_resources(session, json_object_get(body, "resources"), err) < 0 ||
	    change_env(session, json_object_get(body, "environment"), whole, err) < 0)
		return -1;
	notes_write(session, TAKE_PTR(notes));
	return 0;
}

void sandboxes_update(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_json json_t *body = NULL;
	struct session *session;
	struct error err = {0};

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	session = sandboxes_find(r, req, args);
	if (!session)
		return;
	body = sandboxes_body(req, sandboxes_update_fields);
	if (!body)
		return;
	if (sandboxes_change(session, body, str_equal(http_method(req), "PUT"), &err) < 0)
		reply_error(req, &err);
	else
		kept_session(req, session, sandboxes_view(session));
}

/* Stopping and starting. What is so already stays so. */

static bool is_in(const struct session *session, enum session_state state)
{
	struct session_info info = {0};

	session_info(session, &info);
	return info.state == state;
}

int sandboxes_do_start(struct session *session, struct error *err)
{
	bool fine = is_in(session, SESSION_READY) || is_in(session, SESSION_RUNNING) ||
	            is_in(session, SESSION_CREATING);

	return fine ? 0 : session_resume(session, err);
}

int sandboxes_do_stop(struct session *session, struct error *err)
{
	return is_in(session, SESSION_PAUSED) ? 0 : session_pause(session, err);
}

static void act(struct router *r, struct http_request *req, const struct route_args *args,
                int (*action)(struct session *session, struct error *err))
{
	struct session *session;
	struct error err = {0};

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	session = sandboxes_find(r, req, args);
	if (!session)
		return;
	if (action(session, &err) < 0)
		reply_error(req, &err);
	else
		kept_session(req, session, sandboxes_view(session));
}

void sandboxes_start(struct router *r, struct http_request *req, const struct route_args *args)
{
	act(r, req, args, sandboxes_do_start);
}

void sandboxes_stop(struct router *r, struct http_request *req, const struct route_args *args)
{
	act(r, req, args, sandboxes_do_stop);
}

void sandboxes_restart(struct router *r, struct http_request *req, const struct route_args *args)
{
	act(r, req, args, session_restart);
}
