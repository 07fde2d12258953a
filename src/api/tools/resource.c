/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/resource.h"

#include "api/internal.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/op/download.h"
#include "api/op/file.h"
#include "api/op/session_log.h"
#include "api/tools/sandbox_uri.h"
#include "api/tools/tool_internal.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/policy/policies.h"
#include "core/run/run.h"
#include "core/run/run_record.h"
#include "core/run/run_row.h"
#include "core/session/session.h"
#include "core/session/session_row.h"
#include "core/template/templates.h"
#include "http/media_type.h"
#include <string.h>

/*
 * Theory of operation. Each kind of resource has a reader. A reader that needs the store or a box
 * starts an operation and is called again after it. Pages of the list: templates and policies
 * first, then one sandbox each, because its box must list its files.
 */

#define READ_MAX  (10u << 20)
#define FILES_MAX 500
#define LOG_LINES 1000

struct reading {
	struct call *call;
	struct sandbox_uri uri;
	char *text;    /* owned: as the caller wrote it */
	bool searched; /* the store was asked */
	bool listed;   /* it is a directory */
	json_t *page;
};

static void reading_free(void *state)
{
	struct reading *w = state;

	json_decref(w->page);
	free(w->text);
	free(w);
}

static struct reading *reading_new(struct call *call)
{
	struct reading *w = NEW(struct reading);

	w->call = call;
	call->state = w;
	call->free_state = reading_free;
	return w;
}

static int set_not_found(struct error *err)
{
	return error_set(err, ERR_NOT_FOUND, 0, "Resource not found");
}

static void fail_not_found(struct reading *w)
{
	struct error err = {0};

	(void)set_not_found(&err);
	call_fail(w->call, &err);
}

static void fail_reading(struct reading *w, const struct error *err)
{
	if (err->code == ERR_FILE_NOT_FOUND)
		fail_not_found(w);
	else
		call_fail(w->call, err);
}

/* Text, or base64. */
static void finish_reading(struct reading *w, const char *type, const char *data, size_t len)
{
	json_t *item = json_object(), *list = json_array(), *result = json_object();

	json_set(item, "uri", json_text(w->text, strlen(w->text)));
	json_set(item, "mimeType", json_stringn(type, strcspn(type, ";")));
	if (utf8_is_valid(data, len) && !memchr(data, '\0', len)) {
		json_set(item, "text", json_text(data, len));
	} else {
		cleanup_free char *encoded = base64_encode(data, len);

		json_set(item, "blob", json_string(encoded));
	}
	(void)!json_array_append_new(list, item);
	json_set(result, "contents", list);
	call_finish(w->call, result);
}

static void finish_json(struct reading *w, json_t *value)
{
	size_t len;
	cleanup_free char *text = json_write(value, &len);

	finish_reading(w, "application/json", text, len);
}

static void read_kind(struct reading *w);

static void on_found(void *ctx, const struct error *err)
{
	struct reading *w = ctx;

	w->searched = true;
	if (err)
		fail_reading(w, err);
	else
		read_kind(w);
}

static void wait_for_store(struct reading *w, struct store_load *search, const struct error *err)
{
	if (search)
		call_wait_store(w->call, search);
	else
		fail_reading(w, err);
}

/* Return: NULL: waits for the store, or has ended. */
static struct session *need_session(struct reading *w)
{
	const struct router_config *p = &w->call->router->parts;
	struct session *session = session_find(p->sessions, w->call->principal->tenant, w->uri.id);
	struct error err = {0};

	if (session)
		return session;
	if (w->searched || !p->store)
		fail_not_found(w);
	else
		wait_for_store(w,
		               session_row_load(p->sessions, w->call->principal->tenant, w->uri.id,
		                                on_found, w, &err),
		               &err);
	return NULL;
}

