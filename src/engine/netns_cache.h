/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the network namespaces that the helper of netns_pool.h may see again, each with the files
 * open that tell what was done in it, because opening them takes longer than reading them. Owned
 * and used by the helper alone.
 *
 * A namespace is known by its inode. One that is in here is kept alive by that and no other can
 * have the number meanwhile, so equality is identity. It would not go away by itself either: the
 * one that was seen least lately makes room for a new one, so no more than NETNS_CACHE_MAX ever
 * stay when nobody else has them any more.
 */

#include "base/attr.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/netns_check.h"

/* All that wait and some dozens that boxes have; fits into the usual limit of 1024 descriptors. */
#define NETNS_CACHE_MAX 80

struct netns_cache_entry {
	int net; /* -1: no entry; owned */
	dev_t dev;
	ino_t ino;
	uint64_t seen;             /* the higher, the later */
	struct netns_check traces; /* owned */
};

struct netns_cache {
	struct netns_cache_entry all[NETNS_CACHE_MAX];
	size_t room; /* how many of them may be used: fewer where descriptors are few */
	uint64_t now;
};

/** netns_cache_init - the process that calls this ends before the table does: there is no _done. */
void netns_cache_init(struct netns_cache *cache);
/** netns_cache_find - Return: the entry of @net, now the one seen latest, or NULL. */
struct netns_cache_entry *netns_cache_find(struct netns_cache *cache, int net);
/**
 * netns_cache_add - one that is not in it. The caller must be in it.
 * @net: stays the caller's.
 * Return: the entry, valid until the next is added, or NULL when its files cannot be opened.
 */
struct netns_cache_entry *netns_cache_add(struct netns_cache *cache, int net);
/** netns_cache_drop - let go of a namespace. @entry: may be NULL. */
void netns_cache_drop(struct netns_cache_entry *entry);
void netns_cache_drop_all(struct netns_cache *cache);
