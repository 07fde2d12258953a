/* SPDX-License-Identifier: Apache-2.0 */
#include "api/se/se.h"

#include "api/json/json.h"
#include "api/json/query.h"
#include "api/op/download.h"
#include "api/op/file.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/id.h"
#include "base/parse.h"
#include "base/utf8.h"
#include "core/request/workpath.h"
#include "core/session/session.h"
#include "core/session/session_files.h"
#include "http/status.h"
#include <string.h>
#include <strings.h>

#define PREVIEW_MAX (16u << 20)
#define READ_MAX    (4u << 20)

/* Listing. */

struct list_query {
	bool recursive;
};

/* Clients send "True", "yes" and the empty string, too. */
static int take_recursive(const struct field_value *v)
{
	bool *recursive = fields_target(v);

	*recursive = strcasecmp(v->text, "true") == 0;
	if (*recursive || !v->text[0] || strcasecmp(v->text, "false") == 0)
		return 0;
	return parse_bool(v->text, recursive) < 0 ? fields_wrong(v, "true or false") : 0;
}

static const struct field list_rows[] = {
	{"recursive", FIELD_CUSTOM, AT(struct list_query, recursive), .check = take_recursive,
         .schema = "{\"type\": \"boolean\", \"default\": false}",
         .description = "List everything below the directory."},
	FIELDS_END,
};
const struct fields se_files_query = {.rows = list_rows};

static void answer_list(void *ctx, struct http_request *req, const struct file_result *result)
{
	json_t *j;

	(void)ctx;
	if (result->failure) {
		reply_error(req, result->failure);
		return;
	}
	j = json_object();
	json_set(j, "files", se_view_files(result->items, result->count));
	json_set(j, "truncated", json_boolean(result->summary.truncated));
	se_reply(req, j, NULL);
}

