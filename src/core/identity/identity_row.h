/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: tenants and keys in the store (migration 002). With a NULL store the calls succeed, persist
 * nothing and make no callback.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

struct identity;
struct identity_key;
struct store;
struct tenant;

/* Called once from the loop; @err NULL: on disk. */
struct identity_row_done {
	void (*fn)(void *ctx, const struct error *err); /* NULL: no callback */
	void *ctx;
};

struct db_job;
/* Embedded by its caller. */
struct store_departure {
	/* Called once from the loop. @left: retention must remove history. */
	void (*fn)(void *ctx, bool left, const struct error *err);
	void *ctx;
	struct db_job *look; /* private to identity_row.c */
};

/** identity_row_any_key - whether the database in @state_dir has a key; changes nothing. No
 * database: none. */
int identity_row_any_key(const char *state_dir, bool *ret_any, struct error *err) attr_must_check;
int identity_row_load(struct store *store, struct identity *identity,
                      struct error *err) attr_must_check;
/** identity_row_add_key - without a callback: write now, before store_start. */
int identity_row_add_key(struct store *store, const struct identity_key *key,
                         struct identity_row_done done, struct error *err) attr_must_check;
int identity_row_revoke_key(struct store *store, const struct identity_key *key,
                            struct identity_row_done done, struct error *err) attr_must_check;
void identity_row_used(struct store *store, const char *key_id, uint64_t now_ms);
/** identity_row_put_tenant - insert or update. */
int identity_row_put_tenant(struct store *store, const struct tenant *tenant,
                            struct identity_row_done done, struct error *err) attr_must_check;
/**
 * identity_row_delete_tenant - with its keys and some of its history; retention removes the rest.
 */
int identity_row_delete_tenant(struct store *store, const struct tenant *tenant,
                               struct store_departure *departure,
                               struct error *err) attr_must_check;
