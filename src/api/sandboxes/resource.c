/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/resource.h"

#include "api/json/json.h"
#include "api/pending.h"
#include "api/reply.h"
#include "api/sandboxes/sandboxes.h"
#include "api/tools/prompt.h"
#include "base/alloc.h"
#include "base/str.h"
#include "http/status.h"
#include <string.h>

#define ITEMS_MAX 2000 /* entries of a list */
#define PAGES_MAX 500  /* of resource_list for one list */

struct reading {
	struct pending pending;
	struct call call;
	json_t *items; /* of a list; owned */
	struct sandboxes_page page;
	size_t pages;
	uint64_t offset; /* of the next page */
	bool listing;
	bool page_done, list_done;
};

static void reading_free(struct reading *w)
{
	call_release(&w->call);
	json_decref(w->items);
	free(w);
}

static void on_left(struct pending *p)
{
	struct reading *w = CONTAINER_OF(p, struct reading, pending);

	call_cancel(&w->call);
	reading_free(w);
}

static struct reading *
reading_new(struct router *r, struct http_request *req, const struct route_args *args,
            void (*on_done)(void *ctx, json_t *result, const struct error *failure))
{
	struct reading *w = NEW(struct reading);

	w->call.events = (struct call_events){.ctx = w, .on_done = on_done};
	call_init(&w->call, r, args->principal, http_request_id(req));
	pending_wait(&w->pending, req, on_left);
	return w;
}

/* Return: the request, to be answered. */
static struct http_request *reading_end(struct reading *w)
{
	struct http_request *req = pending_resume(&w->pending);

	reading_free(w);
	return req;
}

static json_t *view_resource(const json_t *resource)
{
	static const char *const same[] = {"uri", "name", "description", "size"};
	json_t *j = json_object(), *type = json_object_get(resource, "mimeType");

	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		json_t *value = json_object_get(resource, same[i]);

		if (value)
			json_set(j, same[i], json_incref(value));
	}
	json_set(j, "mime_type", type ? json_incref(type) : json_string(""));
	json_set(j, "updated_at", sandboxes_now());
	return j;
}

/* No recursion for pages that are ready at once. */
static void list_pages(struct reading *w)
{
	w->listing = true;
	for (w->page_done = true; w->page_done && !w->list_done;) {
		w->page_done = false;
		resource_list(&w->call, w->offset);
	}
	w->listing = false;
	if (w->list_done) {
		const struct sandboxes_page page = w->page;
		json_t *items = TAKE_PTR(w->items);

		sandboxes_reply_list(reading_end(w), &page, items);
	}
}

static void on_page(void *ctx, json_t *page, const struct error *failure)
{
	struct reading *w = ctx;
	const json_t *list = json_object_get(page, "resources");
	const json_t *next = json_object_get(page, "nextOffset");

	assert(!failure); /* a list leaves out what cannot be read */
	(void)failure;
	for (size_t i = 0; i < json_array_size(list); i++)
		(void)!json_array_append_new(w->items, view_resource(json_array_get(list, i)));
	w->offset = (uint64_t)json_integer_value(next);
	w->page_done = true;
	w->list_done = !next || ++w->pages >= PAGES_MAX || json_array_size(w->items) >= ITEMS_MAX;
	if (!w->listing)
		list_pages(w);
}

static const struct field page_rows[] = {SANDBOXES_PAGE_ROWS, FIELDS_END};
const struct fields sandboxes_page_query = {.rows = page_rows};

void sandboxes_resources(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct sandboxes_page page = {0};
	struct reading *w;
	struct error err = {0};

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	if (query_decode(req, args->query, &page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	w = reading_new(r, req, args, on_page);
	w->page = page;
	w->items = json_array();
	list_pages(w);
}

static void on_read(void *ctx, json_t *result, const struct error *failure)
{
	const json_t *one = json_array_get(json_object_get(result, "contents"), 0);
	json_t *text = json_object_get(one, "text");
	json_t *content = text ? text : json_object_get(one, "blob");
	const char *uri = json_string_value(json_object_get(one, "uri"));
	const char *slash = uri ? strrchr(uri, '/') : NULL;
	struct http_request *req = reading_end(ctx);
	json_t *j;

	if (failure) {
		reply_error(req, failure);
		return;
	}
	j = view_resource(one);
	json_set(j, "name", json_string(slash ? slash + 1 : ""));
	json_set(j, "encoding", json_string(text ? "utf8" : "base64"));
	json_set(j, "content", json_incref(content));
	json_set(j, "size", json_integer((json_int_t)json_string_length(content)));
	reply_json(req, HTTP_OK, j);
}

void sandboxes_resource(struct router *r, struct http_request *req, const struct route_args *args)
{
	if (sandboxes_begin(req, SANDBOXES_V1) == 0)
		resource_read(&reading_new(r, req, args, on_read)->call, args->rest);
}

void sandboxes_prompts(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct sandboxes_page page = {0};
	struct error err = {0};

	(void)r;
	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	if (query_decode(req, args->query, &page, &err) < 0)
		reply_error(req, &err);
	else
		sandboxes_reply_list(req, &page, prompt_list());
}

/* Return: owned; NULL: the query has none. */
static json_t *read_arguments(const struct http_request *req, const json_t *prompt)
{
	const json_t *known = json_object_get(prompt, "arguments");
	json_t *given = NULL;

	for (size_t i = 0; i < json_array_size(known); i++) {
		const char *name =
			json_string_value(json_object_get(json_array_get(known, i), "name"));
		const char *value = http_query(req, name);

		if (!value)
			continue;
		given = given ? given : json_object();
		json_set(given, name, json_text(value, strlen(value)));
	}
	return given;
}

/* Return: owned. */
static json_t *view_messages(const json_t *filled)
{
	const json_t *messages = json_object_get(filled, "messages");
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(messages); i++) {
		const json_t *from = json_array_get(messages, i);
		json_t *to = json_object();

		json_set(to, "role", json_incref(json_object_get(from, "role")));
		json_set(to, "content",
		         json_incref(json_object_get(json_object_get(from, "content"), "text")));
		(void)!json_array_append_new(list, to);
	}
	return list;
}

void sandboxes_prompt(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_json json_t *list = NULL, *given = NULL, *filled = NULL;
	json_t *prompt = NULL;
	struct error err = {0};

	(void)r;
	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	list = prompt_list();
	for (size_t i = 0; i < json_array_size(list) && !prompt; i++) {
		json_t *one = json_array_get(list, i);

		if (str_equal(json_string_value(json_object_get(one, "name")), args->id))
			prompt = one;
	}
	if (!prompt)
		(void)error_set(&err, ERR_NOT_FOUND, 0, "no prompt has this name");
	given = read_arguments(req, prompt);
	if (given)
		filled = prompt_fill(args->id, given, &err);
	if (error_is_set(&err)) {
		reply_error(req, &err);
		return;
	}
	if (filled) {
		json_set(prompt, "messages", view_messages(filled));
		json_set(prompt, "timestamp", sandboxes_now());
	}
	reply_json(req, HTTP_OK, json_incref(prompt));
}
