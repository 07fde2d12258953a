/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: imported roots on disk. Templates refer to them, and boxes whose template was since changed
 * or deleted. Dropping the last reference calls back to remove the root. Its bytes count for the
 * tenant that imported it.
 */

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"
#include "core/tenant/principal.h"
#include "driver/box_spec.h"
#include <stddef.h>
#include <stdint.h>

struct images;
struct tenant;

/* Of directory names. */
#define IMAGE_ROOT_PREFIX "img-"
#define LAYER_ROOT_PREFIX "pkg-" /* of packages */
struct tenants;

struct image {
	unsigned refs;
	char name[BOX_ROOT_LEN]; /* directory */
	uint64_t bytes;          /* on disk */
	struct tenant *tenant;   /* held; NULL: no quotas */
	struct images *owner;    /* NULL: the table is gone */
	struct list node;        /* of all */
};

/* Borrowed. */
struct image_record {
	const char *tenant, *name;
	uint64_t bytes;
};

/** images_free - references of boxes stay valid without effect. */
void images_free(struct images *all);
/** images_new - @tenants NULL: quotas off. */
struct images *images_new(const struct tenants *tenants) attr_owned(images_free);
/** images_set_unused - call @fn for a root without references; NULL: do not remove roots. */
void images_set_unused(struct images *all, void (*fn)(void *ctx, const char *name), void *ctx);
/**
 * images_hold - find or add. Return: a reference, or NULL with ERR_QUOTA. @err NULL: ignore quotas,
 * for an image from before a restart.
 */
struct image *images_hold(struct images *all, const struct image_record *record, struct error *err);
/** images_find - borrowed; NULL: unused. */
struct image *images_find(const struct images *all, const char *name);
size_t images_count(const struct images *all);
uint64_t images_bytes(const struct images *all);

struct image *image_ref(struct image *image); /* NULL stays NULL */
void image_unref(struct image *image);
static inline void image_unrefp(struct image **image)
{
	image_unref(*image);
}

/** image_config_bytes - size of the root in @config, the import's JSON. */
uint64_t image_config_bytes(const char *config);