void se_files(struct router *r, struct http_request *req, const struct route_args *args)
{
	char path[WORKPATH_MAX + 1];
	struct list_query query = {0};
	struct error err = {0};
	struct session *session;

	if (query_decode(req, args->query, &query, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	if (se_path(req, args->rest, "path", path) < 0)
		return;
	/* A session that does not exist yet has no files. */
	if (!path[0] && id_is_valid(args->id, SESSION_ID_MAX) && !se_session_known(r, args)) {
		se_reply(req, json_pack("{s:[], s:b}", "files", "truncated", 0), NULL);
		return;
	}
	session = se_session(r, req, args);
	if (session)
		op_file_reply(req, session,
		              &(struct op_file_reply){.request = {.op = BOX_FILE_LIST,
		                                                  .path = path,
		                                                  .limit = FILES_LIST_MAX,
		                                                  .recursive = query.recursive},
		                                      .answer = answer_list});
}

/* Writing. */

struct written {
	char *name; /* owned */
	size_t len;
};

static void written_free(void *ctx)
{
	struct written *w = ctx;

	free(w->name);
	free(w);
}

static void answer_written(void *ctx, struct http_request *req, const struct file_result *result)
{
	const struct written *w = ctx;
	json_t *j;

	if (result->failure) {
		reply_error(req, result->failure);
		return;
	}
	j = json_object();
	json_set(j, "filename", json_string(w->name));
	json_set(j, "name", json_string(w->name));
	json_set(j, "size", json_integer((json_int_t)w->len));
	se_reply(req, j, NULL);
}

struct create_body {
	json_t *content; /* a string, perhaps with NUL */
	char *filename;
	uint64_t mode;
};

static int check_content(const struct field_value *v)
{
	return json_is_string(v->value) ? 0 : fields_wrong(v, "a string");
}

/* clang-format off */
static const struct field create_rows[] = {
	{"content", FIELD_ANY, AT(struct create_body, content), .required = true, .check = check_content, .schema = "{\"type\": \"string\"}"},
	{"filename", FIELD_STRING, AT(struct create_body, filename), .required = true, .min = 1, .what = "the name of a file"},
	{"mode", FIELD_INTEGER, AT(struct create_body, mode), .max = 0777, .fallback = "420", .what = "permission bits as a decimal number, such as 420", .description = "Permission bits as a decimal number."},
	FIELDS_END,
};
/* clang-format on */
const struct fields se_create_fields = {
	.name = "SeCreate", .rows = create_rows, .flags = FIELDS_OPEN | FIELDS_LOOSE};

static void write_file(struct http_request *req, struct session *session, const char *path,
                       const struct create_body *body)
{
	struct written *w = NEW(struct written);

	w->name = xstrdup(path);
	w->len = json_string_length(body->content);
	op_file_reply(req, session,
	              &(struct op_file_reply){.request = {.op = BOX_FILE_WRITE,
	                                                  .path = path,
	                                                  .length = UINT64_MAX,
	                                                  .mode = (uint32_t)body->mode,
	                                                  .parents = true},
	                                      .data = json_string_value(body->content),
	                                      .len = w->len,
	                                      .answer = answer_written,
	                                      .free = written_free,
	                                      .ctx = w});
}

static void create_body_done(struct create_body *body)
{
	fields_done(&se_create_fields, body);
}

void se_create(struct router *r, struct http_request *req, const struct route_args *args)
{
	attr_cleanup(create_body_done) struct create_body body = {0};
	char path[WORKPATH_MAX + 1];
	struct session *session;

	if (se_decode(req, args, &se_create_fields, &body) < 0 ||
	    se_path(req, body.filename, "filename", path) < 0)
		return;
	session = se_session(r, req, args);
	if (session)
		write_file(req, session, path, &body);
}

/* Reading. */

void se_download(struct router *r, struct http_request *req, const struct route_args *args)
{
	char path[WORKPATH_MAX + 1];
	struct session *session;

	if (se_path(req, args->rest, "path", path) < 0)
		return;
	session = se_session(r, req, args);
	if (session)
		download_file(req, session, path, "application/octet-stream");
}

static const struct {
	const char *ending, *type;
} previews[] = {
	{".html", "text/html; charset=utf-8"},
	{".txt", "text/plain; charset=utf-8"},
	{".md", "text/markdown; charset=utf-8"},
	{".json", "application/json"},
	{".xml", "application/xml"},
	{".csv", "text/csv; charset=utf-8"},
	{".png", "image/png"},
	{".jpg", "image/jpeg"},
	{".jpeg", "image/jpeg"},
	{".gif", "image/gif"},
	{".bmp", "image/bmp"},
	{".webp", "image/webp"},
	{".svg", "image/svg+xml"},
	{".ico", "image/x-icon"},
};

static const char *preview_type(const char *path)
{
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(previews); i++)
		if (strcasecmp(dot, previews[i].ending) == 0)
			return previews[i].type;
	return NULL;
}

/* The page is untrusted: it is shown without rights on this origin. */
static void answer_preview(void *ctx, struct http_request *req, const struct file_result *result)
{
	static const struct http_header headers[] = {
		{"Content-Disposition", "inline"},
		{"X-Content-Type-Options", "nosniff"},
		{"Content-Security-Policy", "sandbox"},
	};

	if (result->failure)
		reply_error(req, result->failure);
	else
		http_reply(req, &(struct http_answer){HTTP_OK, preview_type(ctx), result->data,
		                                      result->len, headers, ARRAY_SIZE(headers)});
}

struct preview_query {
	const char *sid;
};

static const struct field preview_rows[] = {
	{"sid", FIELD_STRING, AT(struct preview_query, sid), .required = true, .min = 1,
         .description = "Must be given; any text."},
	FIELDS_END,
};
const struct fields se_preview_query = {.rows = preview_rows};

void se_preview(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct preview_query query = {0};
	char path[WORKPATH_MAX + 1];
	struct session *session;
	struct error err = {0};

	if (se_path(req, args->rest, "path", path) < 0)
		return;
	if (query_decode(req, args->query, &query, &err) == 0 && !preview_type(path))
		(void)error_field(&err, "path", "has no type that can be previewed");
	if (error_is_set(&err)) {
		reply_error(req, &err);
		return;
	}
	session = se_session(r, req, args);
	if (session)
		op_file_reply(req, session,
		              &(struct op_file_reply){.request = {.op = BOX_FILE_READ,
		                                                  .path = path,
		                                                  .length = PREVIEW_MAX + 1},
		                                      .data_max = PREVIEW_MAX,
		                                      .answer = answer_preview,
		                                      .free = free,
		                                      .ctx = xstrdup(path)});
}

/* By the ending of the name. */
static bool is_text_name(const char *path)
{
	static const char *const endings[] = {
		".txt", ".md",  ".py",   ".sh",   ".js",  ".ts",  ".json", ".xml",  ".html", ".htm",
		".css", ".csv", ".yaml", ".yml",  ".log", ".ini", ".cfg",  ".conf", ".toml", ".sql",
		".c",   ".h",   ".cpp",  ".java", ".go",  ".rs",  ".rb",   ".php",  ".tsv",  ".env",
	};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(endings); i++)
		if (strcasecmp(dot, endings[i]) == 0)
			return true;
	return false;
}

