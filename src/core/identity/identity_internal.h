/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: shared by the files of identity: identity.c (keys, authentication), identity_change.c
 * (changes), identity_row.c (store).
 */

#include "base/list.h"
#include "core/identity/identity.h"
#include "core/tenant/bucket.h"

struct map;

struct identity_key {
	struct list node; /* identity.keys, oldest first; or identity.gone */
	char id[KEY_ID_LEN + 1];
	char tenant[TENANT_NAME_MAX + 1];
	char name[KEY_NAME_MAX + 1];
	uint8_t hash[KEY_HASH_LEN];
	uint64_t created_ms, expires_ms, revoked_ms, last_used_ms;
	struct principal principal; /* points into this key */
};

struct identity {
	struct identity_config config;
	struct loop *loop;
	struct scheduler *scheduler;
	struct map *by_id;
	bool keyed; /* there is or was a key: deleting keys never opens the daemon */
	struct list keys;
	struct list gone;  /* deleted; requests may refer to them */
	struct map *peers; /* struct peer, by name */
	uint64_t pruned_us;
	struct list changes; /* struct identity_change, unwritten */
	/* Names of deleted tenants with history: not available yet. */
	struct map *departed;
	void (*on_departure)(void *ctx); /* may be NULL */
	void *on_departure_ctx;
	void (*on_policy)(void *ctx); /* may be NULL */
	void *on_policy_ctx;
	struct principal owner, anonymous;
};

/** identity_add_key - @key is copied. */
struct identity_key *identity_add_key(struct identity *identity, const struct identity_key *key);
/** identity_forget_key - the memory is kept until identity_free. */
void identity_forget_key(struct identity *identity, struct identity_key *key);
void identity_note_departed(struct identity *identity, const char *name);
/** identity_end_changes - fail all changes: the store is closing. */
void identity_end_changes(struct identity *identity);
