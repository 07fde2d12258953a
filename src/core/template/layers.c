/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/layers.h"

#include <sodium.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/language/manager.h"
#include "core/observe/metrics.h"
#include "core/template/images.h"

/* Written at most this often. */
#define USED_MS (60 * 1000)
/* Of a tenant: each costs time where layers are counted. */
#define LAYERS_MAX 256

struct layers {
	struct list all; /* struct layer.node */
	size_t count;
	uint64_t max_bytes, max_tenant_bytes, evicted;
	struct layers_events events;
};

struct layers *layers_new(uint64_t max_bytes, uint64_t max_tenant_bytes)
{
	struct layers *all = NEW(struct layers);

	*all = (struct layers){.max_bytes = max_bytes, .max_tenant_bytes = max_tenant_bytes};
	list_init(&all->all);
	return all;
}

void layers_set_events(struct layers *all, const struct layers_events *events)
{
	all->events = *events;
}

static void layer_free(struct layers *all, struct layer *layer)
{
	list_remove(&layer->node);
	all->count--;
	str_list_free(layer->packages);
	free(layer->lock);
	image_unref(layer->image);
	free(layer);
}

void layers_free(struct layers *all)
{
	struct layer *layer;

	if (!all)
		return;
	LIST_FOREACH (layer, &all->all, struct layer, node)
		layer_free(all, layer);
	free(all);
}

struct layer *layers_find(struct layers *all, const char *tenant, const char *key)
{
	struct layer *layer;

	LIST_FOREACH (layer, &all->all, struct layer, node) {
		uint64_t now = clock_real_ms();

		if (!str_equal(layer->tenant, tenant) || !str_equal(layer->key, key))
			continue;
		list_remove(&layer->node);
		list_append(&all->all, &layer->node);
		if (now > layer->used_ms + USED_MS) {
			layer->used_ms = now;
			if (all->events.on_used)
				all->events.on_used(all->events.ctx, layer);
		}
		return layer;
	}
	return NULL;
}

struct layer *layers_by_id(const struct layers *all, const char *tenant, const char *id)
{
	struct layer *layer;

	LIST_FOREACH (layer, &all->all, struct layer, node)
		if (str_equal(layer->tenant, tenant) && str_equal(layer->id, id))
			return layer;
	return NULL;
}

struct layer *layers_at(const struct layers *all, const char *tenant, size_t index)
{
	struct layer *layer;

	LIST_FOREACH (layer, &all->all, struct layer, node)
		if (str_equal(layer->tenant, tenant) && index-- == 0)
			return layer;
	return NULL;
}

/* Its first layer, so that a shared tree counts once. */
static bool is_first(const struct layers *all, const struct layer *layer)
{
	struct layer *other;

	LIST_FOREACH (other, &all->all, struct layer, node)
		if (other->image == layer->image)
			return other == layer;
	return false;
}

uint64_t layers_bytes(const struct layers *all, const char *tenant)
{
	struct layer *layer;
	uint64_t bytes = 0;

	LIST_FOREACH (layer, &all->all, struct layer, node)
		if ((!tenant || str_equal(layer->tenant, tenant)) && is_first(all, layer))
			bytes += layer->image->bytes;
	return bytes;
}

static size_t count_entries(const struct layers *all, const struct layer *layer)
{
	struct layer *other;
	size_t own = 0;

	LIST_FOREACH (other, &all->all, struct layer, node)
		own += other->image == layer->image ? 1 : 0;
	return own;
}

size_t layer_users(const struct layers *all, const struct layer *layer)
{
	return layer->image->refs - count_entries(all, layer);
}

static void drop_layer(struct layers *all, struct layer *layer)
{
	if (all->events.on_forget)
		all->events.on_forget(all->events.ctx, layer);
	if (all->events.on_delete)
		all->events.on_delete(all->events.ctx, layer);
	layer_free(all, layer);
}

int layers_remove(struct layers *all, struct layer *layer, struct error *err)
{
	/* Another layer keeps a tree that they share. */
	size_t users = count_entries(all, layer) > 1 ? 0 : layer_users(all, layer);

	if (users > 0)
		return error_set(err, ERR_CONFLICT, 0, "%zu template%s or box%s use%s layer '%s'",
		                 users, users == 1 ? "" : "s", users == 1 ? "" : "es",
		                 users == 1 ? "s" : "", layer->id);
	drop_layer(all, layer);
	return 0;
}

