/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: tenants and keys in the store (migration 002). Without a store, which is NULL, nothing is
 * kept and the calls succeed; their callback does not come.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

struct identity;
struct identity_key;
struct store;
struct tenant;

/* Called once from the loop; @err NULL: it is on the disk. */
struct store_identity_done {
	void (*fn)(void *ctx, const struct error *err); /* NULL: nobody waits */
	void *ctx;
};

struct db_job;
/* The end of a tenant; part of what waits for it. */
struct store_departure {
	/* Called once from the loop. @left: the clean-up has to remove the rest of what it had. */
	void (*fn)(void *ctx, bool left, const struct error *err);
	void *ctx;
	struct db_job *look; /* the store's */
};

/** store_identity_load - into @identity and its tenants; before the loop runs. */
int store_identity_load(struct store *store, struct identity *identity,
                        struct error *err) attr_must_check;
int store_identity_add_key(struct store *store, const struct identity_key *key,
                           struct store_identity_done done, struct error *err) attr_must_check;
/** store_identity_add_key_now - before the store is started. */
int store_identity_add_key_now(struct store *store, const struct identity_key *key,
                               struct error *err) attr_must_check;
int store_identity_revoke_key(struct store *store, const struct identity_key *key,
                              struct store_identity_done done, struct error *err) attr_must_check;
/** store_identity_used - coarse, and nobody waits for it. */
void store_identity_used(struct store *store, const char *key_id, uint64_t now_ms);
/** store_identity_put_tenant - a new one, or as it is now. */
int store_identity_put_tenant(struct store *store, const struct tenant *tenant,
                              struct store_identity_done done, struct error *err) attr_must_check;
/** store_identity_delete_tenant - with its keys and a bounded piece of what is known of its
 * sessions. Where that is not all, or not known to be, it stays marked as departed, and the
 * clean-up goes on. */
int store_identity_delete_tenant(struct store *store, const struct tenant *tenant,
                                 struct store_departure *departure,
                                 struct error *err) attr_must_check;
