/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/template_row.h"

#include <jansson.h>

#include "base/alloc.h"
#include "base/log.h"
#include "core/store/store_internal.h"
#include "core/template/templates.h"
#include "json/json_dump.h"

#define LOAD_MAX_BYTES (64u << 20)

/* NULL: not set. */
static json_t *write_field(const struct template_spec *spec, const struct template_field *f)
{
	const void *place = template_field_of(spec, f);
	const uint64_t *number = place;
	char *const *text = place;
	char **const *list = place;
	json_t *array;

	if (f->kind == TEMPLATE_NUMBER)
		return *number ? json_integer((json_int_t)*number) : NULL;
	if (f->kind == TEMPLATE_TEXT)
		return *text ? json_string(*text) : NULL;
	array = *list ? json_array() : NULL;
	for (size_t i = 0; array && (*list)[i]; i++)
		(void)json_array_append_new(array, json_string((*list)[i]));
	return array;
}

char *template_row_write_spec(const struct template_spec *spec)
{
	json_auto_t *j = json_object();
	char *text;

	for (size_t i = 1; i < TEMPLATE_FIELDS; i++) {
		json_t *value = write_field(spec, &template_fields[i]);

		if (value)
			(void)json_object_set_new(j, template_fields[i].name, value);
	}
	text = json_dump_text(j, JSON_COMPACT);
	assert(text);
	return text;
}

static char **read_list(const json_t *value)
{
	size_t count = json_array_size(value);
	char **list = xcalloc(count + 1, sizeof(*list));

	for (size_t i = 0; i < count; i++) {
		const char *text = json_string_value(json_array_get(value, i));

		list[i] = xstrdup(text ? text : "");
	}
	return list;
}

void template_row_read_spec(const char *text, struct template_spec *ret_spec)
{
	json_auto_t *j = text ? json_loads(text, 0, NULL) : NULL;

	for (size_t i = 1; i < TEMPLATE_FIELDS; i++) {
		const struct template_field *f = &template_fields[i];
		const json_t *value = json_object_get(j, f->name);
		const char *word = json_string_value(value);
		void *place = template_field_of(ret_spec, f);

		if (f->kind == TEMPLATE_NUMBER)
			*(uint64_t *)place = (uint64_t)json_integer_value(value);
		else if (f->kind == TEMPLATE_LIST && value)
			*(char ***)place = read_list(value);
		else if (word)
			*(char **)place = xstrdup(word);
	}
}

static int on_put(void *ctx, const struct template *t, struct templates_done done,
                  struct error *err)
{
	cleanup_free char *spec = template_row_write_spec(&t->spec);
	bool image = t->kind == TEMPLATE_ON_IMAGE;
	const struct db_statement put = DB_SQL(
		"INSERT INTO templates (tenant, id, created_ms, updated_ms, root, config, spec)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
		" ON CONFLICT (tenant, id) DO UPDATE SET updated_ms = ?4, root = ?5,"
		" config = ?6, spec = ?7",
		DB_TEXT(t->tenant), DB_TEXT(t->spec.id), DB_INT(t->created_ms),
		DB_INT(t->updated_ms), DB_TEXT(image ? t->root : NULL), DB_TEXT(t->config),
		DB_TEXT(spec));

	return store_write(ctx, &put, 1, done.fn, done.ctx, err);
}

static int on_delete(void *ctx, const struct template *t, struct templates_done done,
                     struct error *err)
{
	const struct db_statement gone =
		DB_SQL("DELETE FROM templates WHERE tenant = ?1 AND id = ?2", DB_TEXT(t->tenant),
	               DB_TEXT(t->spec.id));

	return store_write(ctx, &gone, 1, done.fn, done.ctx, err);
}

static void load_row(struct templates *all, const struct db_rows *rows, size_t row)
{
	struct template_record record = {
		.tenant = db_rows_text(rows, row, 0),
		.created_ms = (uint64_t)db_rows_int(rows, row, 2),
		.updated_ms = (uint64_t)db_rows_int(rows, row, 3),
		.root = db_rows_text(rows, row, 4),
		.config = db_rows_text(rows, row, 5),
	};
	struct template *t = NULL;
	struct error err = {0};

	template_row_read_spec(db_rows_text(rows, row, 6), &record.spec);
	record.spec.id = xstrdup(db_rows_text(rows, row, 1));
	if (templates_adopt(all, &record, NULL, &t, &err) < 0)
		log_warn("template %s: %s, ignoring", record.spec.id, err.msg);
	template_spec_done(&record.spec);
}

int template_row_keep(struct store *store, struct templates *all, struct error *err)
{
	/* Images first: other templates may use their roots. */
	const struct db_statement query = DB_SQL(
		"SELECT tenant, id, created_ms, updated_ms, root, config, spec FROM templates"
		" ORDER BY root IS NULL, ?1 + created_ms, id",
		DB_INT(0));
	const struct templates_events events = {store, on_put, on_delete};
	cleanup_db_rows struct db_rows *rows = NULL;

	if (db_query_now(store_db(store), &query, LOAD_MAX_BYTES, &rows, err) < 0)
		return error_wrap(err, "templates");
	for (size_t row = 0; row < db_rows_count(rows); row++)
		load_row(all, rows, row);
	templates_set_events(all, &events);
	return 0;
}
