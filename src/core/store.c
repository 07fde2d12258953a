/* SPDX-License-Identifier: Apache-2.0 */
#include "core/store.h"

#include "base/alloc.h"
#include "core/embedded.h"
#include "db/db.h"

#define APPLICATION_ID  0x4d626f78u /* "Mbox" */
#define QUEUE_MAX_BYTES (64u << 20)
#define MIGRATIONS_MAX  64

struct store {
	struct db *db;
};

/* The file's name begins with its number; db_open checks that none is missing. */
static size_t list_migrations(struct db_migration ret_migrations[MIGRATIONS_MAX])
{
	size_t count = 0;

	for (const struct embedded_file *f = embedded_migrations; f->name; f++, count++) {
		assert(count < MIGRATIONS_MAX);
		ret_migrations[count] = (struct db_migration){
			.version = (unsigned)count + 1, .name = f->name, .sql = f->data};
	}
	return count;
}

int store_open(const char *dir, struct store **ret_store, struct error *err)
{
	struct db_migration migrations[MIGRATIONS_MAX];
	cleanup_free char *path = xasprintf("%s/" STORE_FILE, dir);
	const struct db_config config = {
		.path = path,
		.application_id = APPLICATION_ID,
		.migrations = migrations,
		.migrations_count = list_migrations(migrations),
		.queue_max_bytes = QUEUE_MAX_BYTES,
	};
	struct db *db = NULL;

	if (db_open(&config, &db, err) < 0)
		return -1;
	*ret_store = NEW(struct store);
	(*ret_store)->db = db;
	return 0;
}

int store_start(struct store *s, struct loop *loop, int (*on_thread)(struct error *err),
                struct error *err)
{
	return db_start(s->db, loop, on_thread, err);
}

struct db *store_db(struct store *s)
{
	return s->db;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	db_close(s->db);
	free(s);
}