static void on_listed(void *ctx, const struct file_result *result)
{
	struct reading *w = ctx;
	json_t *list;

	if (result->failure) {
		fail_reading(w, result->failure);
		return;
	}
	list = json_array();
	for (size_t i = 0; i < result->count; i++) {
		const struct file_item *item = &result->items[i];
		json_t *j = json_object();

		json_set(j, "name", json_text(item->path, strlen(item->path)));
		json_set(j, "size", json_integer((json_int_t)item->size));
		json_set(j, "is_dir", json_boolean(item->type == BOX_FILE_DIRECTORY));
		(void)!json_array_append_new(list, j);
	}
	finish_json(w, list);
}

static void on_read(void *ctx, const struct file_result *result)
{
	struct reading *w = ctx;
	bool directory = result->count > 0 && result->items[0].type == BOX_FILE_DIRECTORY;

	if (result->failure && (directory || result->failure->code == ERR_CONFLICT ||
	                        result->failure->code == ERR_INVALID)) {
		w->listed = true;
		read_kind(w);
		return;
	}
	if (result->failure)
		fail_reading(w, result->failure);
	else
		finish_reading(w, media_type_of(w->uri.path), result->data, result->len);
}

static void open_file(struct reading *w, struct session *session)
{
	bool list = w->listed || !w->uri.path[0];
	const struct op_file_request request = {
		.request = {.op = list ? BOX_FILE_LIST : BOX_FILE_READ,
	                    .path = w->uri.path,
	                    .length = READ_MAX + 1,
	                    .limit = FILES_MAX},
		.data_max = READ_MAX,
		.on_end = list ? on_listed : on_read,
		.ctx = w,
	};
	struct error err = {0};
	struct op_file *collect = op_file_start(session, &request, &err);

	if (collect)
		call_wait_file(w->call, collect);
	else
		fail_reading(w, &err);
}

static void read_file(struct reading *w)
{
	struct session *session = need_session(w);

	if (session)
		open_file(w, session);
}

static void finish_stream(struct reading *w, const struct buf *b)
{
	size_t len;
	cleanup_free char *text = utf8_sanitize(b->data ? b->data : "", b->len, &len);

	finish_reading(w, "text/plain", text, len);
}

static void read_execution(struct reading *w)
{
	const struct router_config *p = &w->call->router->parts;
	bool is_stderr = str_equal(w->uri.path, "stderr");
	bool is_stream = is_stderr || str_equal(w->uri.path, "stdout");
	const struct buf *kept =
		is_stream ? tool_find_output(w->call, w->uri.id,
	                                     is_stderr ? OUTPUT_STDERR : OUTPUT_STDOUT)
			  : NULL;
	struct error err = {0};

	if (kept)
		finish_stream(w, kept);
	else if (is_stream && !w->searched && p->store)
		wait_for_store(w,
		               run_row_load(p->executions, w->call->principal->tenant, w->uri.id,
		                            on_found, w, &err),
		               &err);
	else
		fail_not_found(w);
}

static void read_log(struct reading *w)
{
	struct session *session = need_session(w);
	cleanup_buf struct buf log = BUF_INIT(SESSION_LOG_ROOM);
	struct session_info info = {0};

	if (!session)
		return;
	session_info(session, &info);
	session_log_tail(w->call->router->parts.executions, &info, 0, LOG_LINES, &log);
	finish_stream(w, &log);
}

static void read_template(struct reading *w)
{
	const struct router_config *p = &w->call->router->parts;
	struct template *t = templates_find(p->templates, w->call->principal->tenant, w->uri.id);

	if (t)
		finish_json(w, encode_template(p->templates, t, p->runners));
	else
		fail_not_found(w);
}

static void read_policy(struct reading *w)
{
	struct router *r = w->call->router;

	/* resource_check found it. */
	finish_json(w, encode_policy(r->runs, w->call->principal,
	                             policies_find(run_service_policies(r->runs), w->uri.id)));
}

static void (*const readers[])(struct reading *w) = {
	[SANDBOX_URI_IS_FILE] = read_file,     [SANDBOX_URI_IS_EXECUTION] = read_execution,
	[SANDBOX_URI_IS_LOG] = read_log,       [SANDBOX_URI_IS_TEMPLATE] = read_template,
	[SANDBOX_URI_IS_POLICY] = read_policy,
};
static_assert(ARRAY_SIZE(readers) == SANDBOX_URI_KIND_COUNT, "every kind has its reader");

