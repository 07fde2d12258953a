/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: shared by secrets.c (the table, changes), secret_check.c (what callers send) and
 * secret_row.c (the store). */

#include "core/secret/keyring.h"
#include "core/secret/secret.h"
#include "core/store/store.h"

struct map;

/* Of which boxes with secrets for TLS trust certificates. */
struct secret_authority {
	struct buf cert, sealed; /* DER; the key. Empty: none yet */
	char key[24];            /* keyring_name */
};

struct secrets {
	struct secrets_config config;
	struct list all;
	struct map *by_key;  /* "tenant/name" */
	struct list changes; /* that no store writes */
	struct secret_authority authority;
	char *bundle; /* NULL: none yet */
	secrets_change_fn *on_change;
	void *on_change_ctx;
};

void secret_free(struct secret *secret);
/**
 * secret_make - from @spec, and @before for what it leaves out. Its value is not sealed yet.
 * Return: owned, or NULL with *err.
 */
struct secret *secret_make(const struct secret_spec *spec, const struct secret *before,
                           struct error *err) attr_must_check;
static inline struct keyring_label secret_label(const struct secret *secret)
{
	return (struct keyring_label){"secret", secret->tenant, secret->name};
}

/** secrets_add - takes @secret, counted for its tenant without a limit. */
int secrets_add(struct secrets *s, struct secret *secret);

/** secret_authority_need - make it if there is none. */
int secret_authority_need(struct secrets *s, struct error *err) attr_must_check;
int secret_authority_load(struct secrets *s, struct error *err) attr_must_check;
void secret_authority_done(struct secrets *s);

int secret_row_load(struct secrets *s, struct error *err) attr_must_check;
/** secret_row_put - insert or update. */
int secret_row_put(struct store *store, const struct secret *secret, store_done_fn *fn, void *ctx,
                   struct error *err) attr_must_check;
/** secret_row_seal_now - write the sealed value, before store_start. */
int secret_row_seal_now(struct store *store, const struct secret *secret,
                        struct error *err) attr_must_check;
int secret_row_delete(struct store *store, const struct secret *secret, store_done_fn *fn,
                      void *ctx, struct error *err) attr_must_check;
