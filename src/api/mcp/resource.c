/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "api/json/json.h"
#include "api/json/view.h"
#include "api/json/view_policy.h"
#include "api/op/collect.h"
#include "api/op/outputs.h"
#include "api/op/session_log.h"
#include "api/op/transfer.h"
#include "api/tools/sandbox_uri.h"
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
#include <string.h>

/*
 * Theory of operation. Every resource has a reader for its kind. What a reader needs may be in the
 * store, or in a box: then it waits, and goes on where it left off. Lists are pages: templates and
 * policies first, then one sandbox a page, because its files have to be asked for in its box.
 */

#define READ_MAX  (10u << 20)
#define FILES_MAX 500
#define LOG_LINES 1000

/* A request that waits: for the store, or for a box. */
struct reading {
	struct mcp_request *q;
	struct sandbox_uri uri;
	char *text; /* owned: the URI as it was asked for */
	struct store_search *search;
	struct collect *collect;
	bool searched;
	bool listed; /* the path was found to be a directory */
	json_t *page;
};

static void reading_free(struct reading *w)
{
	json_decref(w->page);
	free(w->text);
	free(w);
}

static void cancel(void *work)
{
	struct reading *w = work;

	if (w->search)
		store_search_cancel(w->search);
	if (w->collect)
		collect_cancel(w->collect);
	reading_free(w);
}

static const char *tenant_of(const struct reading *w)
{
	return w->q->session->tenant;
}

static struct router *router_of(const struct reading *w)
{
	return w->q->session->mcp->router;
}

static void not_found(struct reading *w)
{
	struct mcp_request *q = w->q;
	json_t *data = json_object();

	json_set(data, "uri", json_text(w->text, strlen(w->text)));
	reading_free(w);
	mcp_request_error(q, RPC_RESOURCE_NOT_FOUND, "Resource not found", data);
}

static void fail(struct reading *w, const struct error *err)
{
	struct mcp_request *q = w->q;

	if (err->code == ERR_FILE_NOT_FOUND) {
		not_found(w);
		return;
	}
	reading_free(w);
	mcp_request_fail(q, err);
}

/* The end of a read: text where it is some, else base64. */
static void finish(struct reading *w, const char *type, const char *data, size_t len)
{
	struct mcp_request *q = w->q;
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
	reading_free(w);
	mcp_request_result(q, result);
}

static void finish_json(struct reading *w, json_t *value)
{
	size_t len;
	cleanup_free char *text = json_write(value, &len);

	finish(w, "application/json", text, len);
}

/* Kinds. Each reads what is there, and is called again when what it waited for is. */

static void go_on(struct reading *w);

static void on_found(void *ctx, const struct error *err)
{
	struct reading *w = ctx;

	w->search = NULL;
	w->searched = true;
	if (err)
		fail(w, err);
	else
		go_on(w);
}

static void search(struct reading *w, struct store_search *found, const struct error *err)
{
	w->search = found;
	if (!found)
		fail(w, err);
}

/* Return: NULL: it waits, or was answered. */
static struct session *need_session(struct reading *w)
{
	const struct router_config *p = &router_of(w)->parts;
	struct session *session = session_find(p->sessions, tenant_of(w), w->uri.id);
	struct error err = {0};

	if (session)
		return session;
	if (w->searched || !p->store)
		not_found(w);
	else
		search(w,
		       store_load_session(p->sessions, tenant_of(w), w->uri.id, on_found, w, &err),
		       &err);
	return NULL;
}

