/* SPDX-License-Identifier: Apache-2.0 */
#include "api/load.h"

#include "api/auth.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/run/run_record.h"
#include "core/run/run_row.h"
#include "core/session/session.h"
#include "core/session/session_row.h"
#include <string.h>

enum need {
	NEED_NOTHING,
	NEED_SESSION,
	NEED_LATEST, /* a session, and its newest execution */
	NEED_EXECUTION,
};

/* By the beginning of the row's path; the first that fits counts. */
static const struct {
	const char *prefix;
	enum need need;
} needs[] = {
	{"/api/v1/executions/sessions/{id}", NEED_SESSION},
	{"/api/v1/executions/{id}", NEED_EXECUTION},
	{"/api/v1/sessions/{id}/status", NEED_LATEST},
	{"/api/v1/sessions/{id}/result", NEED_LATEST},
	{"/api/v1/sessions/{id}", NEED_SESSION},
};

/* A request that waits for the store. */
struct load {
	struct router *router;
	struct http_request *req; /* the server's */
	const struct route *route;
	enum need need;
	struct route_args args; /* what it points to is the request's, or made for it */
	char *tenant, *key_id, *rest;
	struct principal principal;
	struct store_search *search;
};

static void on_loaded(void *ctx, const struct error *err);

static void load_free(struct load *l)
{
	free(l->tenant);
	free(l->key_id);
	free(l->rest);
	free(l);
}

static enum need need_of(const struct route *route)
{
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		if (str_has_prefix(route->path, needs[i].prefix))
			return needs[i].need;
	return NEED_NOTHING;
}

static bool has_session(const struct load *l)
{
	return session_find(l->router->parts.sessions, l->args.principal->tenant, l->args.id);
}

/* What has to be looked for next; NULL with a clear *err: nothing. */
static struct store_search *look(struct load *l, struct error *err)
{
	const struct router_config *p = &l->router->parts;
	const char *tenant = l->args.principal->tenant, *id = l->args.id;
	enum need need = l->need;

	l->need = NEED_NOTHING;
	if (!id[0])
		return NULL;
	if (need == NEED_EXECUTION && !run_records_find(p->executions, tenant, id))
		return store_load_execution(p->executions, tenant, id, on_loaded, l, err);
	if (need == NEED_LATEST)
		l->need = has_session(l) ? NEED_NOTHING : NEED_LATEST;
	if ((need == NEED_SESSION || need == NEED_LATEST) && !has_session(l)) {
		/* The session first; then its latest execution, which it may have none of. */
		return store_load_session(p->sessions, tenant, id, on_loaded, l, err);
	}
	if (need == NEED_LATEST && !run_records_of(p->executions, tenant, id, 0))
		return store_load_latest(p->executions, tenant, id, on_loaded, l, err);
	return NULL;
}

static void on_gone(void *ctx)
{
	struct load *l = ctx;

	store_search_cancel(l->search);
	load_free(l);
}

/* Look for the next thing, or let the handler go on. @l is used up, or waits. */
static void go_on(struct load *l)
{
	struct error err = {0};

	l->search = look(l, &err);
	if (l->search)
		return;
	http_set_gone(l->req, NULL, NULL);
	if (error_is_set(&err))
		reply_error(l->req, &err);
	else if (auth_holds(l->router, &l->principal, &err) < 0)
		reply_unauthenticated(l->req, &err);
	else
		l->route->handle(l->router, l->req, &l->args);
	load_free(l);
}

static void on_loaded(void *ctx, const struct error *err)
{
	struct load *l = ctx;

	if (err) {
		http_set_gone(l->req, NULL, NULL);
		reply_error(l->req, err);
		load_free(l);
		return;
	}
	if (l->need == NEED_LATEST && !has_session(l))
		l->need = NEED_NOTHING; /* there is no such session: the handler says so */
	go_on(l);
}

static bool is_here(const struct router *r, const struct route_args *args, enum need need)
{
	const struct router_config *p = &r->parts;
	const char *tenant = args->principal->tenant;

	if (need == NEED_NOTHING || !p->store || !args->id[0])
		return true;
	if (need == NEED_EXECUTION)
		return run_records_find(p->executions, tenant, args->id);
	return session_find(p->sessions, tenant, args->id) &&
	       (need == NEED_SESSION || run_records_of(p->executions, tenant, args->id, 0));
}

void load_then_handle(struct router *r, struct http_request *req, const struct route *route,
                      const struct route_args *args)
{
	enum need need = need_of(route);
	struct load *l;

	if (is_here(r, args, need)) {
		route->handle(r, req, args);
		return;
	}
	l = NEW(struct load);
	*l = (struct load){.router = r, .req = req, .route = route, .need = need, .args = *args};
	l->tenant = xstrdup(args->principal->tenant);
	l->key_id = args->principal->key_id ? xstrdup(args->principal->key_id) : NULL;
	l->rest = xstrdup(args->rest);
	l->principal = *args->principal;
	l->principal.tenant = l->tenant;
	l->principal.key_id = l->key_id;
	l->args.principal = &l->principal;
	l->args.rest = l->rest;
	http_set_gone(req, on_gone, l);
	go_on(l);
}
