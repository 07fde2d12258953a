/* SPDX-License-Identifier: Apache-2.0 */
#include "api/se/se.h"

#include "api/json/json.h"
#include "api/json/query.h"
#include "api/op/download.h"
#include "api/op/file.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/request/workpath.h"
#include "core/session/session.h"
#include "core/session/session_files.h"
#include "http/status.h"
#include <string.h>
#include <strings.h>

#define FILE_MODE    0644
#define MODE_MAX     0777
#define PREVIEW_MAX  (16u << 20)
#define READ_DEFAULT 4096
#define READ_MAX     (4u << 20)

/* Listing. */

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
	bool recursive = false;
	struct error err = {0};
	const char *text = http_query(req, "recursive");
	struct session *session;

	if (text && *text && parse_bool(text, &recursive) < 0 && strcasecmp(text, "true") != 0 &&
	    strcasecmp(text, "false") != 0) {
		(void)error_field(&err, "recursive", "must be true or false");
		reply_error(req, &err);
		return;
	}
	recursive |= text && strcasecmp(text, "true") == 0;
	if (se_path(req, args->rest, "path", path) < 0)
		return;
	session = se_session(r, req, args);
	if (session)
		op_file_reply(req, session,
		              &(struct op_file_reply){.request = {.op = BOX_FILE_LIST,
		                                                  .path = path,
		                                                  .limit = FILES_LIST_MAX,
		                                                  .recursive = recursive},
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

struct content {
	const char *path, *data;
	size_t len;
	uint32_t mode;
};

static void write_file(struct http_request *req, struct session *session, const struct content *c)
{
	struct written *w = NEW(struct written);

	w->name = xstrdup(c->path);
	w->len = c->len;
	op_file_reply(req, session,
	              &(struct op_file_reply){.request = {.op = BOX_FILE_WRITE,
	                                                  .path = c->path,
	                                                  .length = UINT64_MAX,
	                                                  .mode = c->mode,
	                                                  .parents = true},
	                                      .data = c->data,
	                                      .len = c->len,
	                                      .answer = answer_written,
	                                      .free = written_free,
	                                      .ctx = w});
}

static int read_mode(const json_t *body, uint32_t *ret_mode, struct error *err)
{
	const json_t *value = json_object_get(body, "mode");
	json_int_t mode = json_integer_value(value);

	*ret_mode = FILE_MODE;
	if (!value || json_is_null(value))
		return 0;
	if (!json_is_integer(value) || mode < 0 || mode > MODE_MAX)
		return error_field(err, "mode",
		                   "must be permission bits as a decimal number, such as 420");
	*ret_mode = (uint32_t)mode;
	return 0;
}

static int check_create(const json_t *body, struct content *c, struct error *err)
{
	const json_t *content = json_object_get(body, "content");
	const json_t *name = json_object_get(body, "filename");

	if (!json_is_string(content))
		return error_field(err, "content", "must be a string");
	if (!json_is_string(name) || json_string_length(name) == 0 ||
	    memchr(json_string_value(name), '\0', json_string_length(name)))
		return error_field(err, "filename", "must be the name of a file");
	c->data = json_string_value(content);
	c->len = json_string_length(content);
	return read_mode(body, &c->mode, err);
}

void se_create(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_json json_t *body = se_body(req);
	struct content c = {0};
	char path[WORKPATH_MAX + 1];
	struct session *session;
	struct error err = {0};

	if (!body)
		return;
	if (check_create(body, &c, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	c.path = path;
	if (se_path(req, json_string_value(json_object_get(body, "filename")), "filename", path) <
	    0)
		return;
	session = se_session(r, req, args);
	if (session)
		write_file(req, session, &c);
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

void se_preview(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *sid = http_query(req, "sid");
	char path[WORKPATH_MAX + 1];
	struct session *session;
	struct error err = {0};

	if (se_path(req, args->rest, "path", path) < 0)
		return;
	if (!sid || !*sid)
		(void)error_field(&err, "sid", "is missing");
	else if (!preview_type(path))
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

void se_readfile(struct router *r, struct http_request *req, const struct route_args *args)
{
	char path[WORKPATH_MAX + 1];
	uint64_t offset = 0, size = READ_DEFAULT;
	struct reading *reading;
	struct session *session;
	struct error err = {0};

	if (se_path(req, args->rest, "path", path) < 0)
		return;
	if (query_u64(req, "offset", INT64_MAX, &offset, &err) < 0 ||
	    query_u64(req, "buffer_size", UINT64_MAX, &size, &err) < 0 ||
	    (size == 0 && error_field(&err, "buffer_size", "must be at least 1") < 0)) {
		reply_error(req, &err);
		return;
	}
	session = se_session(r, req, args);
	if (!session)
		return;
	reading = NEW(struct reading);
	reading->path = xstrdup(path);
	reading->offset = offset;
	op_file_reply(
		req, session,
		&(struct op_file_reply){.request = {.op = BOX_FILE_READ,
	                                            .path = path,
	                                            .offset = offset,
	                                            .length = size < READ_MAX ? size : READ_MAX},
	                                .data_max = READ_MAX,
	                                .answer = answer_read,
	                                .free = reading_free,
	                                .ctx = reading});
}
