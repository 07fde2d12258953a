/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/encode_file.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/op/download.h"
#include "api/op/file.h"
#include "api/tools/sandbox_uri.h"
#include "api/tools/shorten.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/config/config.h"
#include "core/session/session.h"
#include "core/session/session_files.h"
#include "http/media_type.h"
#include <string.h>

/*
 * Theory of operation. Files are read and written inside the box, in one operation, or two to keep
 * a copy of the old file. The session may end in between: look it up again.
 */

#define FILE_MODE 0644
#define TEXT_MAX  (1u << 20)
#define BACKUP    ".bak"

struct file_work {
	struct call *call;
	char path[WORKPATH_MAX + 1];
	char *data; /* owned: what is written */
	size_t len;
	uint32_t mode;
	char sum[2 * SHA256_LEN + 1]; /* of the data, if requested */
};

static void work_free(void *state)
{
	struct file_work *w = state;

	free(w->data);
	free(w);
}

static void start_operation(struct file_work *w, struct session *session,
                            struct op_file_request *request)
{
	struct op_file *collect;
	struct error err = {0};

	request->request.path = w->path;
	request->ctx = w;
	collect = op_file_start(session, request, &err);
	if (collect)
		call_wait_file(w->call, collect);
	else
		tool_refuse(w->call, &err);
}

int tool_clean_path(const char *path, const char *field, char ret_path[WORKPATH_MAX + 1],
                    struct error *err)
{
	return workpath_clean(path, WORKPATH_RELATIVE, field, ret_path, err);
}

/* NULL: the call was refused. */
static struct file_work *open_work(struct call *call)
{
	struct file_work *w = NEW(struct file_work);
	struct error err = {0};

	w->call = call;
	w->mode = FILE_MODE;
	call->state = w;
	call->free_state = work_free;
	if (tool_clean_path(call->args.path, "path", w->path, &err) == 0)
		return w;
	tool_refuse(call, &err);
	return NULL;
}

static char *absolute_path(const char *path)
{
	return xasprintf("/workspace%s%s", path[0] ? "/" : "", path);
}

static void on_written(void *ctx, const struct file_result *result)
{
	struct file_work *w = ctx;
	struct call *call = w->call;
	cleanup_free char *path = absolute_path(w->path), *text = NULL;
	json_t *j;

	if (result->failure) {
		tool_refuse(call, result->failure);
		return;
	}
	j = json_object();
	json_set(j, "path", json_text(path, strlen(path)));
	json_set(j, "size", json_integer((json_int_t)w->len));
	json_set(j, "encoding",
	         json_string(call->args.encoding == TOOL_BASE64 ? "base64" : "utf8"));
	json_set(j, "checksum", w->sum[0] ? json_string(w->sum) : json_null());
	text = xasprintf("Wrote %zu bytes to %s.", w->len, path);
	tool_finish(call, text, j, NULL, false);
}

static void write_now(struct file_work *w, struct session *session)
{
	start_operation(w, session,
	                &(struct op_file_request){
				.request = {.op = BOX_FILE_WRITE,
	                                    .length = UINT64_MAX,
	                                    .mode = w->mode,
	                                    .parents = true},
				.data = w->data,
				.len = w->len,
				.on_end = on_written,
			});
}

/* Renamed, or there was none. */
static void on_prepared(void *ctx, const struct file_result *result)
{
	struct file_work *w = ctx;
	struct call *call = w->call;
	struct session *session;
	struct error err = {0};
	bool found = !result->failure;

	if (result->failure && result->failure->code != ERR_FILE_NOT_FOUND) {
		tool_refuse(call, result->failure);
		return;
	}
	session = session_find(call->router->parts.sessions, call->principal->tenant,
	                       call->args.sandbox_id);
	if (!session)
		(void)error_set(&err, ERR_SESSION_NOT_FOUND, 0, "the sandbox has ended");
	else if (found && !call->args.create_backup)
		(void)error_set(&err, ERR_CONFLICT, 0,
		                "the file exists, and force_overwrite is false");
	if (error_is_set(&err))
		tool_refuse(call, &err);
	else
		write_now(w, session);
}

