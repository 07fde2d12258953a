/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/identity/identity_internal.h"
#include "core/identity/identity_row.h"
#include "io/loop.h"

/* Checks come first. Then the change is made in memory, so that concurrent changes see each other;
 * then written; then acknowledged. A tenant is deleted after the write: that cannot be undone. */

struct identity_change {
	struct list node; /* identity.changes */
	struct identity *identity;
	struct identity_done done;
	void (*undo)(struct identity_change *change);   /* may be NULL */
	void (*finish)(struct identity_change *change); /* may be NULL */
	char name[TENANT_NAME_MAX + 1];                 /* key id or tenant */
	char policy[TENANT_NAME_MAX + 1];               /* before the change */
	struct tenant_settings before;
	bool policy_changed; /* by it, or by an earlier change that left the report to it */
	bool was_keyed;      /* identity.keyed before */
	struct store_departure departure;
	bool left; /* a deleted tenant has history */
};

static struct identity_change *change_new(struct identity *identity, struct identity_done done,
                                          const char *name)
{
	struct identity_change *change = NEW(struct identity_change);

	change->identity = identity;
	change->done = done;
	(void)!str_copy(change->name, sizeof(change->name), name); /* checked above */
	list_append(&identity->changes, &change->node);
	return change;
}

static void on_written(void *ctx, const struct error *err)
{
	struct identity_change *change = ctx;

	if (err && change->undo)
		change->undo(change);
	else if (!err && change->finish)
		change->finish(change);
	list_remove(&change->node);
	change->done.fn(change->done.ctx, err);
	free(change);
}

static struct identity_row_done when_written(struct identity_change *change)
{
	return (struct identity_row_done){on_written, change};
}

static void on_unkept(void *ctx)
{
	on_written(ctx, NULL);
}

/* @r: whether the write was queued; if not, drop the change. */
static int begin_change(struct identity_change *change, int r)
{
	if (r == 0 && !change->identity->config.store)
		loop_defer(change->identity->loop, on_unkept, change);
	if (r == 0)
		return 0;
	change->policy_changed = false; /* no request was served in between */
	if (change->undo)
		change->undo(change);
	list_remove(&change->node);
	free(change);
	return -1;
}

void identity_end_changes(struct identity *identity)
{
	struct identity_change *change;
	struct error err = {0};

	(void)error_set(&err, ERR_UNAVAILABLE, 0, "the daemon is stopping");
	LIST_FOREACH (change, &identity->changes, struct identity_change, node) {
		if (identity->loop)
			loop_cancel(identity->loop, on_unkept, change);
		change->undo = NULL;
		on_written(change, &err);
	}
}

static void undo_key(struct identity_change *change)
{
	struct identity_key *key = identity_find_key(change->identity, change->name);

	if (key)
		identity_forget_key(change->identity, key);
	change->identity->keyed = change->was_keyed || identity_key_count(change->identity) > 0;
}

/* For lists and logs. */
static bool is_single_line(const char *text)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return utf8_is_valid(text, strlen(text));
}

static int check_key(struct identity *identity, const struct identity_key_request *request,
                     struct error *err)
{
	if (!tenants_find(identity->config.tenants, request->tenant))
		return error_field(err, "tenant", "there is no tenant '%.64s'", request->tenant);
	if (request->name &&
	    (strlen(request->name) > KEY_NAME_MAX || !is_single_line(request->name)))
		return error_field(err, "name", "must be at most %d bytes of text in one line",
		                   KEY_NAME_MAX);
	if (request->scopes == 0)
		return error_field(err, "scopes", "must name at least one");
	if (request->expires_ms && request->expires_ms <= clock_real_ms())
		return error_field(err, "expires_in", "is in the past");
	if (identity_key_count(identity) >= IDENTITY_KEYS_MAX)
		return error_set(err, ERR_BUSY, 0,
		                 "there are already %d keys, revoked ones included",
		                 IDENTITY_KEYS_MAX);
	return 0;
}

static struct identity_key *add_new(struct identity *identity,
                                    const struct identity_key_request *request, struct key *ret_key)
{
	struct identity_key row = {
		.created_ms = clock_real_ms(),
		.expires_ms = request->expires_ms,
		.principal.scopes = request->scopes,
	};
	struct identity_key *added;

	/* Lengths were checked. */
	(void)!str_copy(row.tenant, sizeof(row.tenant), request->tenant);
	(void)!str_copy(row.name, sizeof(row.name), request->name ? request->name : "");
	do { /* until the id is unused */
		key_make(ret_key);
		memcpy(row.id, ret_key->id, sizeof(row.id));
		key_hash(ret_key, row.hash);
		added = identity_add_key(identity, &row);
	} while (!added);
	return added;
}

int identity_create_key(struct identity *identity, const struct identity_key_request *request,
                        struct identity_done done, struct key *ret_key, struct error *err)
{
	bool was_keyed = identity->keyed;
	struct identity_change *change;
	struct identity_key *key;

	if (check_key(identity, request, err) < 0)
		return -1;
	key = add_new(identity, request, ret_key);
	change = change_new(identity, done, key->id);
	change->was_keyed = was_keyed;
	change->undo = undo_key;
	return begin_change(change, identity_row_add_key(identity->config.store, key,
	                                                 when_written(change), err));
}

int identity_create_key_now(struct identity *identity, const struct identity_key_request *request,
                            struct key *ret_key, struct error *err)
{
	struct identity_key *key;

	if (check_key(identity, request, err) < 0)
		return -1;
	key = add_new(identity, request, ret_key);
	if (identity_row_add_key(identity->config.store, key, (struct identity_row_done){0}, err) ==
	    0)
		return 0;
	identity_forget_key(identity, key);
	return -1;
}

