/* SPDX-License-Identifier: Apache-2.0 */
#include "core/identity/identity_row.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "core/identity/identity_internal.h"
#include "core/store/store.h"
#include "db/db.h"

#define LOAD_MAX_BYTES (64u << 20)
#define LOOK_MAX_BYTES 4096
#define DELETE_ROWS    "64" /* of each kind, with its tenant */

/* NULL for never. */
static struct db_value time_value(uint64_t ms)
{
	return ms ? DB_INT(ms) : DB_NULL;
}

static struct db_value quota_value(uint64_t value)
{
	return value == QUOTA_UNSET ? DB_NULL : DB_INT(value);
}

static int write_step(struct store *store, const struct db_statement *step,
                      struct identity_row_done done, struct error *err)
{
	if (!store)
		return 0;
	return db_write(store_db(store), step, 1, done.fn, done.ctx, err) ? 0 : -1;
}

int identity_row_add_key(struct store *store, const struct identity_key *key,
                         struct identity_row_done done, struct error *err)
{
	char scopes[SCOPES_TEXT_LEN];
	struct db_statement step;

	scopes_format(key->principal.scopes, scopes);
	step = DB_SQL(
		"INSERT INTO api_keys (id, tenant, name, hash, scopes, created_ms, expires_ms)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
		DB_TEXT(key->id), DB_TEXT(key->tenant), DB_TEXT(key->name),
		DB_BYTES(key->hash, sizeof(key->hash)), DB_TEXT(scopes), DB_INT(key->created_ms),
		time_value(key->expires_ms));
	return done.fn ? write_step(store, &step, done, err)
	               : db_exec_now(store_db(store), &step, 1, err);
}

int identity_row_revoke_key(struct store *store, const struct identity_key *key,
                            struct identity_row_done done, struct error *err)
{
	const struct db_statement step = DB_SQL("UPDATE api_keys SET revoked_ms = ?2 WHERE id = ?1",
	                                        DB_TEXT(key->id), time_value(key->revoked_ms));

	return write_step(store, &step, done, err);
}

void identity_row_used(struct store *store, const char *key_id, uint64_t now_ms)
{
	const struct db_statement step =
		DB_SQL("UPDATE api_keys SET last_used_ms = ?2 WHERE id = ?1", DB_TEXT(key_id),
	               DB_INT(now_ms));
	struct error err = {0};

	if (write_step(store, &step, (struct identity_row_done){0}, &err) < 0)
		log_debug("could not write when key %s was used: %s", key_id, err.msg);
}

int identity_row_put_tenant(struct store *store, const struct tenant *t,
                            struct identity_row_done done, struct error *err)
{
	const uint64_t *q = t->quotas;
	const struct db_statement step = DB_SQL(
		"INSERT INTO tenants (name, policy, created_ms, updated_ms, sessions, executions,"
		" queued, memory_bytes, requests_per_second, burst, templates, image_bytes, "
		"secrets)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
		" ON CONFLICT (name) DO UPDATE SET policy = ?2, updated_ms = ?4, sessions = ?5,"
		" executions = ?6, queued = ?7, memory_bytes = ?8, requests_per_second = ?9,"
		" burst = ?10, templates = ?11, image_bytes = ?12, secrets = ?13",
		DB_TEXT(t->name), DB_TEXT(t->policy), DB_INT(t->created_ms), DB_INT(t->updated_ms),
		quota_value(q[QUOTA_SESSIONS]), quota_value(q[QUOTA_EXECUTIONS]),
		quota_value(q[QUOTA_QUEUED]), quota_value(q[QUOTA_MEMORY]),
		quota_value(q[QUOTA_REQUESTS]), quota_value(q[QUOTA_BURST]),
		quota_value(q[QUOTA_TEMPLATES]), quota_value(q[QUOTA_IMAGES]),
		quota_value(q[QUOTA_SECRETS]));

	return write_step(store, &step, done, err);
}

