/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/artifact_row.h"

#include <jansson.h>
#include <sodium.h>
#include <string.h>

#include "base/alloc.h"

#define HEX_LEN (2 * BOX_SHA256_LEN)

struct store_file_row {
	char hex[HEX_LEN + 1];
	struct db_value values[6];
};

/* May be written more than once, with the same content each time. */
static struct db_statement insert(const struct artifact *file, const char *execution_id,
                                  size_t place, struct store_file_row *row)
{
	(void)sodium_bin2hex(row->hex, sizeof(row->hex), file->sha256, sizeof(file->sha256));
	row->values[0] = DB_TEXT(execution_id);
	row->values[1] = DB_INT(place);
	row->values[2] = DB_TEXT(file->path);
	row->values[3] = DB_INT(file->size);
	row->values[4] = DB_INT(file->changed_ms);
	row->values[5] = file->hashed ? DB_TEXT(row->hex) : DB_NULL;
	return (struct db_statement){
		"INSERT OR REPLACE INTO files (execution, place, path, size, changed_ms, sha256)"
		" SELECT no, ?2, ?3, ?4, ?5, ?6 FROM executions WHERE id = ?1",
		row->values, ARRAY_SIZE(row->values)};
}

void store_file_steps(const struct artifacts *files, const char *execution_id,
                      struct store_file_steps *ret_steps)
{
	ret_steps->count = files->count + 1;
	ret_steps->steps = xcalloc(ret_steps->count, sizeof(*ret_steps->steps));
	ret_steps->rows = files->count ? xcalloc(files->count, sizeof(*ret_steps->rows)) : NULL;
	for (size_t i = 0; i < files->count; i++)
		ret_steps->steps[i + 1] =
			insert(&files->list[i], execution_id, i, &ret_steps->rows[i]);
}

void store_file_steps_done(struct store_file_steps *steps)
{
	free(steps->steps);
	free(steps->rows);
}

static bool read_digest(const char *hex, uint8_t ret_digest[BOX_SHA256_LEN])
{
	size_t len = 0;

	return hex && strlen(hex) == HEX_LEN &&
	       sodium_hex2bin(ret_digest, BOX_SHA256_LEN, hex, HEX_LEN, NULL, &len, NULL) == 0 &&
	       len == BOX_SHA256_LEN;
}

void store_file_read(const char *column, struct artifacts *ret_files)
{
	json_t *list = column ? json_loads(column, 0, NULL) : NULL;
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		const char *path = json_string_value(json_array_get(item, 0));
		struct artifact *file = path ? artifacts_add(ret_files, path) : NULL;

		if (!file)
			continue;
		file->size = (uint64_t)json_integer_value(json_array_get(item, 1));
		file->changed_ms = (uint64_t)json_integer_value(json_array_get(item, 2));
		file->hashed =
			read_digest(json_string_value(json_array_get(item, 3)), file->sha256);
	}
	json_decref(list);
}
