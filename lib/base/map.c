/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/str.h"

/*
 * Open addressing, linear probing, at most three quarters full. Removal moves later entries of the
 * run back: no tombstones.
 */

#define MAP_MIN_SLOTS 16 /* a power of two, like all sizes */

struct slot {
	char *key; /* owned; NULL: free */
	void *value;
	uint64_t hash;
};

struct map {
	struct slot *slots; /* owned */
	size_t size;
	size_t count;
	uint64_t key[2];
};

static uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

static void sip_absorb(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
}

/* Byte order does not matter: no hash leaves the process. */
static uint64_t hash_of(const struct map *m, const char *key)
{
	uint64_t v[4] = {
		m->key[0] ^ 0x736f6d6570736575ULL,
		m->key[1] ^ 0x646f72616e646f6dULL,
		m->key[0] ^ 0x6c7967656e657261ULL,
		m->key[1] ^ 0x7465646279746573ULL,
	};
	size_t len = strlen(key);
	uint64_t word;

	for (size_t left = len; left >= sizeof(word); left -= sizeof(word)) {
		memcpy(&word, key + len - left, sizeof(word));
		sip_absorb(v, word);
	}
	word = 0;
	memcpy(&word, key + len - len % sizeof(word), len % sizeof(word));
	sip_absorb(v, word | (uint64_t)len << 56);

	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* @key's slot, or the free one for it. */
static struct slot *find_slot(const struct map *m, const char *key, uint64_t hash)
{
	size_t i = hash & (m->size - 1);

	while (m->slots[i].key && (m->slots[i].hash != hash || !str_equal(m->slots[i].key, key)))
		i = (i + 1) & (m->size - 1);
	return &m->slots[i];
}

static void resize(struct map *m, size_t size)
{
	cleanup_free struct slot *old = m->slots;
	size_t old_size = m->size;

	m->slots = xcalloc(size, sizeof(*m->slots));
	m->size = size;
	for (size_t i = 0; i < old_size; i++)
		if (old[i].key)
			*find_slot(m, old[i].key, old[i].hash) = old[i];
}

struct map *map_new(void)
{
	struct map *m = NEW(struct map);

	id_random_bytes(m->key, sizeof(m->key));
	resize(m, MAP_MIN_SLOTS);
	return m;
}

void map_free(struct map *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->size; i++)
		free(m->slots[i].key);
	free(m->slots);
	free(m);
}

void *map_get(const struct map *m, const char *key)
{
	return find_slot(m, key, hash_of(m, key))->value;
}

int map_put(struct map *m, const char *key, void *value)
{
	uint64_t hash = hash_of(m, key);

	assert(value); /* map_get returns NULL for "none" */
	if (find_slot(m, key, hash)->key)
		return -EEXIST;
	if ((m->count + 1) > m->size / 4 * 3)
		resize(m, m->size * 2);
	*find_slot(m, key, hash) = (struct slot){.key = xstrdup(key), .value = value, .hash = hash};
	m->count++;
	return 0;
}

/* Whether the entry at @at, which probes from @home, is found at @hole. */
static bool may_move(const struct map *m, size_t home, size_t hole, size_t at)
{
	return ((at - home) & (m->size - 1)) >= ((at - hole) & (m->size - 1));
}

void *map_remove(struct map *m, const char *key)
{
	struct slot *slot = find_slot(m, key, hash_of(m, key));
	void *value = slot->value;
	size_t hole = (size_t)(slot - m->slots);
	size_t mask = m->size - 1;

	if (!slot->key)
		return NULL;
	free(slot->key);
	for (size_t i = (hole + 1) & mask; m->slots[i].key; i = (i + 1) & mask) {
		if (may_move(m, m->slots[i].hash & mask, hole, i)) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole] = (struct slot){0};
	m->count--;
	return value;
}

size_t map_count(const struct map *m)
{
	return m->count;
}

void *map_next(const struct map *m, size_t *pos, const char **ret_key)
{
	while (*pos < m->size) {
		const struct slot *slot = &m->slots[(*pos)++];

		if (!slot->key)
			continue;
		if (ret_key)
			*ret_key = slot->key;
		return slot->value;
	}
	return NULL;
}
