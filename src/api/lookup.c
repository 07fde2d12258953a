/* SPDX-License-Identifier: Apache-2.0 */
#include "api/lookup.h"

#include "api/auth.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "core/run/run_record.h"
#include "core/run/run_row.h"
#include "core/session/session.h"
#include "core/session/session_row.h"

struct session *lookup_session(struct router *r, const struct route_args *args, struct error *err)
{
	struct session *session =
		args->id[0] ? session_find(r->parts.sessions, args->principal->tenant, args->id)
			    : NULL;

	if (!session)
		(void)error_set(err, ERR_SESSION_NOT_FOUND, 0, "no session has this id");
	return session;
}

struct run_record *lookup_execution(struct router *r, const struct route_args *args,
                                    struct error *err)
{
	struct run_record *e = args->id[0] ? run_records_find(r->parts.executions,
	                                                      args->principal->tenant, args->id)
	                                   : NULL;

	if (!e)
		(void)error_set(err, ERR_EXECUTION_NOT_FOUND, 0, "no execution has this id");
	return e;
}

struct load {
	struct pending pending;
	struct router *router;
	const struct route *route;
	struct route_args args; /* texts are the request's */
	enum route_load next;   /* still to be loaded */
	struct store_load *search;
};

static void on_loaded(void *ctx, const struct error *err);

static void on_left(struct pending *p)
{
	struct load *l = CONTAINER_OF(p, struct load, pending);

	store_load_cancel(l->search);
	free(l);
}

static bool has_session(const struct load *l)
{
	return session_find(l->router->parts.sessions, l->args.principal->tenant, l->args.id);
}

/* What is first to be loaded for a route that wants @load. */
static enum route_load find_missing(const struct router *r, const struct route_args *args,
                                    enum route_load load)
{
	const struct router_config *p = &r->parts;
	const char *tenant = args->principal->tenant, *id = args->id;

	if (load == ROUTE_LOAD_NONE)
		return ROUTE_LOAD_NONE;
	if (load == ROUTE_LOAD_EXECUTION)
		return run_records_find(p->executions, tenant, id) ? ROUTE_LOAD_NONE : load;
	if (!session_find(p->sessions, tenant, id))
		return ROUTE_LOAD_SESSION;
	return load == ROUTE_LOAD_LATEST && !run_records_of(p->executions, tenant, id, 0)
	               ? load
	               : ROUTE_LOAD_NONE;
}

/* NULL with a clear *err: nothing is missing. */
static struct store_load *search_next(struct load *l, struct error *err)
{
	const struct router_config *p = &l->router->parts;
	const char *tenant = l->args.principal->tenant, *id = l->args.id;
	enum route_load load = TAKE(l->next, ROUTE_LOAD_NONE);
	enum route_load missing = find_missing(l->router, &l->args, load);

	if (missing == ROUTE_LOAD_EXECUTION)
		return run_row_load(p->executions, tenant, id, on_loaded, l, err);
	if (missing == ROUTE_LOAD_LATEST)
		return run_row_load_latest(p->executions, tenant, id, on_loaded, l, err);
	if (missing == ROUTE_LOAD_NONE)
		return NULL;
	l->next = load == ROUTE_LOAD_LATEST ? load : ROUTE_LOAD_NONE;
	return session_row_load(p->sessions, tenant, id, on_loaded, l, err);
}

/* @l waits, or is freed. */
static void load_or_handle(struct load *l)
{
	const struct principal *who = l->args.principal;
	struct http_request *req;
	struct error err = {0};

	l->search = search_next(l, &err);
	if (l->search)
		return;
	req = pending_resume(&l->pending);
	if (error_is_set(&err))
		reply_error(req, &err);
	else if (auth_holds(l->router, who, &err) < 0)
		reply_unauthenticated(req, &err);
	else
		l->route->handle(l->router, req, &l->args);
	free(l);
}

static void on_loaded(void *ctx, const struct error *err)
{
	struct load *l = ctx;

	if (err) {
		reply_error(pending_resume(&l->pending), err);
		free(l);
		return;
	}
	if (!has_session(l))
		l->next = ROUTE_LOAD_NONE; /* unknown: the handler refuses it */
	load_or_handle(l);
}

void lookup_then_handle(struct router *r, struct http_request *req, const struct route *route,
                        const struct route_args *args)
{
	struct load *l;

	if (!r->parts.store || !args->id[0] ||
	    find_missing(r, args, route->load) == ROUTE_LOAD_NONE) {
		route->handle(r, req, args);
		return;
	}
	l = NEW(struct load);
	*l = (struct load){.router = r, .route = route, .args = *args, .next = route->load};
	pending_wait(&l->pending, req, on_left);
	load_or_handle(l);
}
