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
struct identity_row_done {
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

/** identity_row_load - into @identity and its tenants; before the loop runs. */
int identity_row_load(struct store *store, struct identity *identity,
                      struct error *err) attr_must_check;
int identity_row_add_key(struct store *store, const struct identity_key *key,
                         struct identity_row_done done, struct error *err) attr_must_check;
/** identity_row_add_key_now - before the store is started. */
int identity_row_add_key_now(struct store *store, const struct identity_key *key,
                             struct error *err) attr_must_check;
int identity_row_revoke_key(struct store *store, const struct identity_key *key,
                            struct identity_row_done done, struct error *err) attr_must_check;
/** identity_row_used - coarse, and nobody waits for it. */
void identity_row_used(struct store *store, const char *key_id, uint64_t now_ms);
/** identity_row_put_tenant - a new one, or as it is now. */
int identity_row_put_tenant(struct store *store, const struct tenant *tenant,
                            struct identity_row_done done, struct error *err) attr_must_check;
/** identity_row_delete_tenant - with its keys and a bounded piece of what is known of its
 * sessions. Where that is not all, or not known to be, it stays marked as departed, and the
 * clean-up goes on. */
int identity_row_delete_tenant(struct store *store, const struct tenant *tenant,
                               struct store_departure *departure,
                               struct error *err) attr_must_check;
