/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: roots of imported images, as they lie on the disk. Templates stand on them, and so do boxes
 * whose template has another image by now or is deleted: each of these holds a reference. With the
 * last one the root is nobody's, and whoever removes such is told. Its bytes are counted for the
 * tenant that imported it for as long as it is there.
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

/* What names of their directories begin with. */
#define IMAGE_ROOT_PREFIX "img-"
struct tenants;

struct image {
	unsigned refs;
	char name[BOX_ROOT_LEN]; /* of its directory */
	uint64_t bytes;          /* on the disk */
	struct tenant *tenant;   /* held; NULL: has no quotas */
	struct images *owner;    /* NULL: the table is gone; what is held is only counted down */
	struct list node;        /* of all */
};

/* What is to be entered. Borrowed. */
struct image_record {
	const char *tenant, *name;
	uint64_t bytes;
};

/** images_free - references that boxes still have stay good, and mean nothing more. */
void images_free(struct images *all);
/** images_new - @tenants NULL: nobody has quotas. */
struct images *images_new(const struct tenants *tenants) attr_owned(images_free);
/** images_set_unused - @fn is told of a root that nobody has any more; NULL: nobody removes them.
 */
void images_set_unused(struct images *all, void (*fn)(void *ctx, const char *name), void *ctx);
/** images_hold - the image of this name, entered if it is not there. Return: a reference, or NULL
 * with ERR_QUOTA. @err NULL: whatever the quotas say, for one that was there before a restart. */
struct image *images_hold(struct images *all, const struct image_record *record, struct error *err);
/** images_find - borrowed; NULL: no template and no box is on it. */
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

/** image_config_bytes - what an import said of the size of its root: @config is its JSON. */
uint64_t image_config_bytes(const char *config);
