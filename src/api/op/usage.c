/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/usage.h"

#include "api/internal.h"
#include "core/identity/identity.h"
#include "core/identity/scope.h"
#include "core/run/run.h"
#include "core/session/session.h"
#include "core/tenant/principal.h"
#include "core/tenant/tenant.h"

static struct usage of_all(const struct router *r)
{
	struct run_service_stats runs;
	struct session_service_stats sessions;

	run_service_stats(r->runs, &runs);
	session_service_stats(r->parts.sessions, &sessions);
	return (struct usage){.known = true,
	                      .running = runs.running,
	                      .queued = runs.queued,
	                      .boxes = runs.boxes + sessions.boxes,
	                      .sessions = sessions.live};
}

/* Without keys every caller is the operator. */
static bool sees_all(const struct router *r, const struct principal *p)
{
	return scope_allows(p->scopes, SCOPE_ADMIN) || !r->parts.identity ||
	       !identity_has_keys(r->parts.identity);
}

struct usage usage_of(const struct router *r, const struct principal *p)
{
	const struct tenant *t;

	if (!p)
		return (struct usage){0};
	if (sees_all(r, p))
		return of_all(r);
	t = r->parts.tenants ? tenants_find(r->parts.tenants, p->tenant) : NULL;
	if (!t)
		return (struct usage){0};
	return (struct usage){.known = true,
	                      .running = t->queue.counts[SCHEDULER_RUNNING],
	                      .queued = t->queued,
	                      .boxes = t->boxes,
	                      .sessions = t->sessions};
}

json_t *usage_count(const struct usage *u, size_t number)
{
	return u->known ? json_integer((json_int_t)number) : json_null();
}
