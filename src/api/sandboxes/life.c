/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/durable_reply.h"
#include "api/json/decode.h"
#include "api/json/decode_fields.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/notes.h"
#include "api/reply.h"
#include "api/sandboxes/life.h"
#include "api/tools/tool_internal.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/session/session.h"
#include "http/status.h"
#include "json/json_dump.h"
#include <math.h>
#include <string.h>

#define NAME_MAX_LEN 128
#define METADATA_MAX 16384 /* bytes of JSON */

struct create_body {
	struct session_request session;
	char *image, *name;
	json_t *metadata;
};

struct change_body {
	char *name;
	json_t *resources, *environment, *metadata;
};

/* Used or not. */
static int take_ttl(const struct field_value *v)
{
	struct create_body *body = v->out;
	double seconds;

	if (sandboxes_seconds(v->value, v->path, &seconds, v->err) < 0)
		return -1;
	if (!(seconds >= 1 && seconds <= DECODE_SESSION_MAX))
		return fields_wrong(v, "1 to 604800 seconds");
	body->session.lifetime_us = (uint64_t)ceil(seconds * USEC_PER_SEC);
	body->session.idle_timeout_us = body->session.lifetime_us;
	return 0;
}

static int check_metadata(const json_t *metadata, struct error *err)
{
	if (metadata && json_dump_size(metadata) > METADATA_MAX)
		return error_field(err, "metadata", "must have at most %d bytes", METADATA_MAX);
	return 0;
}

/* clang-format off */
static const struct fields resources = {
	.description = "As in SessionRequest, and by the names of the tool create_sandbox.",
	.flags = FIELDS_LOOSE,
	.rows = (const struct field[]){
		RESOURCE_ROWS(struct create_body, session.),
		{"cpu_limit", FIELD_CPU, AT(struct create_body, session.cpu_millicores), .once = true, .description = "Another name of cpu."},
		{"memory_limit", FIELD_SIZE, AT(struct create_body, session.memory_bytes), .once = true, .description = "Another name of memory."},
		{"disk_limit", FIELD_SIZE, AT(struct create_body, session.disk_bytes), .once = true, .description = "Another name of disk."},
		FIELDS_END,
	},
};

#define INTO(member) AT(struct create_body, member)
const struct fields sandboxes_create_fields = SANDBOXES_FIELDS("SandboxRequest",
	{"image", FIELD_STRING, INTO(image), .required = true, .min = 1, .schema = "{\"minLength\": null, \"examples\": [\"ubuntu:22.04\"]}", .description = "Id of a template, or name of a common image; not empty."},
	{"name", FIELD_STRING, INTO(name), .max = NAME_MAX_LEN},
	{"resources", FIELD_OBJECT, .fields = &resources},
	{"environment", FIELD_ENV, INTO(session.env)},
	{"metadata", FIELD_OBJECT, INTO(metadata), .description = "At most 16 KiB; kept unchanged."},
	{"ttl", FIELD_CUSTOM, .check = take_ttl, .schema = "{\"type\": [\"number\", \"string\"]}", .description = "Lifetime, also if the sandbox is used: seconds, nanoseconds (Go), or text such as 30m."},
	{"network_mode", FIELD_ENUM, INTO(session.network), GIVEN(struct create_body, session.network_asked), .words = decode_networks});

const struct fields sandboxes_change_fields = SANDBOXES_FIELDS("SandboxUpdate",
	{"name", FIELD_STRING, AT(struct change_body, name), .max = NAME_MAX_LEN},
	{"resources", FIELD_OBJECT, AT(struct change_body, resources), .description = "Cannot be changed; the current values are accepted."},
	{"environment", FIELD_OBJECT, AT(struct change_body, environment), .schema = "{\"additionalProperties\": {\"type\": [\"string\", \"number\", \"boolean\", \"null\"]}}", .description = "null removes a member."},
	{"metadata", FIELD_OBJECT, AT(struct change_body, metadata)});