static struct layer *oldest_unused(const struct layers *all, const char *tenant)
{
	struct layer *layer;

	/* NOLINTNEXTLINE: one that was freed has left the list */
	LIST_FOREACH (layer, &all->all, struct layer, node)
		if ((!tenant || str_equal(layer->tenant, tenant)) && layer_users(all, layer) == 0)
			return layer;
	return NULL;
}

static size_t count_of(const struct layers *all, const char *tenant)
{
	struct layer *layer;
	size_t count = 0;

	/* NOLINTNEXTLINE: one that was freed has left the list */
	LIST_FOREACH (layer, &all->all, struct layer, node)
		count += str_equal(layer->tenant, tenant);
	return count;
}

/* @tenant NULL: of all. Return: whether @bytes fit below @max. */
static bool make_room(struct layers *all, const char *tenant, uint64_t bytes, uint64_t max)
{
	struct layer *layer;

	while (layers_bytes(all, tenant) + bytes > max ||
	       (tenant && count_of(all, tenant) >= LAYERS_MAX)) {
		layer = oldest_unused(all, tenant);
		if (!layer)
			return false;
		drop_layer(all, layer);
		all->evicted++;
	}
	return true;
}

static void digest_lock(const struct layer_record *record, char ret_digest[WANTED_KEY_LEN])
{
	unsigned char digest[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state hash;

	(void)crypto_hash_sha256_init(&hash);
	(void)crypto_hash_sha256_update(&hash, (const unsigned char *)record->manager->name,
	                                strlen(record->manager->name) + 1);
	(void)crypto_hash_sha256_update(&hash, (const unsigned char *)record->lock,
	                                strlen(record->lock));
	(void)crypto_hash_sha256_final(&hash, digest);
	(void)sodium_bin2hex(ret_digest, WANTED_KEY_LEN, digest, sizeof(digest));
}

struct layer *layers_add(struct layers *all, const struct layer_record *record, struct error *err)
{
	struct image *image = record->image;
	char digest[WANTED_KEY_LEN];
	struct layer *layer;

	/* The lock is the box's word: an install script could have made another tree for it. */
	digest_lock(record, digest);
	if (err && (!make_room(all, record->tenant, image->bytes, all->max_tenant_bytes) ||
	            !make_room(all, NULL, image->bytes, all->max_bytes))) {
		(void)error_set(err, ERR_QUOTA, 0,
		                "the packages need %llu bytes on disk, and layers in use "
		                "leave no room below packages.max_per_tenant or "
		                "packages.max_total, or are %d already",
		                (unsigned long long)image->bytes, LAYERS_MAX);
		return NULL;
	}
	layer = NEW(struct layer);
	*layer = (struct layer){.manager = record->manager, .image = image_ref(image)};
	(void)!str_copy(layer->id, sizeof(layer->id), "");
	memcpy(layer->id, record->key, sizeof(layer->id) - 1);
	memcpy(layer->digest, digest, sizeof(layer->digest));
	(void)!str_copy(layer->tenant, sizeof(layer->tenant), record->tenant);
	(void)!str_copy(layer->key, sizeof(layer->key), record->key);
	layer->packages = str_list_copy(record->packages);
	layer->lock = xstrdup(record->lock);
	layer->created_ms = record->created_ms ? record->created_ms : clock_real_ms();
	layer->used_ms = record->used_ms ? record->used_ms : layer->created_ms;
	list_append(&all->all, &layer->node);
	all->count++;
	if (all->events.on_put)
		all->events.on_put(all->events.ctx, layer);
	return layer;
}

size_t layers_count(const struct layers *all)
{
	return all->count;
}

void layers_measure(void *ctx, struct metrics *m)
{
	struct layers *all = ctx;

	metrics_set(m, METRIC_PACKAGE_LAYERS, (double)all->count);
	metrics_set(m, METRIC_PACKAGE_BYTES, (double)layers_bytes(all, NULL));
	metrics_count(m, METRIC_PACKAGE_EVICTIONS, (double)all->evicted);
	all->evicted = 0;
}