struct reading {
	char *path; /* owned */
	uint64_t offset;
};

static void reading_free(void *ctx)
{
	struct reading *reading = ctx;

	free(reading->path);
	free(reading);
}

/* Text up to the last whole character, or else base64. */
static json_t *content_of(const struct reading *reading, const struct file_result *result,
                          size_t *ret_len, bool *ret_binary)
{
	size_t len = utf8_cut(result->data, result->len);
	cleanup_free char *encoded = NULL;

	if (len == 0)
		len = result->len;
	*ret_binary = !is_text_name(reading->path) || !utf8_is_valid(result->data, len);
	if (*ret_binary)
		len = result->len;
	*ret_len = len;
	if (!*ret_binary)
		return json_text(result->data, len);
	encoded = base64_encode(result->data, len);
	return json_string(encoded);
}

static void answer_read(void *ctx, struct http_request *req, const struct file_result *result)
{
	const struct reading *reading = ctx;
	uint64_t size = result->count > 0 ? result->items[0].size : 0;
	uint64_t next;
	json_t *j, *content;
	bool binary;
	size_t len;

	if (result->failure) {
		reply_error(req, result->failure);
		return;
	}
	content = content_of(reading, result, &len, &binary);
	next = reading->offset < size ? reading->offset + len : size;
	j = json_object();
	json_set(j, "content", content);
	json_set(j, "is_binary", json_boolean(binary));
	json_set(j, "offset", json_integer((json_int_t)next));
	json_set(j, "size", json_integer((json_int_t)size));
	json_set(j, "is_eof", json_boolean(next >= size));
	se_reply(req, j, NULL);
}

struct read_query {
	uint64_t offset, size;
};

/* clang-format off */
static const struct field read_rows[] = {
	{"offset", FIELD_INTEGER, AT(struct read_query, offset), .fallback = "0", .schema = "{\"minimum\": 0}", .description = "The first byte to read."},
	{"buffer_size", FIELD_INTEGER, AT(struct read_query, size), .min = 1, .max = READ_MAX, .clamp = true, .fallback = "4096", .description = "Bytes to read; values over 4 MiB count as 4 MiB."},
	FIELDS_END,
};
/* clang-format on */
const struct fields se_readfile_query = {.rows = read_rows};

void se_readfile(struct router *r, struct http_request *req, const struct route_args *args)
{
	char path[WORKPATH_MAX + 1];
	struct read_query query = {0};
	struct reading *reading;
	struct session *session;
	struct error err = {0};

	if (se_path(req, args->rest, "path", path) < 0)
		return;
	if (query_decode(req, args->query, &query, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	session = se_session(r, req, args);
	if (!session)
		return;
	reading = NEW(struct reading);
	reading->path = xstrdup(path);
	reading->offset = query.offset;
	op_file_reply(req, session,
	              &(struct op_file_reply){.request = {.op = BOX_FILE_READ,
	                                                  .path = path,
	                                                  .offset = query.offset,
	                                                  .length = query.size},
	                                      .data_max = READ_MAX,
	                                      .answer = answer_read,
	                                      .free = reading_free,
	                                      .ctx = reading});
}
