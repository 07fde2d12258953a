/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: layers of installed packages: a cache of read-only trees on disk, found by tenant and key
 * (wanted.h). A layer is an image (images.h) that the cache refers to; templates and boxes that use
 * it have references of their own, so that its tree stays until the last of them ends.
 *
 * Bounded: beyond packages.max_total, or packages.max_per_tenant for one tenant, the least recently
 * used layers that nothing else uses are removed.
 */

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"
#include "core/template/wanted.h"
#include "core/tenant/principal.h"
#include <stddef.h>
#include <stdint.h>

struct image;
struct images;
struct layer;
struct layers;
struct manager;
struct metrics;

#define LAYER_ID_LEN 25 /* hex, and NUL */

struct layer {
	struct list node; /* least recently used first */
	char id[LAYER_ID_LEN];
	char tenant[TENANT_NAME_MAX + 1];
	char key[WANTED_KEY_LEN];
	char digest[WANTED_KEY_LEN]; /* of the resolved lock, with interpreter and platform */
	const struct manager *manager;
	char **packages;     /* owned; as requested */
	char *lock;          /* owned; as resolved */
	struct image *image; /* a reference */
	uint64_t created_ms, used_ms;
};

/* Called during the change. */
struct layers_events {
	void *ctx;
	void (*on_put)(void *ctx, const struct layer *layer);
	void (*on_delete)(void *ctx, const struct layer *layer);
	void (*on_used)(void *ctx, const struct layer *layer);
	/* Before @layer is removed, so that boxes made ahead on it end. */
	void (*on_forget)(void *ctx, const struct layer *layer);
};

/* Borrowed. */
struct layer_record {
	const char *tenant, *key, *lock;
	const struct manager *manager;
	char *const *packages;
	struct image *image;
	uint64_t created_ms, used_ms; /* 0: now */
};

void layers_free(struct layers *all);
struct layers *layers_new(uint64_t max_bytes, uint64_t max_tenant_bytes) attr_owned(layers_free);
void layers_set_events(struct layers *all, const struct layers_events *events);
/** layers_find - by key; counts as use. NULL: not there. */
struct layer *layers_find(struct layers *all, const char *tenant, const char *key);
struct layer *layers_by_id(const struct layers *all, const char *tenant, const char *id);
/** layers_at - @tenant's, least recently used first; NULL past the end. */
struct layer *layers_at(const struct layers *all, const char *tenant, size_t index);
/**
 * layers_add - each has a tree of its own, whatever its lock says. @image is referenced.
 * ERR_QUOTA if it does not fit beside layers in use. @err NULL: from the store, always fits.
 */
struct layer *layers_add(struct layers *all, const struct layer_record *record, struct error *err);
/** layers_remove - ERR_CONFLICT while a template or a box uses it. */
int layers_remove(struct layers *all, struct layer *layer, struct error *err) attr_must_check;
size_t layers_count(const struct layers *all);
/** layers_bytes - @tenant NULL: of all. A tree that is shared counts once. */
uint64_t layers_bytes(const struct layers *all, const char *tenant);
/** layers_measure - a metrics source; @ctx: the layers. */
void layers_measure(void *ctx, struct metrics *m);
/** layer_users - references besides the cache's. */
size_t layer_users(const struct layers *all, const struct layer *layer);
