/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/language_list.h"

#include "api/internal.h"
#include "api/pending.h"
#include "base/alloc.h"
#include "core/language/runners.h"
#include "core/run/language_check.h"
#include "core/run/run_service.h"
#include "core/template/toolchains.h"
#include <stdio.h>
#include <string.h>

/* A request that waits. */
struct waiting {
	struct pending pending;
	struct language_wait *wait;
	struct router *router;
	struct route_args args; /* of the request, which lives as long */
	route_fn *then;
};

bool op_language_is_there(const struct router *r, const struct runner *runner)
{
	return toolchains_has(r->runs ? run_service_toolchains(r->runs) : NULL, NULL, runner);
}

void op_language_names(const struct router *r, char *ret_names, size_t size)
{
	const struct runner *runner;
	size_t used = 0;

	*ret_names = '\0';
	for (size_t i = 0; (runner = runners_at(r->parts.runners, i)); i++)
		if (op_language_is_there(r, runner) && used + strlen(runner->name) + 3 < size)
			used += (size_t)snprintf(ret_names + used, size - used, "%s%s",
			                         used ? ", " : "", runner->name);
}

static void on_left(struct pending *p)
{
	struct waiting *w = CONTAINER_OF(p, struct waiting, pending);

	language_wait_cancel(w->wait);
	free(w);
}

static void on_known(void *ctx)
{
	cleanup_free struct waiting *w = ctx;
	struct http_request *req = pending_resume(&w->pending);

	if (req)
		w->then(w->router, req, &w->args);
}

void op_language_then(struct router *r, struct http_request *req, const struct route_args *args,
                      const struct language_query *query, route_fn *then)
{
	struct waiting *w = NEW(struct waiting);

	w->wait = language_checks_want(run_service_language_checks(r->runs), query, on_known, w);
	if (!w->wait) {
		free(w);
		then(r, req, args);
		return;
	}
	w->router = r;
	w->args = *args;
	w->then = then;
	pending_wait(&w->pending, req, on_left);
}

void op_language_then_tools(struct router *r, struct http_request *req,
                            const struct route_args *args, route_fn *then)
{
	op_language_then(r, req, args, &(struct language_query){.within_us = LANGUAGE_TOOLS_US},
	                 then);
}
