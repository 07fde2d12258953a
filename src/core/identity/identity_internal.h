/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the files of identity share and nobody else sees:
 *
 *   identity.c         the table of keys, and who asks
 *   identity_change.c  changes: made, written, undone
 *   identity_row.c   the rows on the disk
 */

#include "base/list.h"
#include "core/identity/identity.h"
#include "core/tenant/bucket.h"

struct map;

struct identity_key {
	struct list node; /* identity.keys, the oldest first; or identity.gone */
	char id[KEY_ID_LEN + 1];
	char tenant[TENANT_NAME_MAX + 1];
	char name[KEY_NAME_MAX + 1];
	uint8_t hash[KEY_HASH_LEN];
	uint64_t created_ms, expires_ms, revoked_ms, last_used_ms;
	struct principal principal; /* points into this */
};

struct identity {
	struct identity_config config;
	struct loop *loop;
	struct scheduler *scheduler;
	struct map *by_id;
	bool keyed; /* there is a key, or was one in this life: never open again by deleting them */
	struct list keys;
	struct list gone;    /* requests may still name them as theirs */
	struct map *peers;   /* struct peer, by name: those that failed lately */
	uint64_t pruned_us;  /* when they were last looked through */
	struct list changes; /* struct identity_change, not written yet */
	/* Names of tenants of which something is left: nobody may have them yet. */
	struct map *departed;
	void (*on_departure)(void *ctx); /* NULL: nobody cares */
	void *on_departure_ctx;
	struct principal owner, anybody;
};

/** identity_add_key - into the tables; @key is copied. */
struct identity_key *identity_add_key(struct identity *identity, const struct identity_key *key);
/** identity_forget_key - out of the tables. Its memory stays until the end. */
void identity_forget_key(struct identity *identity, struct identity_key *key);
/** identity_note_departed - something of tenant @name, which was deleted, is left. */
void identity_note_departed(struct identity *identity, const char *name);
/** identity_end_changes - the end: nothing is written any more. */
void identity_end_changes(struct identity *identity);