static void on_deleted(void *ctx, const struct error *err)
{
	struct store_departure *d = ctx;

	if (!err && d->look)
		return; /* on_looked follows */
	if (d->look)
		db_forget(TAKE_PTR(d->look));
	d->fn(d->ctx, true, err);
}

/* On error assume that history is left: retention finds out. */
static void on_looked(void *ctx, const struct db_rows *rows, const struct error *err)
{
	struct store_departure *d = ctx;

	d->look = NULL;
	d->fn(d->ctx, err || db_rows_count(rows) == 0, NULL);
}

/* History must not reappear under a new tenant of the same name, but the caller does not wait for
 * its removal. If @look fails, retention finds the mark in departed and frees the name. */
int identity_row_delete_tenant(struct store *store, const struct tenant *t,
                               struct store_departure *departure, struct error *err)
{
	const struct db_value name[] = {DB_TEXT(t->name)};
	const struct db_statement steps[] = {
		{"DELETE FROM api_keys WHERE tenant = ?1", name, 1},
		{"DELETE FROM executions WHERE no IN (SELECT no FROM executions WHERE tenant = ?1"
	         " LIMIT " DELETE_ROWS ")",
	         name, 1},
		{"DELETE FROM sessions WHERE no IN (SELECT no FROM sessions WHERE tenant = ?1"
	         " LIMIT " DELETE_ROWS ")",
	         name, 1},
		{"INSERT OR IGNORE INTO departed (name) VALUES (?1)", name, 1},
		{"DELETE FROM tenants WHERE name = ?1", name, 1},
	};
	const struct db_statement look = {
		"DELETE FROM departed WHERE name = ?1 AND NOT EXISTS (SELECT 1 FROM executions"
		" WHERE tenant = ?1) AND NOT EXISTS (SELECT 1 FROM sessions WHERE tenant = ?1)"
		" RETURNING name",
		name, 1};
	struct error busy = {0};

	departure->look = NULL;
	if (!store)
		return 0;
	if (!db_write(store_db(store), steps, ARRAY_SIZE(steps), on_deleted, departure, err))
		return -1;
	departure->look =
		db_change(store_db(store), &look, LOOK_MAX_BYTES, on_looked, departure, &busy);
	return 0;
}

enum {
	TENANT_NAME,
	TENANT_POLICY,
	TENANT_CREATED,
	TENANT_UPDATED,
	TENANT_QUOTAS,
};

static int load_tenant(struct identity *identity, const struct db_rows *rows, size_t row,
                       struct error *err)
{
	struct tenants *tenants = identity->config.tenants;
	struct tenant_settings settings = {
		.name = db_rows_text(rows, row, TENANT_NAME),
		.policy = db_rows_text(rows, row, TENANT_POLICY),
	};
	struct tenant *t = tenants_find(tenants, settings.name);

	for (int i = 0; i < QUOTA_COUNT; i++) {
		int64_t value = db_rows_int(rows, row, TENANT_QUOTAS + (size_t)i);

		settings.quotas[i] = value < 0 ? QUOTA_UNSET : (uint64_t)value;
	}
	if (t)
		tenants_set(tenants, t, &settings, NULL);
	else
		t = tenants_add(tenants, &settings, err);
	if (!t)
		return error_wrap(err, "tenant %.64s in the store", settings.name);
	t->created_ms = (uint64_t)db_rows_int(rows, row, TENANT_CREATED);
	t->updated_ms = (uint64_t)db_rows_int(rows, row, TENANT_UPDATED);
	return 0;
}

enum {
	KEY_ID,
	KEY_TENANT,
	KEY_NAME,
	KEY_HASH,
	KEY_SCOPES,
	KEY_CREATED,
	KEY_EXPIRES,
	KEY_REVOKED,
	KEY_USED,
};

