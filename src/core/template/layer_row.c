/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/layer_row.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "core/language/manager.h"
#include "core/store/store_internal.h"
#include "core/template/images.h"
#include "core/template/layers.h"
#include "json/json_dump.h"

#define LOAD_MAX_BYTES (256u << 20)

static void on_written(void *ctx attr_unused, const struct error *err)
{
	/* A layer that is not in the store is swept at the next start, and built again. */
	if (err && err->sys != ECANCELED)
		log_warn("write a layer of packages: %s, ignoring", err->msg);
}

static void write_row(struct store *store, const struct db_statement *step)
{
	struct error err = {0};

	if (store_write(store, step, 1, on_written, NULL, &err) < 0)
		on_written(NULL, &err);
}

static char *write_list(char *const *list)
{
	json_auto_t *array = json_array();

	for (; *list; list++)
		(void)json_array_append_new(array, json_string(*list));
	return json_dump_text(array, JSON_COMPACT);
}

void layer_row_put(void *ctx, const struct layer *layer)
{
	cleanup_free char *packages = write_list(layer->packages);
	const struct db_statement put =
		DB_SQL("INSERT OR REPLACE INTO package_layers (tenant, key, manager, root, bytes, "
	               "packages,"
	               " lock, created_ms, used_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
	               DB_TEXT(layer->tenant), DB_TEXT(layer->key), DB_TEXT(layer->manager->name),
	               DB_TEXT(layer->image->name), DB_INT(layer->image->bytes), DB_TEXT(packages),
	               DB_TEXT(layer->lock), DB_INT(layer->created_ms), DB_INT(layer->used_ms));

	write_row(ctx, &put);
}

void layer_row_delete(void *ctx, const struct layer *layer)
{
	const struct db_statement gone =
		DB_SQL("DELETE FROM package_layers WHERE tenant = ?1 AND key = ?2",
	               DB_TEXT(layer->tenant), DB_TEXT(layer->key));

	write_row(ctx, &gone);
}

void layer_row_used(void *ctx, const struct layer *layer)
{
	const struct db_statement used =
		DB_SQL("UPDATE package_layers SET used_ms = ?3 WHERE tenant = ?1 AND key = ?2",
	               DB_TEXT(layer->tenant), DB_TEXT(layer->key), DB_INT(layer->used_ms));

	write_row(ctx, &used);
}

static char **read_list(const char *text)
{
	json_auto_t *array = text ? json_loads(text, 0, NULL) : NULL;
	char **list = xcalloc(json_array_size(array) + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *item = json_string_value(json_array_get(array, i));

		if (item)
			list[n++] = xstrdup(item);
	}
	return list;
}

static void load_row(struct layers *all, struct images *images, const struct db_rows *rows,
                     size_t row)
{
	const struct image_record root = {
		.tenant = db_rows_text(rows, row, 0),
		.name = db_rows_text(rows, row, 3),
		.bytes = (uint64_t)db_rows_int(rows, row, 4),
	};
	cleanup_str_list char **packages = read_list(db_rows_text(rows, row, 5));
	struct layer_record record = {
		.tenant = root.tenant,
		.key = db_rows_text(rows, row, 1),
		.manager = manager_find(db_rows_text(rows, row, 2)),
		.packages = packages,
		.lock = db_rows_text(rows, row, 6),
		.created_ms = (uint64_t)db_rows_int(rows, row, 7),
		.used_ms = (uint64_t)db_rows_int(rows, row, 8),
	};
	attr_cleanup(image_unrefp) struct image *image = NULL;

	if (!record.manager || strlen(record.key) != WANTED_KEY_LEN - 1 ||
	    !str_has_prefix(root.name, LAYER_ROOT_PREFIX) || strlen(root.name) >= BOX_ROOT_LEN)
		return; /* of another version: swept */
	record.image = image = images_hold(images, &root, NULL);
	(void)layers_add(all, &record, NULL);
}

int layer_row_keep(struct store *store, struct layers *all, struct images *images,
                   struct error *err)
{
	const struct db_statement query =
		DB_SQL("SELECT tenant, key, manager, root, bytes, packages, lock, created_ms,"
	               " used_ms FROM package_layers ORDER BY used_ms + ?1",
	               DB_INT(0));
	cleanup_db_rows struct db_rows *rows = NULL;

	if (db_query_now(store_db(store), &query, LOAD_MAX_BYTES, &rows, err) < 0)
		return error_wrap(err, "layers of packages");
	for (size_t row = 0; row < db_rows_count(rows); row++)
		load_row(all, images, rows, row);
	return 0;
}
