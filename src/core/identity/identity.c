/* SPDX-License-Identifier: Apache-2.0 */
#include "core/identity/identity.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/map.h"
#include "core/config/config.h"
#include "core/identity/identity_internal.h"
#include "core/identity/identity_row.h"

/*
 * A key is found by its id, which is not secret, then compared whole in constant time. An unknown
 * id is compared too, so that timing does not reveal which ids exist.
 *
 * Guessing is hopeless; only the noise is bounded. A peer that keeps sending invalid keys must
 * wait. Valid keys are served meanwhile, from the same address too: else one client could lock out
 * everyone behind a proxy.
 */

/* At most one write of last_used per key and minute. */
#define USED_STEP_MS  60000
#define PEERS_MAX     4096
#define PRUNE_STEP_US (1 * USEC_PER_SEC)

static const struct bucket_rate failure_rate = {.per_second = 1, .burst = 20};

struct peer {
	struct bucket failures;
};

struct identity *identity_new(const struct identity_config *config)
{
	struct identity *identity = NEW(struct identity);

	identity->config = *config;
	identity->by_id = map_new();
	identity->peers = map_new();
	identity->departed = map_new();
	list_init(&identity->keys);
	list_init(&identity->gone);
	list_init(&identity->changes);
	identity->owner = (struct principal){.tenant = TENANT_DEFAULT, .scopes = SCOPES_ALL};
	identity->anonymous = (struct principal){.tenant = TENANT_DEFAULT,
	                                         .scopes = SCOPES_ALL & ~SCOPE_BIT(SCOPE_ADMIN)};
	return identity;
}

int identity_load(struct identity *identity, struct error *err)
{
	return identity->config.store ? identity_row_load(identity->config.store, identity, err)
	                              : 0;
}

void identity_start(struct identity *identity, struct loop *loop, struct scheduler *scheduler)
{
	identity->loop = loop;
	identity->scheduler = scheduler;
}

void identity_watch_policies(struct identity *identity, void (*fn)(void *ctx), void *ctx)
{
	identity->on_policy = fn;
	identity->on_policy_ctx = ctx;
}

void identity_watch_departures(struct identity *identity, void (*fn)(void *ctx), void *ctx)
{
	identity->on_departure = fn;
	identity->on_departure_ctx = ctx;
}

void identity_note_departed(struct identity *identity, const char *name)
{
	(void)!map_put(identity->departed, name, identity);
}

void identity_departed(struct identity *identity, const char *name)
{
	(void)map_remove(identity->departed, name);
}

static void free_keys(struct list *keys)
{
	struct identity_key *key;

	LIST_FOREACH (key, keys, struct identity_key, node) {
		list_remove(&key->node);
		free(key);
	}
}

void identity_free(struct identity *identity)
{
	size_t pos = 0;
	void *peer;

	if (!identity)
		return;
	identity_end_changes(identity);
	free_keys(&identity->keys);
	free_keys(&identity->gone);
	while ((peer = map_next(identity->peers, &pos, NULL)))
		free(peer);
	map_free(identity->peers);
	map_free(identity->by_id);
	map_free(identity->departed);
	free(identity);
}

bool identity_has_keys(const struct identity *identity)
{
	return identity->keyed;
}

struct identity_key *identity_find_key(struct identity *identity, const char *id)
{
	return map_get(identity->by_id, id);
}

struct identity_key *identity_key_at(struct identity *identity, size_t index)
{
	struct identity_key *key;

	LIST_FOREACH (key, &identity->keys, struct identity_key, node)
		if (index-- == 0)
			return key;
	return NULL;
}

struct identity_key *identity_key_next(const struct identity *identity,
                                       const struct identity_key *key)
{
	struct list *next = key->node.next;

	return next == &identity->keys ? NULL : LIST_ENTRY(next, struct identity_key, node);
}

size_t identity_key_count(const struct identity *identity)
{
	return map_count(identity->by_id);
}