static int load_key(struct identity *identity, const struct db_rows *rows, size_t row,
                    struct error *err)
{
	struct identity_key key = {
		.created_ms = (uint64_t)db_rows_int(rows, row, KEY_CREATED),
		.expires_ms = (uint64_t)db_rows_int(rows, row, KEY_EXPIRES),
		.revoked_ms = (uint64_t)db_rows_int(rows, row, KEY_REVOKED),
		.last_used_ms = (uint64_t)db_rows_int(rows, row, KEY_USED),
	};
	const char *id = db_rows_text(rows, row, KEY_ID);
	size_t len = 0;
	const char *hash = db_rows_bytes(rows, row, KEY_HASH, &len);

	if (!hash || len != sizeof(key.hash) || str_copy(key.id, sizeof(key.id), id) < 0 ||
	    str_copy(key.tenant, sizeof(key.tenant), db_rows_text(rows, row, KEY_TENANT)) < 0 ||
	    str_copy(key.name, sizeof(key.name), db_rows_text(rows, row, KEY_NAME)) < 0)
		return error_set(err, ERR_CONFIG, 0, "key %.20s in the store is damaged", id);
	memcpy(key.hash, hash, len);
	if (scopes_parse(db_rows_text(rows, row, KEY_SCOPES), &key.principal.scopes, err) < 0)
		return error_wrap(err, "key %s in the store", key.id);
	return identity_add_key(identity, &key)
	               ? 0
	               : error_set(err, ERR_CONFIG, 0, "key %s is in the store twice", key.id);
}

static int load_departed(struct identity *identity, const struct db_rows *rows, size_t row,
                         struct error *err attr_unused)
{
	identity_note_departed(identity, db_rows_text(rows, row, 0));
	return 0;
}

int identity_row_load(struct store *store, struct identity *identity, struct error *err)
{
	const struct db_statement tenants =
		/* -1: unset */
		DB_SQL("SELECT name, policy, created_ms, updated_ms, ifnull(sessions, ?1),"
	               " ifnull(executions, ?1), ifnull(queued, ?1), ifnull(memory_bytes, ?1),"
	               " ifnull(requests_per_second, ?1), ifnull(burst, ?1), ifnull(templates, ?1),"
	               " ifnull(image_bytes, ?1), ifnull(secrets, ?1) FROM tenants"
	               " ORDER BY created_ms, name",
	               DB_INT(-1));
	const struct db_statement departed = DB_SQL("SELECT name FROM departed");
	const struct db_statement keys =
		DB_SQL("SELECT id, tenant, name, hash, scopes, created_ms, expires_ms, revoked_ms,"
	               " last_used_ms FROM api_keys WHERE ?1 ORDER BY no",
	               DB_INT(1));
	const struct {
		const char *what;
		const struct db_statement *query;
		int (*load)(struct identity *identity, const struct db_rows *rows, size_t row,
		            struct error *err);
	} tables[] = {
		{"tenants", &tenants, load_tenant},
		{"deleted tenants", &departed, load_departed},
		{"keys", &keys, load_key},
	};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		cleanup_db_rows struct db_rows *rows = NULL;

		if (db_query_now(store_db(store), tables[i].query, LOAD_MAX_BYTES, &rows, err) < 0)
			return error_wrap(err, "read %s", tables[i].what);
		for (size_t row = 0; row < db_rows_count(rows); row++)
			if (tables[i].load(identity, rows, row, err) < 0)
				return -1;
	}
	return 0;
}

int identity_row_any_key(const char *state_dir, bool *ret_any, struct error *err)
{
	const struct db_statement keys =
		DB_SQL("SELECT 1 FROM api_keys WHERE ?1 LIMIT 1", DB_INT(1));
	cleanup_free char *path = xasprintf("%s/" STORE_FILE, state_dir);
	cleanup_db_rows struct db_rows *rows = NULL;

	*ret_any = false;
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	if (db_readonly_query(path, &keys, LOAD_MAX_BYTES, &rows, err) < 0)
		return error_wrap(err, "look for keys");
	*ret_any = db_rows_count(rows) > 0;
	return 0;
}
