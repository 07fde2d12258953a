/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: secrets of tenants: values that the proxy adds to requests of boxes, and the daemon to its
 * own, so that code uses an API without having its key. A value goes in and never comes out of the
 * API. In memory and in the store it is encrypted (keyring.h); secrets_reveal decrypts it for the
 * moment of its use, and the caller wipes it.
 *
 * A change is made in memory, written, then acknowledged; a failed write undoes it. A deleted
 * secret stays deleted in memory, written or not.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "core/tenant/principal.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keyring;
struct loop;
struct secrets;
struct store;
struct tenants;

#define SECRET_NAME_MAX   64
#define SECRET_VALUE_MIN  8 /* shorter ones would be found in answers by chance */
#define SECRET_VALUE_MAX  4096
#define SECRET_HOSTS_MAX  16
#define SECRET_HEADER_MAX 64
#define SECRET_FORMAT_MAX 256
#define SECRET_ENV_MAX    64
#define SECRET_RECORD_MAX 9216 /* of secrets_write */

enum secret_mode {
	SECRET_HEADER,      /* the proxy adds a header */
	SECRET_PLACEHOLDER, /* the proxy replaces the placeholder in that header */
	SECRET_MODE_COUNT
};

const char *secret_mode_name(enum secret_mode mode);

/* Strings are owned. */
struct secret {
	struct list node; /* secrets.all, oldest first */
	char tenant[TENANT_NAME_MAX + 1];
	char name[SECRET_NAME_MAX + 1];
	enum secret_mode mode;
	char **hosts; /* "https://api.example.com:443"; NULL-terminated */
	char *header;
	char *format; /* of the header's value, with {value}; of SECRET_HEADER */
	char *env;    /* variable of programs that has the placeholder; NULL: none */
	char *placeholder;
	uint64_t created_ms, updated_ms;
	char key[24]; /* keyring_name */
	struct buf sealed;
};

/* Borrowed for the call. NULL or not given: as before, or the default. */
struct secret_spec {
	const char *name;
	char *const *hosts; /* [http[s]://]NAME[:PORT]; NULL-terminated */
	bool mode_given;
	enum secret_mode mode;
	const char *header, *format;
	const char *env; /* "": none */
	const char *value;
	size_t value_len;
};

struct secrets_config {
	struct tenants *tenants;
	struct store *store;     /* NULL: not persisted */
	struct keyring *keyring; /* taken */
	struct loop *loop;       /* for the callbacks of changes without a store */
	const char *ca_file;     /* borrowed: authorities for boxes, PEM; NULL: none */
};

void secrets_free(struct secrets *s);
struct secrets *secrets_new(const struct secrets_config *config) attr_owned(secrets_free);
/** secrets_load - before store_start. Encrypts anew what is encrypted with an old key. */
int secrets_load(struct secrets *s, struct error *err) attr_must_check;
/** secrets_start - before the first change. */
void secrets_start(struct secrets *s, struct loop *loop);
/* Secret @name of @tenant has changed; both are borrowed. */
typedef void secrets_change_fn(void *ctx, const char *tenant, const char *name);
/** secrets_watch - call @fn after each change. */
void secrets_watch(struct secrets *s, secrets_change_fn *fn, void *ctx);

/** secrets_find - NULL: there is none. */
const struct secret *secrets_find(const struct secrets *s, const char *tenant, const char *name);
/** secrets_next - of a tenant, oldest first; @after NULL: the first. */
const struct secret *secrets_next(const struct secrets *s, const char *tenant,
                                  const struct secret *after);
/** secret_has_tls - one of its hosts is reached with TLS. */
bool secret_has_tls(const struct secret *secret);
/** secret_is_usable - its key is there. */
bool secrets_is_usable(const struct secrets *s, const struct secret *secret);

/**
 * secrets_reveal - append the value to @to, without NUL; wipe it with secrets_wipe as soon as it
 * was used. ERR_NOT_FOUND, or ERR_UNAVAILABLE: its key is missing.
 */
int secrets_reveal(const struct secrets *s, const char *tenant, const char *name, struct buf *to,
                   struct error *err) attr_must_check;
/** secrets_wipe - overwrite and free. */
void secrets_wipe(struct buf *b);
#define cleanup_secret attr_cleanup(secrets_wipe)
/**
 * secrets_write - append the secret as egress/order.h describes it for the proxy. Return: 1, or 0:
 * there is none (deleted, or its key is missing).
 */
int secrets_write(const struct secrets *s, const char *tenant, const char *name, struct buf *to);

/** secrets_write_authority - append a struct egress_authority with its key and certificate, for the
 * proxy. Return: 1, or 0: there is none. */
int secrets_write_authority(const struct secrets *s, struct buf *to);
/** secrets_bundle - the certificates that a box with such hosts trusts, as PEM. */
const char *secrets_bundle(const struct secrets *s);

/* @fn is called once, from the loop: NULL: on disk. */
struct secrets_done {
	void (*fn)(void *ctx, const struct error *err);
	void *ctx;
};

/** secrets_set - a new secret, or a new value for one that exists. ERR_INVALID names the field. */
int secrets_set(struct secrets *s, const char *tenant, const struct secret_spec *spec,
                struct secrets_done done, const struct secret **ret_secret,
                struct error *err) attr_must_check;
/** secrets_delete - takes effect at once. ERR_SECRET_NOT_FOUND. */
int secrets_delete(struct secrets *s, const char *tenant, const char *name,
                   struct secrets_done done, struct error *err) attr_must_check;