static const struct fields env_fields = {.rows = (const struct field[]){
	{"environment", FIELD_ENV, AT(struct session_request, env)},
	FIELDS_END,
}};
/* clang-format on */

/* Return: owned. */
static json_t *make_notes(const struct create_body *body)
{
	json_t *notes = json_object();

	json_set(notes, "image", json_string(body->image));
	if (body->name)
		json_set(notes, "name", json_string(body->name));
	if (body->metadata)
		json_set(notes, "metadata", json_incref(body->metadata));
	return notes;
}

static int create_session(struct router *r, const struct http_request *req,
                          const struct principal *who, struct create_body *body,
                          struct session **ret_session, struct error *err)
{
	struct session_request *request = &body->session;
	const char *template_id;
	bool reused;

	if (check_metadata(body->metadata, err) < 0 ||
	    tool_find_image(r, who->tenant, body->image, &template_id, err) < 0)
		return -1;
	request->mode = SESSION_PERSISTENT;
	request->template_id = xstrdup(template_id);
	request->tenant = who->tenant;
	request->key_id = who->key_id;
	request->request_id = http_request_id(req);
	if (session_create(r->parts.sessions, request, ret_session, &reused, err) == 0)
		return 0;
	tool_rename_field(err);
	return -1;
}

/* With what the request does not get. */
static json_t *view_created(struct http_request *req, const struct session *session,
                            enum box_network asked)
{
	cleanup_free char *note = tool_network_note(asked, session);
	json_t *view = sandboxes_view(session);
	struct session_info info = {0};

	session_info(session, &info);
	if (note)
		json_append(reply_warnings(req), json_string(note));
	encode_cuts_tell(info.cuts, view, reply_warnings(req));
	return view;
}

void sandboxes_create(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct create_body body = {0};
	struct session *session = NULL;
	enum box_network asked = BOX_NETWORK_NONE;
	struct error err = {0};

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	if (sandboxes_decode(r, req, args, &sandboxes_create_fields, &body) == 0) {
		asked = tool_ease_network(&body.session);
		if (create_session(r, req, args->principal, &body, &session, &err) < 0)
			reply_error(req, &err);
		else
			notes_write(session, make_notes(&body));
	}
	fields_done(&sandboxes_create_fields, &body);
	session_request_done(&body.session);
	if (session)
		durable_reply_session_created(req, session, HTTP_CREATED,
		                              view_created(req, session, asked), r->parts.sessions);
}

void sandboxes_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct session *session;

	session = sandboxes_find(r, req, args, SANDBOXES_V1);
	if (session)
		reply_json(req, HTTP_OK, sandboxes_view(session));
}

void sandboxes_delete(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct session *session;

	session = sandboxes_find(r, req, args, SANDBOXES_V1);
	if (!session)
		return;
	session_terminate(session, "terminated by its owner");
	durable_reply_session(req, session, HTTP_NO_CONTENT, NULL);
}

/* Fixed when the box is made: accept only the same values. */
static int check_resources(const struct session *session, const json_t *wanted, struct error *err)
{
	const struct session_request *request;
	struct create_body body = {0}; /* owns nothing: resources are numbers */
	struct session_info info = {0};
	char field[sizeof(err->field)];

	if (!wanted)
		return 0;
	if (fields_decode(&resources, wanted, NULL, &body, err) < 0) {
		(void)!str_copy(field, sizeof(field), err->field);
		(void)snprintf(err->field, sizeof(err->field), "resources.%.40s", field);
		return -1;
	}
	request = &body.session;
	session_info(session, &info);
	if ((!request->memory_bytes || request->memory_bytes == info.limits.memory_bytes) &&
	    (!request->disk_bytes || request->disk_bytes == info.limits.workspace_bytes) &&
	    (!request->cpu_millicores || request->cpu_millicores == info.limits.cpu_millicores) &&
	    (!request->max_processes || request->max_processes == info.limits.pids))
		return 0;
	return error_field(err, "resources", "cannot be changed: make another sandbox");
}

