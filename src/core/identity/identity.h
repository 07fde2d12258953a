/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: API keys and authentication. A key belongs to a tenant and has scopes; its secret is not
 * stored (core/identity/key.h). Changes of keys and tenants are made in memory, written, then
 * acknowledged; a failed write undoes them.
 *
 * No key is required until the first is created; from then on every caller needs one. Revoking the
 * last key locks, it does not open.
 *
 * On the Unix socket, root and the user who started the daemon are fully trusted
 * (auth.trust_socket): they can read the state directory and kill the daemon anyway. Without keys,
 * others whom the file system lets connect there, and over TCP root and the daemon's users, have
 * every scope except admin; other users are refused.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/identity/key.h"
#include "core/identity/scope.h"
#include "core/tenant/principal.h"
#include "core/tenant/tenant.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct identity;
struct identity_key;
struct loop;
struct scheduler;
struct store;

#define IDENTITY_KEYS_MAX 10000
#define KEY_NAME_MAX      100

struct identity_config {
	const struct config *config; /* all borrowed */
	struct tenants *tenants;
	struct store *store; /* NULL: not persisted, for tests */
	unsigned owner_uid;  /* who started the daemon */
	unsigned daemon_uid; /* whom it runs as by its settings; else as owner_uid */
};

/** identity_free - unwritten changes fail with ERR_UNAVAILABLE. */
void identity_free(struct identity *identity);
struct identity *identity_new(const struct identity_config *config) attr_owned(identity_free);
/** identity_load - before store_start. */
int identity_load(struct identity *identity, struct error *err) attr_must_check;
/** identity_start - before the first change. @scheduler (may be NULL) learns of larger quotas. */
void identity_start(struct identity *identity, struct loop *loop, struct scheduler *scheduler);
/**
 * identity_watch_departures - call @fn after a tenant with history in the store was deleted; call
 * identity_departed when nothing is left.
 */
void identity_watch_departures(struct identity *identity, void (*fn)(void *ctx), void *ctx);
/** identity_watch_policies - call @fn after the policy of a tenant was changed. */
void identity_watch_policies(struct identity *identity, void (*fn)(void *ctx), void *ctx);
/** identity_departed - the name is free for a new tenant. */
void identity_departed(struct identity *identity, const char *name);
/** identity_has_keys - whether callers need a key. */
bool identity_has_keys(const struct identity *identity);
/** identity_is_locked - callers need a key, and none is valid. */
bool identity_is_locked(const struct identity *identity);
/** identity_trusts_socket - whether its owner needs no key at the Unix socket. */
bool identity_trusts_socket(const struct identity *identity);

struct identity_request {
	const char *authorization, *api_key; /* headers; NULL: not sent */
	bool repeated;                       /* one was sent twice */
	const char *peer;                    /* to count failures */
	bool is_unix;                        /* on the Unix socket */
	bool has_uid;                        /* @uid is that of the peer */
	unsigned uid;
	uint64_t now_us;
};

/**
 * identity_authenticate - Return: the principal, valid as long as @identity; or NULL with
 * ERR_INVALID (two credentials), ERR_UNAUTHENTICATED, or ERR_BUSY (too many failures).
 */
const struct principal *identity_authenticate(struct identity *identity,
                                              const struct identity_request *request,
                                              struct error *err);

/* Strings belong to the key. */
struct identity_key_info {
	const char *id, *tenant, *name;
	uint32_t scopes;
	uint64_t created_ms;
	uint64_t expires_ms, revoked_ms, last_used_ms; /* 0: never */
	bool active;
};

struct identity_key *identity_find_key(struct identity *identity, const char *id);
/** identity_key_holds - whether the key, or access without one (NULL), is still accepted. */
bool identity_key_holds(struct identity *identity, const char *id);
/** identity_key_at - oldest first; NULL past the end. O(index). */
struct identity_key *identity_key_at(struct identity *identity, size_t index);
/** identity_key_next - may be NULL. */
struct identity_key *identity_key_next(const struct identity *identity,
                                       const struct identity_key *key);
/** identity_next_expiry - when the next active key expires, in ms of the real time; 0: none will.
 */
uint64_t identity_next_expiry(const struct identity *identity);
size_t identity_key_count(const struct identity *identity);
void identity_key_info(const struct identity_key *key, struct identity_key_info *ret_info);

/* Changes. @done is called once, from the loop: with NULL when the change is on disk, else with the
 * error that undid it. A call that returns -1 changes and calls nothing. */
typedef void identity_done_fn(void *ctx, const struct error *err);

struct identity_done {
	identity_done_fn *fn;
	void *ctx;
};

/* Borrowed for the call. */
struct identity_key_request {
	const char *tenant;
	const char *name; /* for people; NULL: none */
	uint32_t scopes;
	uint64_t expires_ms; /* 0: never */
};

/** identity_create_key - *ret_key is the only copy of the secret. */
int identity_create_key(struct identity *identity, const struct identity_key_request *request,
                        struct identity_done done, struct key *ret_key,
                        struct error *err) attr_must_check;
/** identity_create_key_now - synchronously, before store_start. */
int identity_create_key_now(struct identity *identity, const struct identity_key_request *request,
                            struct key *ret_key, struct error *err) attr_must_check;
/** identity_revoke_key - takes effect at once, written or not; idempotent. */
int identity_revoke_key(struct identity *identity, struct identity_key *key,
                        struct identity_done done, struct error *err) attr_must_check;
/** identity_create_tenant - ERR_CONFLICT also while history of a deleted namesake remains. */
int identity_create_tenant(struct identity *identity, const struct tenant_settings *settings,
                           struct identity_done done, struct error *err) attr_must_check;
int identity_set_tenant(struct identity *identity, struct tenant *tenant,
                        const struct tenant_settings *settings, struct identity_done done,
                        struct error *err) attr_must_check;
/**
 * identity_delete_tenant - with its revoked keys; ERR_CONFLICT while it has anything else. History
 * is removed in the background.
 */
int identity_delete_tenant(struct identity *identity, struct tenant *tenant,
                           struct identity_done done, struct error *err) attr_must_check;
