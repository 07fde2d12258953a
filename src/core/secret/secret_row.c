/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "core/secret/secret_internal.h"
#include "core/store/store_internal.h"

#define LOAD_MAX_BYTES (256u << 20)

static char *join_lines(char *const *lines)
{
	struct buf text = BUF_INIT(64u << 10); /* SECRET_HOSTS_MAX names */
	size_t len;

	for (; *lines; lines++)
		if (buf_addf(&text, "%s\n", *lines) < 0)
			abort();
	return buf_take(&text, &len);
}

static char **split_lines(const char *text)
{
	char **lines = xcalloc(SECRET_HOSTS_MAX + 1, sizeof(*lines));

	for (size_t i = 0; text && *text && i < SECRET_HOSTS_MAX; i++) {
		size_t len = strcspn(text, "\n");

		lines[i] = xstrndup(text, len);
		text += len + (text[len] == '\n');
	}
	return lines;
}

int secret_row_put(struct store *store, const struct secret *secret, store_done_fn *fn, void *ctx,
                   struct error *err)
{
	cleanup_free char *hosts = join_lines(secret->hosts);
	const struct db_statement put = DB_SQL(
		"INSERT INTO secrets (tenant, name, created_ms, updated_ms, mode, hosts, header,"
		" format, env, placeholder, key, sealed)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
		" ON CONFLICT (tenant, name) DO UPDATE SET updated_ms = ?4, mode = ?5, hosts = ?6,"
		" header = ?7, format = ?8, env = ?9, placeholder = ?10, key = ?11, sealed = ?12",
		DB_TEXT(secret->tenant), DB_TEXT(secret->name), DB_INT(secret->created_ms),
		DB_INT(secret->updated_ms), DB_TEXT(secret_mode_name(secret->mode)), DB_TEXT(hosts),
		DB_TEXT(secret->header), DB_TEXT(secret->format), DB_TEXT(secret->env),
		DB_TEXT(secret->placeholder), DB_TEXT(secret->key),
		DB_BYTES(secret->sealed.data, secret->sealed.len));

	return store_write(store, &put, 1, fn, ctx, err);
}

int secret_row_seal_now(struct store *store, const struct secret *secret, struct error *err)
{
	const struct db_statement put =
		DB_SQL("UPDATE secrets SET key = ?3, sealed = ?4 WHERE tenant = ?1 AND name = ?2",
	               DB_TEXT(secret->tenant), DB_TEXT(secret->name), DB_TEXT(secret->key),
	               DB_BYTES(secret->sealed.data, secret->sealed.len));

	return db_exec_now(store_db(store), &put, 1, err);
}

int secret_row_delete(struct store *store, const struct secret *secret, store_done_fn *fn,
                      void *ctx, struct error *err)
{
	const struct db_statement gone =
		DB_SQL("DELETE FROM secrets WHERE tenant = ?1 AND name = ?2",
	               DB_TEXT(secret->tenant), DB_TEXT(secret->name));

	return store_write(store, &gone, 1, fn, ctx, err);
}

static char *copy_text(const struct db_rows *rows, size_t row, size_t column)
{
	const char *text = db_rows_text(rows, row, column);

	return xstrdup(text ? text : "");
}

static int load_row(struct secrets *s, const struct db_rows *rows, size_t row, struct error *err)
{
	struct secret *secret = NEW(struct secret);
	const char *mode = db_rows_text(rows, row, 4), *env = db_rows_text(rows, row, 8);
	size_t len = 0;
	const char *sealed = db_rows_bytes(rows, row, 11, &len);

	list_init(&secret->node);
	buf_init(&secret->sealed, SECRET_VALUE_MAX + KEYRING_MORE);
	secret->created_ms = (uint64_t)db_rows_int(rows, row, 2);
	secret->updated_ms = (uint64_t)db_rows_int(rows, row, 3);
	secret->mode = mode && str_equal(mode, secret_mode_name(SECRET_PLACEHOLDER))
	                       ? SECRET_PLACEHOLDER
	                       : SECRET_HEADER;
	secret->hosts = split_lines(db_rows_text(rows, row, 5));
	secret->header = copy_text(rows, row, 6);
	secret->format = copy_text(rows, row, 7);
	secret->env = env ? xstrdup(env) : NULL;
	secret->placeholder = copy_text(rows, row, 9);
	if (str_copy(secret->tenant, sizeof(secret->tenant), db_rows_text(rows, row, 0)) == 0 &&
	    str_copy(secret->name, sizeof(secret->name), db_rows_text(rows, row, 1)) == 0 &&
	    str_copy(secret->key, sizeof(secret->key), db_rows_text(rows, row, 10)) == 0 &&
	    buf_add(&secret->sealed, sealed, len) == 0 && secrets_add(s, secret) == 0)
		return 0;
	secret_free(secret);
	return error_set(err, ERR_CONFIG, 0, "secret %zu in the store is damaged", row);
}

int secret_row_load(struct secrets *s, struct error *err)
{
	const struct db_statement query =
		DB_SQL("SELECT tenant, name, created_ms, updated_ms, mode, hosts, header, format,"
	               " env, placeholder, key, sealed FROM secrets WHERE ?1"
	               " ORDER BY created_ms, tenant, name",
	               DB_INT(1));
	cleanup_db_rows struct db_rows *rows = NULL;

	if (db_query_now(store_db(s->config.store), &query, LOAD_MAX_BYTES, &rows, err) < 0)
		return error_wrap(err, "read secrets");
	for (size_t row = 0; row < db_rows_count(rows); row++)
		if (load_row(s, rows, row, err) < 0)
			return -1;
	return 0;
}
