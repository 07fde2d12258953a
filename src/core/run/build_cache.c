/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/build_cache.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

#define HEX_LEN      (2 * SHA256_LEN + 1)
#define TENANT_SHARE 2 /* part of the cache */

struct entry {
	struct list node; /* in order of use, the oldest first */
	char name[HEX_LEN];
	char tenant[TENANT_NAME_MAX + 1];
	void *data;
	size_t len;
};

struct build_cache {
	struct map *entries;
	struct list order;
	struct build_cache_stats stats;
};

static void make_name(const struct build_key *key, char ret_name[HEX_LEN])
{
	for (size_t i = 0; i < SHA256_LEN; i++)
		(void)snprintf(ret_name + 2 * i, 3, "%02x", key->digest[i]);
}

static void drop_entry(struct build_cache *c, struct entry *e)
{
	(void)map_remove(c->entries, e->name);
	list_remove(&e->node);
	c->stats.bytes -= e->len;
	c->stats.entries--;
	free(e->data);
	free(e);
}

struct build_cache *build_cache_new(uint64_t max_bytes)
{
	struct build_cache *c = NEW(struct build_cache);

	c->entries = map_new();
	list_init(&c->order);
	c->stats.max_bytes = max_bytes;
	return c;
}

void build_cache_free(struct build_cache *c)
{
	struct entry *e;

	if (!c)
		return;
	LIST_FOREACH (e, &c->order, struct entry, node)
		drop_entry(c, e);
	map_free(c->entries);
	free(c);
}

const void *build_cache_get(struct build_cache *c, const struct build_key *key, size_t *ret_len)
{
	char name[HEX_LEN];
	struct entry *e;

	make_name(key, name);
	e = map_get(c->entries, name);
	if (!e) {
		c->stats.misses++;
		return NULL;
	}
	c->stats.hits++;
	list_remove(&e->node);
	list_append(&c->order, &e->node);
	*ret_len = e->len;
	return e->data;
}

static uint64_t bytes_of(const struct build_cache *c, const char *tenant)
{
	struct entry *e;
	uint64_t bytes = 0;

	/* NOLINTNEXTLINE: one that was freed has left the list */
	LIST_FOREACH (e, &c->order, struct entry, node)
		if (str_equal(e->tenant, tenant))
			bytes += e->len;
	return bytes;
}

/* Of @tenant only, or of all (NULL). */
static void drop_oldest(struct build_cache *c, const char *tenant)
{
	struct entry *e;

	LIST_FOREACH (e, &c->order, struct entry, node)
		if (!tenant || str_equal(e->tenant, tenant)) {
			drop_entry(c, e);
			return;
		}
}

void build_cache_put(struct build_cache *c, const struct build_key *key, const char *tenant,
                     const void *data, size_t len)
{
	uint64_t share = c->stats.max_bytes / TENANT_SHARE;
	struct entry *e;
	char name[HEX_LEN];

	make_name(key, name);
	/* Another run compiled the same meanwhile: keep the first. */
	if (len > share || map_get(c->entries, name))
		return;
	while (bytes_of(c, tenant) + len > share)
		drop_oldest(c, tenant);
	while (c->stats.bytes + len > c->stats.max_bytes)
		drop_oldest(c, NULL);
	e = NEW(struct entry);
	memcpy(e->name, name, sizeof(e->name));
	(void)!str_copy(e->tenant, sizeof(e->tenant), tenant); /* names of tenants fit */
	e->data = xmemdup0(data, len);
	e->len = len;
	list_append(&c->order, &e->node);
	(void)!map_put(c->entries, e->name, e); /* looked up above */
	c->stats.bytes += len;
	c->stats.entries++;
}

void build_cache_stats(const struct build_cache *c, struct build_cache_stats *ret_stats)
{
	*ret_stats = c->stats;
}
