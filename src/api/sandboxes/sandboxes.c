/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/notes.h"
#include "api/reply.h"
#include "api/tools/tool_internal.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/session/session.h"
#include <math.h>
#include <string.h>

#define API         "/api"
#define VENDOR      "application/vnd.sandboxrunner.v"
#define NS_PER_SEC  1e9
#define VERSION_MAX SANDBOXES_V2

/* Return: the path after "/api" and the version; NULL: not of this dialect. *ret_version 0: none.
 * */
static const char *after_version(const char *path, int *ret_version)
{
	*ret_version = 0;
	if (!str_has_prefix(path, API "/"))
		return NULL;
	path += strlen(API);
	if (path[1] != 'v' || path[2] < '1' || path[2] > '0' + VERSION_MAX || path[3] != '/')
		return path;
	*ret_version = path[2] - '0';
	return path + 3;
}

json_t *sandboxes_now(void)
{
	return encode_moment(clock_real_ms());
}

json_t *sandboxes_error(const struct error *err, const char *request_id, int status)
{
	cleanup_json json_t *all = reply_error_object(err, request_id);
	bool sandbox = err->code == ERR_SESSION_NOT_FOUND;
	json_t *j = json_object();

	json_set(j, "code", json_integer(status));
	json_set(j, "message",
	         sandbox ? json_string("Sandbox not found")
	                 : json_incref(json_object_get(all, "description")));
	json_set(j, "details", json_incref(json_object_get(all, "error_detail")));
	json_set(j, "timestamp", sandboxes_now());
	json_set(j, "request_id", json_string(request_id));
	return j;
}

// NOLINTNEXTLINE(readability-non-const-parameter): the dialect's type
json_t *sandboxes_error_body(const struct error *err, const char *request_id, int *status)
{
	json_t *j = reply_error_object(err, request_id);

	json_set(j, "error", sandboxes_error(err, request_id, *status));
	return j;
}

/* "v2" or "2". Return: -1: unknown. */
static int read_version(const char *text)
{
	text += text[0] == 'v';
	if (text[0] < '1' || text[0] > '0' + VERSION_MAX || (text[1] && !strchr("+;, ", text[1])))
		return -1;
	return text[0] - '0';
}

int sandboxes_version(const char *path, const char *accept, const char *header, struct error *err)
{
	const char *vendor = accept ? strstr(accept, VENDOR) : NULL;
	int version;

	(void)after_version(path, &version);
	if (version)
		return version;
	if (vendor) {
		version = read_version(vendor + strlen(VENDOR));
		return version > 0 ? version
		                   : error_field(err, "Accept", "must name version v1 or v2");
	}
	if (!header)
		return SANDBOXES_V1;
	version = read_version(header);
	return version > 0 ? version : error_field(err, "API-Version", "must be v1 or v2");
}

int sandboxes_begin(struct http_request *req, int least)
{
	struct error err = {0};
	int version = sandboxes_version(http_path(req), http_header(req, "Accept"),
	                                http_header(req, "API-Version"), &err);
	char text[8];

	if (version > 0 && version < least)
		(void)error_set(&err, ERR_NOT_FOUND, 0,
		                "version %d does not have this path, version %d does", version,
		                least);
	if (error_is_set(&err)) {
		reply_error(req, &err);
		return -1;
	}
	(void)snprintf(text, sizeof(text), "v%d", version);
	http_add_header(req, "API-Version", text);
	return 0;
}

struct session *sandboxes_get(struct router *r, const char *tenant, const char *id,
                              struct error *err)
{
	struct session *session = id[0] ? session_find(r->parts.sessions, tenant, id) : NULL;
	struct session_info info = {0};

	if (session)
		session_info(session, &info);
	if (session && info.state != SESSION_TERMINATED)
		return session;
	(void)error_set(err, ERR_SESSION_NOT_FOUND, 0, "no sandbox has this id");
	return NULL;
}

struct session *sandboxes_find(struct router *r, struct http_request *req,
                               const struct route_args *args, int least)
{
	struct session *session;
	struct error err = {0};

	if (sandboxes_begin(req, least) < 0)
		return NULL;
	session = sandboxes_get(r, args->principal->tenant, args->id, &err);
	if (!session)
		reply_error(req, &err);
	return session;
}

json_t *sandboxes_view(const struct session *session)
{
	struct session_info info = {0};
	json_t *j = tool_view_sandbox(session), *config = json_object_get(j, "config");
	cleanup_json json_t *notes = NULL;
	const char *name;

	session_info(session, &info);
	notes = notes_read(&info);
	name = json_string_value(json_object_get(notes, "name"));
	json_set(j, "name", json_string(name ? name : ""));
	json_set(j, "image", json_incref(json_object_get(config, "image")));
	json_set(j, "resources", json_incref(json_object_get(config, "resources")));
	json_set(j, "environment", json_incref(json_object_get(config, "environment")));
	json_set(j, "expires_at",
	         info.lifetime_us ? encode_moment(info.created_ms + info.lifetime_us / USEC_PER_MS)
	                          : json_null());
	json_set(j, "session_id", json_string(info.id));
	return j;
}

int sandboxes_decode(const struct router *r, struct http_request *req,
                     const struct route_args *args, const struct fields *fields, void *out)
{
	const struct decode_limits limits = {r->config->max_code_bytes};
	struct error err = {0};
	size_t len;
	const char *text = http_body(req, &len);
	cleanup_json json_t *object = json_read_object(text, len, &err);

	if (object && fields_decode_open(fields, object, &limits, args->warnings, out, &err) == 0)
		return 0;
	reply_error(req, &err);
	return -1;
}

int sandboxes_decode_part(const struct router *r, const char *part, const json_t *value,
                          const struct fields *fields, void *out, struct error *err)
{
	const struct decode_limits limits = {r->config->max_code_bytes};
	char field[sizeof(err->field)];

	if (fields_decode(fields, value, &limits, out, err) == 0)
		return 0;
	(void)!str_copy(field, sizeof(field), err->field);
	(void)snprintf(err->field, sizeof(err->field), "%.20s.%.40s", part, field);
	return -1;
}

int sandboxes_seconds(const json_t *value, const char *field, double *ret_seconds,
                      struct error *err)
{
	double number = json_number_value(value);
	uint64_t us;

	if (json_is_string(value) && parse_duration(json_string_value(value), &us) == 0)
		number = (double)us / USEC_PER_SEC;
	else if (!json_is_number(value) || !isfinite(number) || number < 0)
		return error_field(err, field,
		                   "must be a time: seconds, nanoseconds or text like \"90s\"");
	*ret_seconds = number >= NS_PER_SEC ? number / NS_PER_SEC : number;
	return 0;
}
