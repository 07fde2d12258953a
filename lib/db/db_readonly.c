/* SPDX-License-Identifier: Apache-2.0 */
#include "db/internal.h"

#include "base/alloc.h"
#include "base/map.h"
#include <string.h>
#include <unistd.h>

/*
 * Theory of operation. Nothing of the other process's database changes. Without a log no process
 * has it open: open it as immutable, so that not even an index of the log is created. With a log,
 * share the index with the writer.
 */

#define BUSY_TIMEOUT_MS 5000
#define URI_MAX         (64u << 10)

/* "file:" and the path, with special characters as %xx. */
static int make_uri(const char *path, struct buf *b)
{
	cleanup_free char *log = xasprintf("%s-wal", path);
	int r = buf_add_str(b, "file:");

	for (; *path && r == 0; path++)
		r = strchr("?#%", *path) ? buf_addf(b, "%%%02x", (unsigned char)*path)
		                         : buf_add(b, path, 1);
	if (r == 0)
		r = buf_add_str(b, access(log, F_OK) == 0 ? "?mode=ro" : "?mode=ro&immutable=1");
	return r;
}

static int open_readonly(struct conn *c, const char *path, struct error *err)
{
	cleanup_buf struct buf uri = BUF_INIT(URI_MAX);
	int rc;

	if (make_uri(path, &uri) < 0)
		return error_set(err, ERR_INVALID, 0, "the path of the database is too long");
	rc = sqlite3_open_v2(uri.data, &c->sql,
	                     SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_db_config(c->sql, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(c->sql, BUSY_TIMEOUT_MS);
	if (rc != SQLITE_OK)
		return conn_error(c, rc, path, err);
	c->statements = map_new();
	return 0;
}

int db_readonly_query(const char *path, const struct db_statement *query, size_t max_bytes,
                      struct db_rows **ret_rows, struct error *err)
{
	struct conn c = {0};
	int r = open_readonly(&c, path, err);

	if (r == 0)
		r = conn_run(&c, query, max_bytes, ret_rows, err);
	conn_close(&c);
	return r;
}
