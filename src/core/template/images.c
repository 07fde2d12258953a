/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/images.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/str.h"
#include "core/tenant/tenant.h"

struct images {
	const struct tenants *tenants; /* NULL: quotas off */
	void (*on_unused)(void *ctx, const char *name);
	void *ctx;
	struct map *by_name;
	struct list all; /* struct image.node */
	uint64_t bytes;
};

struct images *images_new(const struct tenants *tenants)
{
	struct images *all = NEW(struct images);

	all->tenants = tenants;
	all->by_name = map_new();
	list_init(&all->all);
	return all;
}

/* Remove from the table and the tenant's account. */
static void unlink_image(struct image *image)
{
	struct images *all = image->owner;

	list_remove(&image->node);
	(void)map_remove(all->by_name, image->name);
	all->bytes -= image->bytes;
	tenant_drop_image(image->tenant, image->bytes);
	tenant_release(image->tenant);
	image->tenant = NULL;
	image->owner = NULL;
}

void images_free(struct images *all)
{
	struct image *image;

	if (!all)
		return;
	LIST_FOREACH (image, &all->all, struct image, node)
		unlink_image(image);
	map_free(all->by_name);
	free(all);
}

void images_set_unused(struct images *all, void (*fn)(void *ctx, const char *name), void *ctx)
{
	all->on_unused = fn;
	all->ctx = ctx;
}

struct image *images_find(const struct images *all, const char *name)
{
	return map_get(all->by_name, name);
}

size_t images_count(const struct images *all)
{
	return map_count(all->by_name);
}

uint64_t images_bytes(const struct images *all)
{
	return all->bytes;
}

struct image *images_hold(struct images *all, const struct image_record *record, struct error *err)
{
	struct image *image = images_find(all, record->name);
	struct tenant *tenant = all->tenants ? tenants_find(all->tenants, record->tenant) : NULL;

	if (image)
		return image_ref(image);
	if (tenant_take_image(tenant, record->bytes, err) < 0)
		return NULL;
	image = NEW(struct image);
	*image = (struct image){.refs = 1, .bytes = record->bytes, .tenant = tenant, .owner = all};
	/* Names come from imports.c, directly or from the store. */
	if (str_copy(image->name, sizeof(image->name), record->name) < 0 ||
	    map_put(all->by_name, image->name, image) < 0)
		abort();
	list_append(&all->all, &image->node);
	tenant_hold(tenant);
	all->bytes += image->bytes;
	return image;
}

struct image *image_ref(struct image *image)
{
	if (image)
		image->refs++;
	return image;
}

void image_unref(struct image *image)
{
	struct images *all;

	if (!image)
		return;
	assert(image->refs > 0);
	if (--image->refs > 0)
		return;
	all = image->owner;
	if (all)
		unlink_image(image);
	if (all && all->on_unused)
		all->on_unused(all->ctx, image->name);
	free(image);
}

uint64_t image_config_bytes(const char *config)
{
	json_auto_t *j = config ? json_loads(config, 0, NULL) : NULL;
	const json_t *bytes = json_object_get(j, "disk_bytes");
	json_int_t value;

	if (!bytes) /* not measured */
		bytes = json_object_get(j, "bytes");
	value = json_integer_value(bytes);
	return value > 0 ? (uint64_t)value : 0;
}
