/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "api/auth.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/map.h"
#include "core/config/config.h"
#include "core/identity/identity.h"
#include "core/tenant/tenant.h"
#include <string.h>

/*
 * Theory of operation. No tenant can starve another: sessions are limited per tenant, and tenants
 * with sessions share the kept events equally. Beyond the whole, some tenant exceeds its share and
 * loses its oldest events.
 *
 * Keys are checked when a client connects; those of open streams and WebSockets again when a key is
 * revoked, and every few seconds for expiry.
 */

void mcp_tenant_enter(struct mcp_session *s, const char *name)
{
	struct mcp *mcp = s->mcp;
	struct mcp_tenant *t = map_get(mcp->by_tenant, name);
	size_t len = strlen(name) + 1;
	int r;

	if (!t) {
		t = xcalloc(1, sizeof(*t) + len);
		t->mcp = mcp;
		memcpy(t->name, name, len);
		list_init(&t->sessions);
		list_init(&t->events);
		list_append(&mcp->tenants, &t->node);
		mcp->tenants_count++;
		r = map_put(mcp->by_tenant, t->name, t);
		assert(r == 0);
		(void)r;
	}
	t->count++;
	list_append(&t->sessions, &s->same);
	s->of = t;
	s->tenant = t->name;
}

void mcp_tenant_leave(struct mcp_session *s)
{
	struct mcp_tenant *t = TAKE_PTR(s->of);

	s->tenant = NULL;
	list_remove(&s->same);
	if (--t->count > 0)
		return;
	assert(t->bytes == 0); /* sessions free their events */
	(void)map_remove(t->mcp->by_tenant, t->name);
	list_remove(&t->node);
	t->mcp->tenants_count--;
	free(t);
}

struct mcp_tenant *mcp_tenant_hog(struct mcp_tenant *first)
{
	struct mcp *mcp = first->mcp;
	size_t part = mcp->router->config->mcp_buffers_bytes / mcp->tenants_count;
	struct mcp_tenant *t;

	if (first->bytes > part)
		return first;
	LIST_FOREACH (t, &mcp->tenants, struct mcp_tenant, node)
		if (t->bytes > part) {
			/* To the front: found first next time. */
			list_remove(&t->node);
			list_append(mcp->tenants.next, &t->node);
			return t;
		}
	return first;
}

int mcp_tenant_take_message(const struct mcp *mcp, const char *tenant, struct error *err)
{
	struct tenants *all = mcp->router->parts.tenants;
	uint64_t ignored;

	return tenant_take_request(all ? tenants_find(all, tenant) : NULL, clock_us(), &ignored,
	                           err);
}

bool mcp_tenant_key_is_valid(const struct mcp *mcp, const char *key_id)
{
	return identity_key_holds(mcp->router->parts.identity, key_id);
}

static void check_streams(const struct mcp_session *s)
{
	struct mcp_stream *t;

	LIST_FOREACH (t, &s->streams, struct mcp_stream, node)
		if (t->req && !mcp_tenant_key_is_valid(s->mcp, auth_principal(t->req)->key_id))
			mcp_stream_release(t);
}

void mcp_check_keys(struct mcp *mcp)
{
	struct mcp_session *s;

	LIST_FOREACH (s, &mcp->sessions, struct mcp_session, node) {
		check_streams(s);
		if (s->sink.check)
			s->sink.check(s->sink.ctx);
	}
}