/* Moves the content out of the arguments. */
static int take_content(struct file_work *w, struct error *err)
{
	struct tool_args *args = &w->call->args;

	if (args->mode && query_mode(args->mode, &w->mode) < 0)
		return error_field(err, "mode", "must be octal permissions, as 0644");
	if (args->encoding == TOOL_BASE64) {
		w->data = base64_decode(args->content, args->content_len, &w->len);
		return w->data ? 0 : error_field(err, "content", "is not base64");
	}
	w->len = args->content_len;
	w->data = TAKE_PTR(args->content);
	return 0;
}

/* A string is the expected sum; true requests it. */
static int check_sum(struct file_work *w, struct error *err)
{
	const json_t *asked = w->call->args.checksum;
	const char *wanted = json_string_value(asked);
	uint8_t digest[SHA256_LEN];
	struct sha256 h;

	if (!wanted && !json_is_true(asked))
		return 0;
	sha256_init(&h);
	sha256_add(&h, w->data, w->len);
	sha256_end(&h, digest);
	for (size_t i = 0; i < SHA256_LEN; i++)
		(void)snprintf(w->sum + 2 * i, 3, "%02x", digest[i]);
	if (!wanted || str_equal(w->sum, wanted))
		return 0;
	return error_field(err, "validate_checksum", "is not the SHA-256 of the content, %s",
	                   w->sum);
}

static void start_writing(struct file_work *w, struct session *session)
{
	cleanup_free char *backup = xasprintf("%s" BACKUP, w->path);

	if (w->call->args.create_backup)
		start_operation(
			w, session,
			&(struct op_file_request){
				.request = {.op = BOX_FILE_MOVE, .to = backup, .replace = true},
				.on_end = on_prepared,
			});
	else if (!w->call->args.force_overwrite)
		start_operation(w, session,
		                &(struct op_file_request){.request = {.op = BOX_FILE_STAT},
		                                          .on_end = on_prepared});
	else
		write_now(w, session);
}

static void write_file(struct call *call, struct session *session)
{
	struct file_work *w = open_work(call);
	struct error err = {0};

	if (!w)
		return;
	if (take_content(w, &err) < 0 || check_sum(w, &err) < 0)
		tool_refuse(call, &err);
	else
		start_writing(w, session);
}

void tool_write_file(struct call *call)
{
	tool_with_session(call, write_file);
}

static char *describe_content(const struct file_work *w, const char *data, size_t len, bool binary)
{
	cleanup_buf struct buf b = BUF_INIT(2 * TEXT_MAX);
	cleanup_free char *where = w->call->brief
	                                   ? xstrdup("read_file with another offset")
	                                   : sandbox_uri_file(w->call->args.sandbox_id, w->path);
	cleanup_free char *path = absolute_path(w->path);
	size_t room = w->call->router->config->mcp_text_bytes, ignored;

	if (binary)
		(void)!buf_addf(&b, "%s is binary, %zu bytes; its content is in base64.", path,
		                len);
	else if (len == 0)
		(void)!buf_addf(&b, "%s is empty.", path);
	else
		(void)!shorten(&b, data, len, room, where);
	return buf_take(&b, &ignored);
}

static int check_text(const char *data, size_t len, struct error *err)
{
	if (utf8_is_valid(data, len) && !memchr(data, '\0', len))
		return 0;
	return error_field(err, "encoding", "the file is not text: use base64");
}

/* What was read of a file. */
struct content {
	const char *data, *encoded; /* @encoded NULL: text */
	size_t len;
	uint64_t size;
	const char *type;
};

/* Return: owned. */
static json_t *view_content(const struct file_work *w, const struct content *c)
{
	cleanup_free char *path = absolute_path(w->path);
	json_t *j = json_object();

	json_set(j, "path", json_text(path, strlen(path)));
	json_set(j, "size", json_integer((json_int_t)c->size));
	json_set(j, "encoding", json_string(c->encoded ? "base64" : "utf8"));
	if (c->encoded)
		json_set(j, "content", json_string(c->encoded));
	else if (!w->call->brief) /* the text has it */
		json_set(j, "content", json_text(c->data, c->len));
	json_set(j, "truncated", json_boolean(w->call->args.offset + c->len < c->size));
	json_set(j, "mime_type", json_stringn(c->type, strcspn(c->type, ";")));
	return j;
}

