/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/netns_cache.h"

#include <assert.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/fd.h"

#define FILES_PER_ENTRY (NETNS_CHECK_FILES + 1)
/* The helper's other descriptors: streams, sockets, the namespace it is working on. */
#define FILES_OWN 64

static_assert(NETNS_CACHE_MAX * FILES_PER_ENTRY + FILES_OWN <= 1024, "the usual limit");

static size_t room_for_files(void)
{
	struct rlimit files = {.rlim_cur = 0};

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < FILES_OWN + FILES_PER_ENTRY)
		return 1;
	if (files.rlim_cur >= FILES_OWN + NETNS_CACHE_MAX * FILES_PER_ENTRY)
		return NETNS_CACHE_MAX;
	return (size_t)(files.rlim_cur - FILES_OWN) / FILES_PER_ENTRY;
}

void netns_cache_init(struct netns_cache *cache)
{
	*cache = (struct netns_cache){.room = room_for_files()};
	for (size_t i = 0; i < NETNS_CACHE_MAX; i++)
		cache->all[i].net = -1;
}

struct netns_cache_entry *netns_cache_find(struct netns_cache *cache, int net)
{
	struct stat st;

	if (fstat(net, &st) < 0)
		return NULL;
	for (size_t i = 0; i < cache->room; i++) {
		struct netns_cache_entry *entry = &cache->all[i];

		if (entry->net < 0 || entry->ino != st.st_ino || entry->dev != st.st_dev)
			continue;
		entry->seen = ++cache->now;
		return entry;
	}
	return NULL;
}

/* Return: an unused entry, or the least recently seen one, dropped. */
static struct netns_cache_entry *make_room(struct netns_cache *cache)
{
	struct netns_cache_entry *oldest = &cache->all[0];

	for (size_t i = 0; i < cache->room && oldest->net >= 0; i++)
		if (cache->all[i].net < 0 || cache->all[i].seen < oldest->seen)
			oldest = &cache->all[i];
	netns_cache_drop(oldest);
	return oldest;
}

struct netns_cache_entry *netns_cache_add(struct netns_cache *cache, int net)
{
	struct netns_cache_entry *entry = make_room(cache);
	struct stat st;

	if (fstat(net, &st) < 0 || netns_check_open(&entry->traces) < 0)
		return NULL;
	/* Keeps the namespace, and with it the inode number, without relying on the files. */
	entry->net = fd_dup(net);
	if (entry->net < 0) {
		entry->net = -1;
		netns_check_close(&entry->traces);
		return NULL;
	}
	entry->dev = st.st_dev;
	entry->ino = st.st_ino;
	entry->seen = ++cache->now;
	return entry;
}

void netns_cache_drop(struct netns_cache_entry *entry)
{
	if (!entry || entry->net < 0)
		return;
	netns_check_close(&entry->traces);
	entry->net = fd_close(entry->net);
}

void netns_cache_drop_all(struct netns_cache *cache)
{
	for (size_t i = 0; i < cache->room; i++)
		netns_cache_drop(&cache->all[i]);
}