static bool is_active(const struct identity_key *key, uint64_t now_ms)
{
	return key->revoked_ms == 0 && (key->expires_ms == 0 || now_ms < key->expires_ms);
}

uint64_t identity_next_expiry(const struct identity *identity)
{
	uint64_t now_ms = clock_real_ms(), next_ms = 0;
	struct identity_key *key;

	LIST_FOREACH (key, &identity->keys, struct identity_key, node)
		if (key->expires_ms && is_active(key, now_ms) &&
		    (next_ms == 0 || key->expires_ms < next_ms))
			next_ms = key->expires_ms;
	return next_ms;
}

void identity_key_info(const struct identity_key *key, struct identity_key_info *ret_info)
{
	*ret_info = (struct identity_key_info){
		.id = key->id,
		.tenant = key->tenant,
		.name = key->name,
		.scopes = key->principal.scopes,
		.created_ms = key->created_ms,
		.expires_ms = key->expires_ms,
		.revoked_ms = key->revoked_ms,
		.last_used_ms = key->last_used_ms,
		.active = is_active(key, clock_real_ms()),
	};
}

bool identity_key_holds(struct identity *identity, const char *id)
{
	const struct identity_key *key = id ? identity_find_key(identity, id) : NULL;

	return !id || (key && is_active(key, clock_real_ms()));
}

struct identity_key *identity_add_key(struct identity *identity, const struct identity_key *key)
{
	struct identity_key *copy = NEW(struct identity_key);

	*copy = *key;
	copy->principal.tenant = copy->tenant;
	copy->principal.key_id = copy->id;
	list_init(&copy->node);
	if (map_put(identity->by_id, copy->id, copy) < 0) {
		free(copy);
		return NULL;
	}
	list_append(&identity->keys, &copy->node);
	identity->keyed = true;
	return copy;
}

void identity_forget_key(struct identity *identity, struct identity_key *key)
{
	(void)map_remove(identity->by_id, key->id);
	list_remove(&key->node);
	list_append(&identity->gone, &key->node);
}

/* Drop peers that owe nothing. Rate-limited: a client with many addresses must not make every
 * request a scan. */
static void prune_peers(struct identity *identity, uint64_t now_us)
{
	struct map *kept = map_new();
	const char *name;
	struct peer *peer;
	size_t pos = 0;

	identity->pruned_us = now_us;
	while ((peer = map_next(identity->peers, &pos, &name))) {
		if (bucket_is_full(&peer->failures, &failure_rate, now_us) ||
		    map_put(kept, name, peer) < 0)
			free(peer);
	}
	map_free(identity->peers);
	identity->peers = kept;
}

/* Peers beyond PEERS_MAX share one entry. */
static struct peer *get_peer(struct identity *identity, const char *name, uint64_t now_us)
{
	struct peer *peer = map_get(identity->peers, name);

	if (peer)
		return peer;
	if (map_count(identity->peers) >= PEERS_MAX &&
	    now_us - identity->pruned_us >= PRUNE_STEP_US)
		prune_peers(identity, now_us);
	if (map_count(identity->peers) >= PEERS_MAX) {
		name = "";
		peer = map_get(identity->peers, name);
	}
	if (peer)
		return peer;
	peer = NEW(struct peer);
	(void)!map_put(identity->peers, name, peer); /* looked up above */
	return peer;
}

/* Return: always NULL. */
static const struct principal *reject_key(struct identity *identity,
                                          const struct identity_request *request, const char *why,
                                          struct error *err)
{
	struct peer *peer = get_peer(identity, request->peer, request->now_us);

	if (bucket_take(&peer->failures, &failure_rate, request->now_us) > 0)
		(void)error_set(err, ERR_BUSY, 0, "too many requests without a valid key");
	else
		(void)error_set(err, ERR_UNAUTHENTICATED, 0, "%s", why);
	return NULL;
}

