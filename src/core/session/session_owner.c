/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/map.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/session/session_internal.h"

/*
 * Theory of operation. Each tenant has its own tables: no look-up can find another's session, and a
 * listing walks only what it shows. A tenant without sessions has no tables, so requests for random
 * names allocate nothing.
 *
 * Remembered sessions have one bound for all tenants; a tenant over an equal share loses its own
 * oldest.
 */

#define ID_PREFIX "sess_"
#define ID_RANDOM 16

struct session_owner *session_owner_of(const struct session_service *s, const char *tenant)
{
	return map_get(s->owners, tenant);
}

struct session *session_find(struct session_service *s, const char *tenant, const char *id)
{
	const struct session_owner *owner = map_get(s->owners, tenant);

	return owner ? map_get(owner->by_id, id) : NULL;
}

struct session *session_at(struct session_service *s, const char *tenant, size_t offset)
{
	const struct session_owner *owner = session_owner_of(s, tenant);
	struct list *node;

	if (!owner || offset >= owner->count)
		return NULL;
	for (node = owner->sessions.prev; offset > 0; offset--)
		node = node->prev;
	return LIST_ENTRY(node, struct session, owner_node);
}

struct session *session_older(const struct session *session)
{
	const struct list *node = session->owner_node.prev;

	return node == &session->owner->sessions ? NULL
	                                         : LIST_ENTRY(node, struct session, owner_node);
}

struct session *session_find_box(struct session_service *s, const char *tenant,
                                 const char *container_id)
{
	const struct session_owner *owner = session_owner_of(s, tenant);

	return owner ? map_get(owner->by_box, container_id) : NULL;
}

size_t session_count(const struct session_service *s, const char *tenant)
{
	const struct session_owner *owner = session_owner_of(s, tenant);

	return owner ? owner->count : 0;
}

static struct session_owner *owner_new(struct session_service *s, const char *tenant)
{
	struct session_owner *owner = NEW(struct session_owner);

	owner->service = s;
	(void)!str_copy(owner->tenant, sizeof(owner->tenant), tenant); /* a session's */
	owner->by_id = map_new();
	owner->by_agent = map_new();
	owner->by_box = map_new();
	list_init(&owner->sessions);
	list_init(&owner->ended);
	(void)!map_put(s->owners, tenant, owner); /* looked up before */
	return owner;
}

static void name_session(struct session *session, const char *id)
{
	do {
		if (id) {
			(void)!str_copy(session->id, sizeof(session->id), id); /* checked */
		} else {
			memcpy(session->id, ID_PREFIX, strlen(ID_PREFIX));
			id_random(session->id + strlen(ID_PREFIX), ID_RANDOM);
		}
		/* Only a random one can be taken. */
	} while (map_put(session->owner->by_id, session->id, session) < 0);
}

void session_owner_name_box(struct session *session, const char *id)
{
	(void)map_remove(session->owner->by_box, session->spec.id);
	if (id)
		(void)!str_copy(session->spec.id, sizeof(session->spec.id), id); /* a box's */
	else
		box_spec_make_id(session->spec.id);
	(void)!map_put(session->owner->by_box, session->spec.id, session); /* unique */
}

void session_owner_enter(struct session *session, const char *id)
{
	struct session_owner *owner = session_owner_of(session->service, session->tenant);

	if (!owner)
		owner = owner_new(session->service, session->tenant);
	session->owner = owner;
	name_session(session, id);
	list_append(&owner->sessions, &session->owner_node);
	owner->count++;
	if (!session_mode_has_box(session->mode))
		return;
	if (!session->spec.id[0]) /* else restored */
		box_spec_make_id(session->spec.id);
	(void)!map_put(owner->by_box, session->spec.id, session); /* unique */
	if (session->agent_id && session->mode == SESSION_PERSISTENT) {
		(void)map_remove(owner->by_agent, session->agent_id);
		(void)!map_put(owner->by_agent, session->agent_id, session); /* just removed */
	}
}

static void leave_agent(struct session_owner *owner, const struct session *session)
{
	if (session->agent_id && map_get(owner->by_agent, session->agent_id) == session)
		(void)map_remove(owner->by_agent, session->agent_id);
}

int session_owner_take(struct session *session, struct error *err)
{
	struct scheduler *scheduler = session->service->scheduler;
	uint64_t bytes = session->spec.limits.memory_bytes;

	if (tenant_take_session(session->account, err) < 0)
		return -1;
	session->counted = true;
	if (!session_mode_has_box(session->mode))
		return 0;
	if (tenant_take_memory(session->account, scheduler, bytes, err) < 0) {
		session_owner_drop(session);
		return -1;
	}
	session->held_bytes = bytes;
	return 0;
}

void session_owner_drop(struct session *session)
{
	if (session->counted)
		tenant_drop_session(session->account);
	session->counted = false;
}

void session_owner_drop_box(struct session *session)
{
	uint64_t bytes = session->held_bytes;

	session->held_bytes = 0;
	if (bytes)
		tenant_drop_memory(session->account, session->service->scheduler, bytes,
		                   clock_us());
}

void session_owner_ended(struct session *session)
{
	session_owner_drop(session);
	leave_agent(session->owner, session);
	list_append(&session->owner->ended, &session->owner_ended_node);
	session->owner->ended_count++;
}

void session_owner_leave(struct session *session)
{
	struct session_owner *owner = TAKE_PTR(session->owner);

	if (!owner)
		return;
	if (!list_is_empty(&session->owner_ended_node))
		owner->ended_count--;
	leave_agent(owner, session);
	list_remove(&session->owner_ended_node);
	list_remove(&session->owner_node);
	(void)map_remove(owner->by_id, session->id);
	(void)map_remove(owner->by_box, session->spec.id);
	if (--owner->count > 0)
		return;
	(void)map_remove(owner->service->owners, owner->tenant);
	map_free(owner->by_id);
	map_free(owner->by_agent);
	map_free(owner->by_box);
	free(owner);
}

struct session *session_owner_oldest(const struct session *session)
{
	const struct session_service *s = session->service;
	const struct session_owner *owner = session->owner;
	size_t share = s->config.config->sessions_max / map_count(s->owners);

	/* Never the one just ending. */
	if (owner->ended_count > share && owner->ended_count > 1)
		return LIST_FIRST(&owner->ended, struct session, owner_ended_node);
	return LIST_FIRST(&s->ended, struct session, ended_node);
}
