/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/listing.h"

#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "core/session/session.h"
#include "core/session/session_list.h"
#include "core/store/store.h"
#include "http/status.h"

struct listing {
	struct pending pending;
	struct query_page page; /* its items are owned */
	const char *name;       /* of the list: literal */
	struct store_list *list;
};

static void listing_free(struct listing *l)
{
	json_decref(l->page.items);
	free(l);
}

static void on_left(struct pending *p)
{
	struct listing *l = CONTAINER_OF(p, struct listing, pending);

	store_list_cancel(l->list);
	listing_free(l);
}

static void on_page(void *ctx, const struct store_page *page, const struct error *err)
{
	struct listing *l = ctx;
	struct http_request *req = pending_resume(&l->pending);

	if (err) {
		reply_error(req, err);
		listing_free(l);
		return;
	}
	for (size_t i = 0; i < page->count; i++)
		query_page_add(&l->page, page->sessions ? encode_session(page->sessions[i])
		                                        : encode_run_brief(page->executions[i]));
	l->page.matched = page->total;
	reply_json(req, HTTP_OK, query_page_object(&l->page, l->name, page->total));
	free(l);
}

static bool has_all(const struct router *r)
{
	return r->parts.store && !store_is_failing(r->parts.store);
}

static struct listing *listing_new(const struct query_page *page, const char *name)
{
	struct listing *l = NEW(struct listing);

	*l = (struct listing){.page = *page, .name = name};
	return l;
}

/* @l->list NULL: refuse with *err. */
static void wait_or_refuse(struct listing *l, struct http_request *req, const struct error *err)
{
	if (l->list) {
		pending_wait(&l->pending, req, on_left);
		return;
	}
	reply_error(req, err);
	listing_free(l);
}

bool listing_sessions(struct router *r, struct http_request *req, const char *tenant,
                      const struct query_page *page)
{
	const struct store_query query = {.tenant = tenant,
	                                  .status = page->status,
	                                  .limit = page->limit,
	                                  .offset = page->offset};
	struct error err = {0};
	struct listing *l;

	if (!has_all(r))
		return false;
	l = listing_new(page, "sessions");
	l->list = store_list_sessions(r->parts.sessions, &query, on_page, l, &err);
	wait_or_refuse(l, req, &err);
	return true;
}

bool listing_executions(struct router *r, struct http_request *req, const struct route_args *args,
                        const struct query_page *page)
{
	struct store_query query = {.tenant = args->principal->tenant,
	                            .session_id = args->id,
	                            .status = page->status,
	                            .limit = page->limit,
	                            .offset = page->offset};
	struct session_info info = {0};
	struct error err = {0};
	struct listing *l;

	if (!has_all(r))
		return false;
	session_info(session_find(r->parts.sessions, query.tenant, args->id), &info);
	query.session_ms = info.created_ms;
	l = listing_new(page, "executions");
	l->list = store_list_executions(r->parts.executions, &query, on_page, l, &err);
	wait_or_refuse(l, req, &err);
	return true;
}