static void on_read(void *ctx, const struct file_result *result)
{
	struct file_work *w = ctx;
	struct call *call = w->call;
	const char *type = media_type_of(w->path);
	uint64_t size = result->count > 0 ? result->items[0].size : result->len;
	uint64_t offset = call->args.offset;
	size_t len = result->len;
	bool base64 = call->args.encoding == TOOL_BASE64;
	bool image = tool_is_image(type);
	cleanup_free char *encoded = NULL, *text = NULL;
	json_t *j, *content = json_array();
	struct error err = {0};

	if (!result->failure && offset + len < size && !base64)
		len = utf8_cut(result->data, len); /* not inside a character */
	if (result->failure || (!base64 && !image && check_text(result->data, len, &err) < 0)) {
		json_decref(content);
		tool_refuse(call, result->failure ? result->failure : &err);
		return;
	}
	base64 |= image;
	encoded = base64 ? base64_encode(result->data, len) : NULL;
	text = describe_content(w, result->data, len, base64);
	if (image && len == size)
		(void)!json_array_append_new(content, tool_image(type, json_string(encoded)));
	j = view_content(w, &(struct content){.data = result->data,
	                                      .len = len,
	                                      .encoded = encoded,
	                                      .size = size,
	                                      .type = type});
	tool_finish(call, text, j, content, false);
}

static void read_file(struct call *call, struct session *session)
{
	struct file_work *w = open_work(call);
	size_t max = (size_t)call->args.max_size;

	if (w)
		start_operation(w, session,
		                &(struct op_file_request){
					.request = {.op = BOX_FILE_READ,
		                                    .offset = call->args.offset,
		                                    .length = max},
					.data_max = max,
					.on_end = on_read,
				});
}

void tool_read_file(struct call *call)
{
	tool_with_session(call, read_file);
}

static json_t *view_item(const struct file_work *w, const struct file_item *item)
{
	const char *slash = strrchr(item->path, '/');
	const char *name = slash ? slash + 1 : item->path;
	cleanup_free char *path =
		xasprintf("/workspace%s%s/%s", w->path[0] ? "/" : "", w->path, item->path);
	json_t *j = json_object();
	char mode[8], time[40];

	(void)snprintf(mode, sizeof(mode), "%04o", item->mode & 07777U);
	clock_format_utc(item->mtime_ns / 1000000, time, sizeof(time));
	/* The program chooses the bytes: json_text replaces invalid UTF-8. */
	json_set(j, "name", json_text(name, strlen(name)));
	json_set(j, "path", json_text(path, strlen(path)));
	json_set(j, "size", json_integer((json_int_t)item->size));
	json_set(j, "is_dir", json_boolean(item->type == BOX_FILE_DIRECTORY));
	json_set(j, "type", json_string(encode_file_type(item->type)));
	json_set(j, "mode", json_string(mode));
	json_set(j, "modified", json_string(time));
	return j;
}

static void on_listed(void *ctx, const struct file_result *result)
{
	struct file_work *w = ctx;
	struct call *call = w->call;
	cleanup_buf struct buf text = BUF_INIT(TEXT_MAX), brief = BUF_INIT(TEXT_MAX);
	cleanup_free char *path = absolute_path(w->path);
	json_t *j, *list;

	if (result->failure) {
		tool_refuse(call, result->failure);
		return;
	}
	list = json_array();
	for (size_t i = 0; i < result->count; i++) {
		const struct file_item *item = &result->items[i];

		(void)!buf_addf(&text, "%s%s %llu\n", item->path,
		                item->type == BOX_FILE_DIRECTORY ? "/" : "",
		                (unsigned long long)item->size);
		(void)!json_array_append_new(list, view_item(w, item));
	}
	j = json_object();
	json_set(j, "path", json_text(path, strlen(path)));
	json_set(j, "files", list);
	json_set(j, "total_count", json_integer((json_int_t)result->count));
	json_set(j, "truncated", json_boolean(result->summary.truncated));
	(void)!shorten(&brief, text.data ? text.data : "", text.len,
	               call->router->config->mcp_text_bytes, NULL);
	tool_finish(call, brief.len ? brief.data : "No files.", j, NULL, false);
}

static void list_files(struct call *call, struct session *session)
{
	struct file_work *w = open_work(call);

	if (w)
		start_operation(w, session,
		                &(struct op_file_request){
					.request = {.op = BOX_FILE_LIST,
		                                    .limit = 1000,
		                                    .recursive = call->args.recursive},
					.on_end = on_listed,
				});
}

void tool_list_files(struct call *call)
{
	tool_with_session(call, list_files);
}