static void read_kind(struct reading *w)
{
	readers[w->uri.kind](w);
}

int resource_check(const struct call *call, const struct sandbox_uri *uri, struct error *err)
{
	const struct router *r = call->router;
	const struct policies *all = r->runs ? run_service_policies(r->runs) : NULL;
	const struct policy *policy;

	/* However they are read. */
	if (uri->kind == SANDBOX_URI_IS_FILE && !scope_allows(call->principal->scopes, SCOPE_FILES))
		return error_set(err, ERR_NO_SCOPE, 0, "this needs scope files");
	if (uri->kind != SANDBOX_URI_IS_POLICY)
		return 0;
	policy = all ? policies_find(all, uri->id) : NULL;
	return policy && encode_policy_is_seen(call->router->runs, call->principal, policy)
	               ? 0
	               : set_not_found(err);
}

int resource_parse(const char *text, struct sandbox_uri *ret_uri, struct error *err)
{
	if (!text || strlen(text) > RESOURCE_URI_MAX)
		return error_set(err, ERR_INVALID, 0, "uri must be a string of at most %d bytes",
		                 RESOURCE_URI_MAX);
	return sandbox_uri_read(text, ret_uri) < 0 ? set_not_found(err) : 0;
}

void resource_read(struct call *call, const char *uri)
{
	struct reading *w = reading_new(call);
	struct error err = {0};

	if (resource_parse(uri, &w->uri, &err) < 0 || resource_check(call, &w->uri, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	w->text = xstrdup(uri);
	read_kind(w);
}

static json_t *describe(const char *uri, const char *name, const char *title, const char *type)
{
	json_t *j = json_object();

	json_set(j, "uri", json_text(uri, strlen(uri)));
	json_set(j, "name", json_text(name, strlen(name)));
	json_set(j, "description", json_text(title, strlen(title)));
	json_set(j, "mimeType", json_stringn(type, strcspn(type, ";")));
	return j;
}

/* Takes @uri. */
static void add_entry(json_t *list, char *uri, const char *name, const char *title,
                      const char *type)
{
	(void)!json_array_append_new(list, describe(uri, name, title, type));
	free(uri);
}

/* An ended sandbox has a log, but no files. */
static void add_session(json_t *list, const struct session_info *info)
{
	const char *id = info->id;

	if (info->state != SESSION_TERMINATED && info->state != SESSION_FAILED)
		add_entry(list, xasprintf(SANDBOX_URI_FILE "%s/", id), id, "Files of a sandbox",
		          "application/json");
	add_entry(list, xasprintf(SANDBOX_URI_LOG "%s", id), id, "Output of programs in a sandbox",
	          "text/plain");
}

static void finish_page(struct reading *w)
{
	call_finish(w->call, TAKE_PTR(w->page));
}

static void on_files(void *ctx, const struct file_result *result)
{
	struct reading *w = ctx;
	json_t *list = json_object_get(w->page, "resources");

	/* A failing box leaves the sandbox's entries. */
	for (size_t i = 0; !result->failure && i < result->count; i++) {
		const struct file_item *item = &result->items[i];
		cleanup_free char *uri = NULL;
		json_t *j;

		/* Hidden files can be read, but are not listed. */
		if (item->type != BOX_FILE_REGULAR || item->path[0] == '.' ||
		    strstr(item->path, "/."))
			continue;
		uri = sandbox_uri_file(w->uri.id, item->path);
		j = describe(uri, item->path, "A file of a sandbox", media_type_of(item->path));
		json_set(j, "size", json_integer((json_int_t)item->size));
		(void)!json_array_append_new(list, j);
	}
	finish_page(w);
}

/* No box is made for a list. */
static bool has_files(const struct call *call, const struct session_info *info)
{
	return session_mode_has_box(info->mode) &&
	       (info->state == SESSION_READY || info->state == SESSION_RUNNING) &&
	       scope_allows(call->principal->scopes, SCOPE_FILES);
}

static void list_session(struct reading *w, struct session *session)
{
	struct session_info info = {0};
	const struct op_file_request request = {
		.request = {.op = BOX_FILE_LIST, .path = "", .limit = FILES_MAX, .recursive = true},
		.on_end = on_files,
		.ctx = w,
	};
	struct error ignored = {0};
	struct op_file *collect = NULL;

	session_info(session, &info);
	add_session(json_object_get(w->page, "resources"), &info);
	(void)!str_copy(w->uri.id, sizeof(w->uri.id), info.id);
	if (has_files(w->call, &info))
		collect = op_file_start(session, &request, &ignored);
	if (collect)
		call_wait_file(w->call, collect);
	else
		finish_page(w);
}

/* Return: the next offset. */
static uint64_t list_fixed(struct reading *w, uint64_t offset)
{
	struct router *r = w->call->router;
	const struct policies *all = run_service_policies(r->runs);
	size_t templates = templates_count(r->parts.templates, w->call->principal->tenant);
	json_t *list = json_object_get(w->page, "resources");
	const struct template *t;
	const struct policy *policy;

	for (; offset < templates && json_array_size(list) < RESOURCE_PAGE; offset++) {
		t = templates_at(r->parts.templates, w->call->principal->tenant, offset);
		add_entry(list, xasprintf(SANDBOX_URI_TEMPLATE "%s", t->spec.id), t->spec.id,
		          t->spec.description ? t->spec.description : "A sandbox template",
		          "application/json");
	}
	for (; all && offset >= templates && json_array_size(list) < RESOURCE_PAGE &&
	       (policy = policies_at(all, offset - templates));
	     offset++)
		if (encode_policy_is_seen(r->runs, w->call->principal, policy))
			add_entry(list, xasprintf(SANDBOX_URI_POLICY "%s", policy->name),
			          policy->name, "Limits and permissions under this policy",
			          "application/json");
	return offset;
}

static size_t count_fixed(const struct call *call)
{
	struct router *r = call->router;
	const struct policies *all = run_service_policies(r->runs);
	size_t count = 0;

	while (all && policies_at(all, count))
		count++;
	return count + templates_count(r->parts.templates, call->principal->tenant);
}

void resource_list(struct call *call, uint64_t offset)
{
	struct session_service *sessions = call->router->parts.sessions;
	const char *tenant = call->principal->tenant;
	struct reading *w = reading_new(call);
	size_t fixed = count_fixed(call);
	struct session *session;

	w->page = json_object();
	json_set(w->page, "resources", json_array());
	if (offset < fixed) {
		offset = list_fixed(w, offset);
		if (offset < fixed || session_at(sessions, tenant, 0))
			json_set(w->page, "nextOffset", json_integer((json_int_t)offset));
		finish_page(w);
		return;
	}
	session = session_at(sessions, tenant, (size_t)(offset - fixed));
	if (session && session_older(session))
		json_set(w->page, "nextOffset", json_integer((json_int_t)offset + 1));
	if (session)
		list_session(w, session);
	else
		finish_page(w);
}

static const struct {
	const char *uri, *name, *title, *type;
} patterns[] = {
	{SANDBOX_URI_FILE "{id}/{path}", "sandbox-file",
         "A file of a sandbox, or the entries of a directory", ""},
	{SANDBOX_URI_LOG "{id}", "sandbox-log", "Output of programs in a sandbox", "text/plain"},
	{SANDBOX_URI_EXECUTION "{id}/{stream}", "execution-output",
         "Complete stdout or stderr of an execution", "text/plain"},
	{SANDBOX_URI_TEMPLATE "{id}", "template", "A sandbox template", "application/json"},
	{SANDBOX_URI_POLICY "{name}", "policy", "Limits and permissions under a policy",
         "application/json"},
};

json_t *resource_templates(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		json_t *j = json_object();

		json_set(j, "uriTemplate", json_string(patterns[i].uri));
		json_set(j, "name", json_string(patterns[i].name));
		json_set(j, "description", json_string(patterns[i].title));
		if (patterns[i].type[0])
			json_set(j, "mimeType", json_string(patterns[i].type));
		(void)!json_array_append_new(list, j);
	}
	return list;
}
