/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: keys, and who asks. A key belongs to a tenant and has scopes; it is known by its id, its
 * secret is not kept (see core/key.h). Tenants are changed here too, because what is changed has to
 * be on the disk before anybody is told: a change is made in memory at once, written, and undone if
 * it could not be written.
 *
 * As long as there is no key at all nobody is asked for one. From the first one on everybody is,
 * for good: revoking the last key locks, it does not open.
 *
 * Who connects to the Unix socket as root or as the user who started the daemon is trusted with
 * everything (auth.trust_socket): they can read the state directory and end the daemon anyway.
 * Where there are no keys, all others have every scope but admin.
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
	const struct config *config; /* borrowed, as all */
	struct tenants *tenants;
	struct store *store; /* NULL: nothing is kept, for tests */
	unsigned owner_uid;  /* who started the daemon */
};

/** identity_free - changes that are not written yet are told as ERR_UNAVAILABLE. */
void identity_free(struct identity *identity);
struct identity *identity_new(const struct identity_config *config) attr_owned(identity_free);
/** identity_load - what the store has; before that is started. */
int identity_load(struct identity *identity, struct error *err) attr_must_check;
/** identity_start - before the first change. @scheduler is told when a quota grows; NULL: nobody.
 */
void identity_start(struct identity *identity, struct loop *loop, struct scheduler *scheduler);
/** identity_watch_departures - @fn is called when a tenant was deleted whose past is not removed
 * yet: whoever does that calls identity_departed when nothing is left. */
void identity_watch_departures(struct identity *identity, void (*fn)(void *ctx), void *ctx);
/** identity_departed - another tenant may have this name. */
void identity_departed(struct identity *identity, const char *name);
/** identity_has_keys - whether callers are asked for one. */
bool identity_has_keys(const struct identity *identity);

/* What a request brings. */
struct identity_request {
	const char *authorization, *api_key; /* headers; NULL: not sent */
	bool repeated;                       /* one of them was sent more than once */
	const char *peer;                    /* whose failures count together */
	bool has_uid;                        /* came by the Unix socket, from a process of @uid */
	unsigned uid;
	uint64_t now_us;
};

/**
 * identity_authenticate - Return: who asks, valid as long as @identity; or NULL with ERR_INVALID
 * (two credentials), ERR_UNAUTHENTICATED, or ERR_BUSY (this peer has failed too often).
 */
const struct principal *identity_authenticate(struct identity *identity,
                                              const struct identity_request *request,
                                              struct error *err);

/* What can be told of a key. Strings are the key's. */
struct identity_key_info {
	const char *id, *tenant, *name;
	uint32_t scopes;
	uint64_t created_ms;
	uint64_t expires_ms, revoked_ms, last_used_ms; /* 0: never */
	bool active;
};

struct identity_key *identity_find_key(struct identity *identity, const char *id);
/** identity_key_holds - whether who came with it would still be let in; NULL: came without one. */
bool identity_key_holds(struct identity *identity, const char *id);
/** identity_key_at - the oldest first; NULL past the end. O(index). */
struct identity_key *identity_key_at(struct identity *identity, size_t index);
/** identity_key_next - the one behind @key; NULL: there is none. */
struct identity_key *identity_key_next(const struct identity *identity,
                                       const struct identity_key *key);
size_t identity_key_count(const struct identity *identity);
void identity_key_info(const struct identity_key *key, struct identity_key_info *ret_info);

/* Changes. @done is called once, from the loop: with NULL when the change is on the disk, else with
 * why it was undone. A call that returns -1 has changed nothing and calls nothing. */
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

/** identity_create_key - *ret_key is the only copy of the secret there will ever be. */
int identity_create_key(struct identity *identity, const struct identity_key_request *request,
                        struct identity_done done, struct key *ret_key,
                        struct error *err) attr_must_check;
/** identity_create_key_now - the same at once, before the store is started. */
int identity_create_key_now(struct identity *identity, const struct identity_key_request *request,
                            struct key *ret_key, struct error *err) attr_must_check;
/** identity_revoke_key - from now on, written or not. A revoked one stays as it is. */
int identity_revoke_key(struct identity *identity, struct identity_key *key,
                        struct identity_done done, struct error *err) attr_must_check;
/** identity_create_tenant - ERR_CONFLICT also while something is left of an earlier one. */
int identity_create_tenant(struct identity *identity, const struct tenant_settings *settings,
                           struct identity_done done, struct error *err) attr_must_check;
/** identity_set_tenant - policy and quotas; its name stays. */
int identity_set_tenant(struct identity *identity, struct tenant *tenant,
                        const struct tenant_settings *settings, struct identity_done done,
                        struct error *err) attr_must_check;
/** identity_delete_tenant - with its revoked keys; ERR_CONFLICT while it has anything else. What is
 * only in the store any more is removed in the background. */
int identity_delete_tenant(struct identity *identity, struct tenant *tenant,
                           struct identity_done done, struct error *err) attr_must_check;
