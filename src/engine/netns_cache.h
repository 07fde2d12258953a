/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: network namespaces that the helper of netns_pool.h may see again, each with the files of
 * netns_check.h open, because opening takes longer than reading. Used by the helper alone.
 *
 * A namespace is identified by device and inode. An entry keeps its namespace alive, so no other
 * can get the same inode meanwhile. The least recently seen is dropped to make room.
 */

#include "base/attr.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/netns_check.h"

/* All spares and some dozens in use; fits the usual limit of 1024 descriptors. */
#define NETNS_CACHE_MAX 80

struct netns_cache_entry {
	int net; /* owned; -1: unused entry */
	dev_t dev;
	ino_t ino;
	uint64_t seen;             /* netns_cache.now when it was last used */
	struct netns_check traces; /* owned */
};

struct netns_cache {
	struct netns_cache_entry all[NETNS_CACHE_MAX];
	size_t room; /* fewer if descriptors are scarce */
	uint64_t now;
};

/** netns_cache_init - no _done: lives as long as the helper process. */
void netns_cache_init(struct netns_cache *cache);
/** netns_cache_find - Return: the entry of @net, marked as most recently seen, or NULL. */
struct netns_cache_entry *netns_cache_find(struct netns_cache *cache, int net);
/**
 * netns_cache_add - add @net, borrowed, the caller's current namespace, which must not be in the
 * cache. Return: the entry, valid until the next add, or NULL if its files cannot be opened.
 */
struct netns_cache_entry *netns_cache_add(struct netns_cache *cache, int net);
void netns_cache_drop(struct netns_cache_entry *entry);
void netns_cache_drop_all(struct netns_cache *cache);
