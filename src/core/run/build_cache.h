/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what compilers made, by a key over everything that went in: code, files, command,
 * environment, toolchain, tenant (build.h). In memory, because it may be lost at any time: a
 * restart leaves nothing to check. Bounded in bytes; the least recently used goes first. A tenant
 * has at most half, so that one cannot evict all of the others.
 *
 * The daemon alone computes keys. A value comes from a box in which only the compiler and the key's
 * own source were, so a bad one harms its own source only.
 */

#include "base/attr.h"
#include "base/sha256.h"
#include "core/tenant/principal.h"
#include <stddef.h>
#include <stdint.h>

struct build_cache;

struct build_key {
	uint8_t digest[SHA256_LEN];
};

void build_cache_free(struct build_cache *c);
/** build_cache_new - @max_bytes 0: keeps nothing. */
struct build_cache *build_cache_new(uint64_t max_bytes) attr_owned(build_cache_free);

/** build_cache_get - borrowed until the next put; NULL: unknown. */
const void *build_cache_get(struct build_cache *c, const struct build_key *key, size_t *ret_len);
/** build_cache_put - copies @data, unless it is too large. @tenant: whose half it counts for. */
void build_cache_put(struct build_cache *c, const struct build_key *key, const char *tenant,
                     const void *data, size_t len);

struct build_cache_stats {
	uint64_t hits, misses, bytes, max_bytes, entries;
};
void build_cache_stats(const struct build_cache *c, struct build_cache_stats *ret_stats);