int identity_revoke_key(struct identity *identity, struct identity_key *key,
                        struct identity_done done, struct error *err)
{
	struct identity_change *change = change_new(identity, done, key->id);

	/* Stays revoked even if the write fails: better locked out than in. */
	if (key->revoked_ms == 0)
		key->revoked_ms = clock_real_ms();
	return begin_change(change, identity_row_revoke_key(identity->config.store, key,
	                                                    when_written(change), err));
}

static void undo_tenant(struct identity_change *change)
{
	struct tenants *tenants = change->identity->config.tenants;
	struct tenant *t = tenants_find(tenants, change->name);
	struct error err = {0};

	/* It was never on disk and has no key. */
	if (t && tenants_remove(tenants, t, &err) < 0)
		log_error("undo a tenant", &err);
}

int identity_create_tenant(struct identity *identity, const struct tenant_settings *settings,
                           struct identity_done done, struct error *err)
{
	struct identity_change *change;
	const struct tenant *t;

	if (map_get(identity->departed, settings->name))
		return error_set(err, ERR_CONFLICT, 0,
		                 "a tenant of this name was deleted and its history is "
		                 "still being removed; try again soon");
	t = tenants_add(identity->config.tenants, settings, err);
	if (!t)
		return -1;
	change = change_new(identity, done, t->name);
	change->undo = undo_tenant;
	return begin_change(change, identity_row_put_tenant(identity->config.store, t,
	                                                    when_written(change), err));
}

static void finish_settings(struct identity_change *change);

/* Return: the next change of the same tenant that is not written yet; NULL: none. */
static struct identity_change *next_settings(const struct identity_change *change)
{
	struct identity_change *other;
	bool is_later = false;

	LIST_FOREACH (other, &change->identity->changes, struct identity_change, node) {
		if (is_later && other->finish == finish_settings &&
		    str_equal(other->name, change->name))
			return other;
		is_later |= other == change;
	}
	return NULL;
}

/*
 * What is taken from sessions does not come back: so report only what is written, after the last
 * pending change. Also after an undo: sessions may have been created under the policy that failed.
 */
static void report_policy(const struct identity_change *change)
{
	const struct identity *identity = change->identity;
	struct identity_change *next = next_settings(change);

	if (!change->policy_changed)
		return;
	if (next)
		next->policy_changed = true;
	else if (identity->on_policy)
		identity->on_policy(identity->on_policy_ctx);
}

static void set_before(struct identity_change *change, const char *policy, const uint64_t *quotas)
{
	memcpy(change->policy, policy, sizeof(change->policy));
	change->before.policy = change->policy;
	memcpy(change->before.quotas, quotas, sizeof(change->before.quotas));
}

/* A later change keeps its settings; if it fails too, it restores these. */
static void undo_settings(struct identity_change *change)
{
	const struct identity_config *config = &change->identity->config;
	struct tenant *t = tenants_find(config->tenants, change->name);
	struct identity_change *next = next_settings(change);

	if (next)
		set_before(next, change->policy, change->before.quotas);
	else if (t)
		tenants_set(config->tenants, t, &change->before, change->identity->scheduler);
	report_policy(change);
}

static void finish_settings(struct identity_change *change)
{
	report_policy(change);
}

int identity_set_tenant(struct identity *identity, struct tenant *tenant,
                        const struct tenant_settings *settings, struct identity_done done,
                        struct error *err)
{
	const struct identity_config *config = &identity->config;
	struct identity_change *change = change_new(identity, done, tenant->name);

	set_before(change, tenant->policy, tenant->quotas);
	change->undo = undo_settings;
	change->finish = finish_settings;
	tenants_set(config->tenants, tenant, settings, identity->scheduler);
	change->policy_changed = !str_equal(tenant->policy, change->policy);
	return begin_change(
		change, identity_row_put_tenant(config->store, tenant, when_written(change), err));
}

static void finish_delete(struct identity_change *change)
{
	struct identity *identity = change->identity;
	struct tenants *tenants = identity->config.tenants;
	struct tenant *t = tenants_find(tenants, change->name);
	struct identity_key *key;
	struct error err = {0};

	LIST_FOREACH (key, &identity->keys, struct identity_key, node)
		if (str_equal(key->tenant, change->name))
			identity_forget_key(identity, key);
	/* A tenant held by a concurrent request stays until the daemon ends. */
	if (t && tenants_remove(tenants, t, &err) < 0)
		log_error("remove a tenant", &err);
	if (!change->left)
		return;
	identity_note_departed(identity, change->name);
	if (identity->on_departure)
		identity->on_departure(identity->on_departure_ctx);
}

static void on_tenant_deleted(void *ctx, bool left, const struct error *err)
{
	struct identity_change *change = ctx;

	change->left = left;
	on_written(change, err);
}

int identity_delete_tenant(struct identity *identity, struct tenant *tenant,
                           struct identity_done done, struct error *err)
{
	struct identity_change *change;
	struct identity_key *key;

	LIST_FOREACH (key, &identity->keys, struct identity_key, node)
		if (str_equal(key->tenant, tenant->name) && key->revoked_ms == 0)
			return error_set(err, ERR_CONFLICT, 0,
			                 "tenant %s has keys; revoke them first", tenant->name);
	if (tenants_check_remove(tenant, err) < 0)
		return -1;
	change = change_new(identity, done, tenant->name);
	change->finish = finish_delete;
	change->departure = (struct store_departure){on_tenant_deleted, change, NULL};
	return begin_change(change, identity_row_delete_tenant(identity->config.store, tenant,
	                                                       &change->departure, err));
}
