/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: roots of imported images on disk. A root is referenced by templates, and by boxes whose
 * template has since been changed or deleted. When the last reference goes the root is unused,
 * and a callback removes it. Its bytes count for the tenant that imported it for as long as it
 * exists.
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

/* Prefix of the names of their directories. */
#define IMAGE_ROOT_PREFIX "img-"
struct tenants;

struct image {
	unsigned refs;
	char name[BOX_ROOT_LEN]; /* of its directory */
	uint64_t bytes;          /* on disk */
	struct tenant *tenant;   /* held; NULL: no quotas */
	struct images *owner;    /* NULL: the table is gone; references are only counted down */
	struct list node;        /* of all */
};

/* A new entry. Borrowed. */
struct image_record {
	const char *tenant, *name;
	uint64_t bytes;
};

/** images_free - references of boxes stay valid but have no effect. */
void images_free(struct images *all);
/** images_new - @tenants NULL: quotas off. */
struct images *images_new(const struct tenants *tenants) attr_owned(images_free);
/** images_set_unused - @fn is called for a root without references; NULL: roots are not removed. */
void images_set_unused(struct images *all, void (*fn)(void *ctx, const char *name), void *ctx);
/**
 * images_hold - the image of this name, added if new. Return: a reference, or NULL with
 * ERR_QUOTA. @err NULL: ignore quotas, for an image from before a restart.
 */
struct image *images_hold(struct images *all, const struct image_record *record, struct error *err);
/** images_find - borrowed; NULL: no template or box uses it. */
struct image *images_find(const struct images *all, const char *name);
size_t images_count(const struct images *all);
/** images_bytes - of all of them. */
uint64_t images_bytes(const struct images *all);

struct image *image_ref(struct image *image); /* NULL stays NULL */
void image_unref(struct image *image);
static inline void image_unrefp(struct image **image)
{
	image_unref(*image);
}

/** image_config_bytes - the size of the root according to @config, the import's JSON. */
uint64_t image_config_bytes(const char *config);