static const struct principal *check_key(struct identity *identity, const struct key *key,
                                         const struct identity_request *request, struct error *err)
{
	static const uint8_t nothing[KEY_HASH_LEN];
	struct identity_key *known = map_get(identity->by_id, key->id);
	bool matches = key_matches(key, known ? known->hash : nothing);
	uint64_t now_ms = clock_real_ms();

	if (!known || !matches)
		return reject_key(identity, request, "unknown key", err);
	/* The caller has the secret: it may learn the key's fate. */
	if (known->revoked_ms)
		return reject_key(identity, request, "the key was revoked", err);
	if (!is_active(known, now_ms))
		return reject_key(identity, request, "the key has expired", err);
	if (now_ms >= known->last_used_ms + USED_STEP_MS) {
		known->last_used_ms = now_ms;
		identity_row_used(identity->config.store, known->id, now_ms);
	}
	return &known->principal;
}

/* The socket's mode and group decide who reaches it; a TCP port is open to every local user. */
static const struct principal *
admit_keyless(struct identity *identity, const struct identity_request *request, struct error *err)
{
	const struct identity_config *c = &identity->config;
	char who[32] = "an unknown user", owner[32] = "";

	if (request->is_unix ||
	    (request->has_uid &&
	     (request->uid == 0 || request->uid == c->owner_uid || request->uid == c->daemon_uid)))
		return &identity->anonymous;
	if (request->has_uid)
		(void)snprintf(who, sizeof(who), "user %u", request->uid);
	if (c->owner_uid != 0)
		(void)snprintf(owner, sizeof(owner), " and user %u", c->owner_uid);
	/* The administrator's way to a first key is the socket, or the state directory. */
	if (c->config->socket[0])
		(void)error_set(err, ERR_UNAUTHENTICATED, 0,
		                "without keys TCP serves only root%s, and this is %s: "
		                "connect to %.70s as a member of its group, or send a key, which "
		                "they create there (POST /api/v1/keys)",
		                owner, who, c->config->socket);
	else
		(void)error_set(err, ERR_UNAUTHENTICATED, 0,
		                "without keys TCP serves only root%s, and this is %s: "
		                "send a key, which they create with 'milliboxd --create-key'",
		                owner, who);
	return NULL;
}

bool identity_trusts_socket(const struct identity *identity)
{
	return identity->config.config->auth_trust_socket;
}

bool identity_is_locked(const struct identity *identity)
{
	const struct identity_key *key;
	uint64_t now_ms = clock_real_ms();

	LIST_FOREACH (key, &identity->keys, const struct identity_key, node)
		if (is_active(key, now_ms))
			return false;
	return identity->keyed;
}

static void ask_for_key(const struct identity *identity, struct error *err)
{
	if (!identity_is_locked(identity))
		(void)error_set(err, ERR_UNAUTHENTICATED, 0, "send a key");
	else
		(void)error_set(
			err, ERR_UNAUTHENTICATED, 0,
			"no key is valid: all were revoked or have expired; the operator %s",
			identity_trusts_socket(identity)
				? "creates one with 'millibox key create' at the Unix "
				  "socket, or 'milliboxd --create-key'"
				: "stops the daemon and creates one with 'milliboxd "
				  "--create-key'");
}

const struct principal *identity_authenticate(struct identity *identity,
                                              const struct identity_request *request,
                                              struct error *err)
{
	cleanup_key struct key key = {0};
	bool trusted = identity_trusts_socket(identity) && request->is_unix && request->has_uid &&
	               (request->uid == 0 || request->uid == identity->config.owner_uid);
	int r;

	/* Clients may send a key to a daemon that has none. */
	if (!identity->keyed)
		return trusted ? &identity->owner : admit_keyless(identity, request, err);
	r = key_from_headers(request->authorization, request->api_key, &key);
	if (request->repeated || r == -EEXIST) {
		(void)error_field(err, "Authorization",
		                  "send one key, in Authorization or in X-API-Key");
		return NULL;
	}
	if (r == 0 && trusted)
		return &identity->owner;
	if (r == 0) {
		ask_for_key(identity, err);
		return NULL;
	}
	if (r < 0)
		return reject_key(identity, request, "this is not a valid key", err);
	return check_key(identity, &key, request, err);
}