static void on_listed(void *ctx, const struct file_result *result)
{
	struct reading *w = ctx;
	json_t *list;

	w->collect = NULL;
	if (result->failure) {
		fail(w, result->failure);
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

	w->collect = NULL;
	if (result->failure && (directory || result->failure->code == ERR_CONFLICT ||
	                        result->failure->code == ERR_INVALID)) {
		w->listed = true;
		go_on(w);
		return;
	}
	if (result->failure)
		fail(w, result->failure);
	else
		finish(w, transfer_media_type(w->uri.path), result->data, result->len);
}

static void open_file(struct reading *w, struct session *session)
{
	bool list = w->listed || !w->uri.path[0];
	const struct collect_request request = {
		.request = {.op = list ? BOX_FILE_LIST : BOX_FILE_READ,
	                    .path = w->uri.path,
	                    .length = READ_MAX + 1,
	                    .limit = FILES_MAX},
		.data_max = READ_MAX,
		.on_over = list ? on_listed : on_read,
		.ctx = w,
	};
	struct error err = {0};

	w->collect = collect_start(session, &request, &err);
	if (!w->collect)
		fail(w, &err);
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

	finish(w, "text/plain", text, len);
}

/* What is kept of it here; NULL: nothing. */
static const struct buf *find_output(const struct reading *w, enum output_stream stream)
{
	const struct router *r = router_of(w);
	struct run_record *e = run_records_find(r->parts.executions, tenant_of(w), w->uri.id);

	return e ? run_record_printed(e, stream)
	         : outputs_find(r->outputs, tenant_of(w), w->uri.id, stream);
}

static void read_execution(struct reading *w)
{
	const struct router_config *p = &router_of(w)->parts;
	bool is_stderr = str_equal(w->uri.path, "stderr");
	bool is_stream = is_stderr || str_equal(w->uri.path, "stdout");
	const struct buf *kept =
		is_stream ? find_output(w, is_stderr ? OUTPUT_STDERR : OUTPUT_STDOUT) : NULL;
	struct error err = {0};

	if (kept)
		finish_stream(w, kept);
	else if (is_stream && !w->searched && p->store)
		search(w,
		       store_load_execution(p->executions, tenant_of(w), w->uri.id, on_found, w,
		                            &err),
		       &err);
	else
		not_found(w);
}

static void read_log(struct reading *w)
{
	struct session *session = need_session(w);
	cleanup_buf struct buf log = BUF_INIT(SESSION_LOG_ROOM);
	struct session_info info = {0};

	if (!session)
		return;
	session_info(session, &info);
	session_log_tail(router_of(w)->parts.executions, &info, 0, LOG_LINES, &log);
	finish_stream(w, &log);
}

static void read_template(struct reading *w)
{
	const struct router_config *p = &router_of(w)->parts;
	struct template *t = templates_find(p->templates, tenant_of(w), w->uri.id);

	if (t)
		finish_json(w, view_template(p->templates, t, p->runners));
	else
		not_found(w);
}

static void read_policy(struct reading *w)
{
	struct router *r = router_of(w);

	/* It was found to be there, and nothing was waited for since: it is still dispatched. */
	finish_json(w, view_policy(r, w->q->principal,
	                           policies_find(run_service_policies(r->runs), w->uri.id)));
}

static void (*const readers[])(struct reading *w) = {
	[SANDBOX_URI_IS_FILE] = read_file,     [SANDBOX_URI_IS_EXECUTION] = read_execution,
	[SANDBOX_URI_IS_LOG] = read_log,       [SANDBOX_URI_IS_TEMPLATE] = read_template,
	[SANDBOX_URI_IS_POLICY] = read_policy,
};
static_assert(ARRAY_SIZE(readers) == SANDBOX_URI_KIND_COUNT, "every kind has its reader");

static void go_on(struct reading *w)
{
	struct mcp_request *q = w->q;

	q->work = w;
	q->cancel = cancel;
	readers[w->uri.kind](w);
}

/* NULL: answered. */
static struct reading *open_reading(struct mcp_request *q)
{
	const char *uri = mcp_request_text(q, "uri");
	struct reading *w;

	if (!uri || strlen(uri) > MCP_URI_MAX) {
		mcp_request_error(q, RPC_INVALID_PARAMS, "uri must be a string", NULL);
		return NULL;
	}
	w = NEW(struct reading);
	w->q = q;
	w->text = xstrdup(uri);
	if (sandbox_uri_read(uri, &w->uri) == 0)
		return w;
	not_found(w);
	return NULL;
}

int mcp_resource_check(const struct mcp_request *q, const struct sandbox_uri *uri,
                       struct error *err)
{
	struct router *r = q->session->mcp->router;
	const struct policies *all = r->runs ? run_service_policies(r->runs) : NULL;
	const struct policy *policy;

	/* Files have a scope of their own, whichever way they are read. */
	if (uri->kind == SANDBOX_URI_IS_FILE && !scope_allows(q->principal->scopes, SCOPE_FILES))
		return error_set(err, ERR_NO_SCOPE, 0, "this needs scope files");
	if (uri->kind != SANDBOX_URI_IS_POLICY)
		return 0;
	policy = all ? policies_find(all, uri->id) : NULL;
	if (!policy || !view_policy_is_seen(r, q->principal, policy))
		return error_set(err, ERR_FILE_NOT_FOUND, 0, "no such policy");
	return 0;
}

void mcp_resources_read(struct mcp_request *q)
{
	struct reading *w = open_reading(q);
	struct error err = {0};

	if (!w)
		return;
	if (mcp_resource_check(q, &w->uri, &err) < 0)
		fail(w, &err);
	else
		go_on(w);
}

/* Lists. */

static json_t *describe(const char *uri, const char *name, const char *title, const char *type)
{
	json_t *j = json_object();

	json_set(j, "uri", json_text(uri, strlen(uri)));
	json_set(j, "name", json_text(name, strlen(name)));
	json_set(j, "description", json_text(title, strlen(title)));
	json_set(j, "mimeType", json_stringn(type, strcspn(type, ";")));
	return j;
}

static void add_template(json_t *list, const struct template *t)
{
	cleanup_free char *uri = xasprintf(SANDBOX_URI_TEMPLATE "%s", t->spec.id);

	(void)!json_array_append_new(list, describe(uri, t->spec.id,
	                                            t->spec.description ? t->spec.description
	                                                                : "A template of sandboxes",
	                                            "application/json"));
}

static void add_policy(json_t *list, const struct policy *policy)
{
	cleanup_free char *uri = xasprintf(SANDBOX_URI_POLICY "%s", policy->name);

	(void)!json_array_append_new(list, describe(uri, policy->name,
	                                            "What sandboxes under this policy may do",
	                                            "application/json"));
}

/* One that has ended has no files any more; what was printed in it can be read. */
static void add_session(json_t *list, const struct session_info *info)
{
	const char *id = info->id;
	cleanup_free char *files = xasprintf(SANDBOX_URI_FILE "%s/", id);
	cleanup_free char *log = xasprintf(SANDBOX_URI_LOG "%s", id);

	if (info->state != SESSION_TERMINATED && info->state != SESSION_FAILED)
		(void)!json_array_append_new(
			list, describe(files, id, "The files of a sandbox", "application/json"));
	(void)!json_array_append_new(
		list, describe(log, id, "What programs printed in a sandbox", "text/plain"));
}

static void finish_page(struct reading *w)
{
	struct mcp_request *q = w->q;
	json_t *page = TAKE_PTR(w->page);

	reading_free(w);
	mcp_request_result(q, page);
}

/* Hidden ones are programs' own business, and can be read all the same. */
static bool is_listed(const struct file_item *item)
{
	return item->type == BOX_FILE_REGULAR && item->path[0] != '.' && !strstr(item->path, "/.");
}

static void on_files(void *ctx, const struct file_result *result)
{
	struct reading *w = ctx;
	json_t *list = json_object_get(w->page, "resources");

	w->collect = NULL;
	/* A sandbox that cannot be asked has its two entries all the same. */
	for (size_t i = 0; !result->failure && i < result->count; i++) {
		const struct file_item *item = &result->items[i];
		cleanup_free char *uri = NULL;
		json_t *j;

		if (!is_listed(item))
			continue;
		uri = sandbox_uri_file(w->uri.id, item->path);
		j = describe(uri, item->path, "A file of a sandbox",
		             transfer_media_type(item->path));
		json_set(j, "size", json_integer((json_int_t)item->size));
		(void)!json_array_append_new(list, j);
	}
	finish_page(w);
}

/* Whether its box is there to be asked; one without is not made for this. */
static bool has_files(const struct mcp_request *q, const struct session_info *info)
{
	return info->mode == SESSION_PERSISTENT &&
	       (info->state == SESSION_READY || info->state == SESSION_RUNNING) &&
	       scope_allows(q->principal->scopes, SCOPE_FILES);
}

static void list_session(struct reading *w, struct session *session)
{
	struct session_info info = {0};
	const struct collect_request request = {
		.request = {.op = BOX_FILE_LIST, .path = "", .limit = FILES_MAX, .recursive = true},
		.on_over = on_files,
		.ctx = w,
	};
	struct error ignored = {0};

	session_info(session, &info);
	add_session(json_object_get(w->page, "resources"), &info);
	(void)!str_copy(w->uri.id, sizeof(w->uri.id), info.id);
	if (has_files(w->q, &info))
		w->collect = collect_start(session, &request, &ignored);
	if (!w->collect) {
		finish_page(w);
		return;
	}
	w->q->work = w;
	w->q->cancel = cancel;
}

/* Templates and policies, as far as they fill the page. Return: where to go on. */
static uint64_t list_fixed(struct reading *w, uint64_t offset)
{
	struct router *r = router_of(w);
	const struct policies *all = run_service_policies(r->runs);
	size_t templates = templates_count(r->parts.templates, tenant_of(w));
	json_t *list = json_object_get(w->page, "resources");
	const struct policy *policy;

	for (; offset < templates && json_array_size(list) < MCP_PAGE; offset++)
		add_template(list, templates_at(r->parts.templates, tenant_of(w), offset));
	for (; all && offset >= templates && json_array_size(list) < MCP_PAGE &&
	       (policy = policies_at(all, offset - templates));
	     offset++)
		if (view_policy_is_seen(r, w->q->principal, policy))
			add_policy(list, policy);
	return offset;
}

static size_t count_fixed(struct reading *w)
{
	struct router *r = router_of(w);
	const struct policies *all = run_service_policies(r->runs);
	size_t count = 0;

	while (all && policies_at(all, count))
		count++;
	return count + templates_count(r->parts.templates, tenant_of(w));
}

void mcp_resources_list(struct mcp_request *q)
{
	struct session_service *sessions = q->session->mcp->router->parts.sessions;
	struct reading *w;
	struct session *session;
	uint64_t offset;
	size_t fixed;

	if (mcp_cursor_read(q, &offset) < 0)
		return;
	w = NEW(struct reading);
	w->q = q;
	w->page = json_object();
	json_set(w->page, "resources", json_array());
	fixed = count_fixed(w);
	if (offset < fixed) {
		offset = list_fixed(w, offset);
		if (offset < fixed || session_at(sessions, tenant_of(w), 0))
			mcp_cursor_set(w->page, offset);
		finish_page(w);
		return;
	}
	session = session_at(sessions, tenant_of(w), (size_t)(offset - fixed));
	if (session && session_older(session))
		mcp_cursor_set(w->page, offset + 1);
	if (session)
		list_session(w, session);
	else
		finish_page(w);
}

static const struct {
	const char *uri, *name, *title, *type;
} patterns[] = {
	{SANDBOX_URI_FILE "{id}/{path}", "sandbox-file",
         "A file of a sandbox, or a directory as a list", ""},
	{SANDBOX_URI_LOG "{id}", "sandbox-log", "What programs printed in a sandbox", "text/plain"},
	{SANDBOX_URI_EXECUTION "{id}/{stream}", "execution-output",
         "stdout or stderr of an execution, all of it", "text/plain"},
	{SANDBOX_URI_TEMPLATE "{id}", "template", "A template of sandboxes", "application/json"},
	{SANDBOX_URI_POLICY "{name}", "policy", "What sandboxes under a policy may do",
         "application/json"},
};

void mcp_resource_templates_list(struct mcp_request *q)
{
	json_t *result = json_object(), *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		json_t *j = json_object();

		json_set(j, "uriTemplate", json_string(patterns[i].uri));
		json_set(j, "name", json_string(patterns[i].name));
		json_set(j, "description", json_string(patterns[i].title));
		if (patterns[i].type[0])
			json_set(j, "mimeType", json_string(patterns[i].type));
		(void)!json_array_append_new(list, j);
	}
	json_set(result, "resourceTemplates", list);
	mcp_request_result(q, result);
}