/* null removes a member. @whole: only @changes. Return: owned. */
static json_t *merge_members(const json_t *old, const json_t *changes, bool whole)
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
	cleanup_json json_t *wanted = json_object(), *view = NULL;

	if (!changes)
		return 0;
	view = sandboxes_view(session);
	json_set(wanted, "environment",
	         merge_members(json_object_get(view, "environment"), changes, whole));
	if (fields_decode(&env_fields, wanted, NULL, &request, err) == 0 &&
	    session_set_env(session, request.env, err) == 0)
		return 0;
	tool_rename_field(err);
	return -1;
}

/* Return: owned. */
static json_t *change_notes(const struct session *session, const struct change_body *body,
                            bool whole)
{
	struct session_info info = {0};
	json_t *notes;

	session_info(session, &info);
	notes = notes_read(&info);
	if (body->name)
		json_set(notes, "name", json_string(body->name));
	if (body->metadata)
		json_set(notes, "metadata",
		         merge_members(json_object_get(notes, "metadata"), body->metadata, whole));
	return notes;
}

static int apply_change(struct session *session, const struct change_body *body, bool whole,
                        struct error *err)
{
	cleanup_json json_t *notes = change_notes(session, body, whole);

	/* Limit the merged metadata: small changes add up. The environment is last: nothing changed
	 * before it, nothing fails after it. */
	if (check_metadata(json_object_get(notes, "metadata"), err) < 0 ||
	    check_resources(session, body->resources, err) < 0 ||
	    change_env(session, body->environment, whole, err) < 0)
		return -1;
	notes_write(session, TAKE_PTR(notes));
	return 0;
}

int sandboxes_check_change(const struct router *r, const json_t *parameters, struct error *err)
{
	struct change_body body = {0};
	int result = sandboxes_decode_part(r, "parameters", parameters, &sandboxes_change_fields,
	                                   &body, err);

	fields_done(&sandboxes_change_fields, &body);
	return result;
}

int sandboxes_change(struct session *session, const json_t *parameters, bool whole,
                     struct error *err)
{
	struct change_body body = {0};
	int r = fields_decode(&sandboxes_change_fields, parameters, NULL, &body, err);

	if (r == 0)
		r = apply_change(session, &body, whole, err);
	fields_done(&sandboxes_change_fields, &body);
	return r;
}

void sandboxes_update(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct change_body body = {0};
	struct session *session;
	struct error err = {0};

	session = sandboxes_find(r, req, args, SANDBOXES_V1);
	if (session && sandboxes_decode(r, req, args, &sandboxes_change_fields, &body) == 0) {
		if (apply_change(session, &body, str_equal(http_method(req), "PUT"), &err) < 0)
			reply_error(req, &err);
		else
			durable_reply_session(req, session, HTTP_OK, sandboxes_view(session));
	}
	fields_done(&sandboxes_change_fields, &body);
}

/* Repeating either is fine. */

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

static void apply_action(struct router *r, struct http_request *req, const struct route_args *args,
                         int (*action)(struct session *session, struct error *err))
{
	struct session *session;
	struct error err = {0};

	session = sandboxes_find(r, req, args, SANDBOXES_V1);
	if (!session)
		return;
	if (action(session, &err) < 0)
		reply_error(req, &err);
	else
		durable_reply_session(req, session, HTTP_OK, sandboxes_view(session));
}

void sandboxes_start(struct router *r, struct http_request *req, const struct route_args *args)
{
	apply_action(r, req, args, sandboxes_do_start);
}

void sandboxes_stop(struct router *r, struct http_request *req, const struct route_args *args)
{
	apply_action(r, req, args, sandboxes_do_stop);
}

void sandboxes_restart(struct router *r, struct http_request *req, const struct route_args *args)
{
	apply_action(r, req, args, session_restart);
}
