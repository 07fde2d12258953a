/* SPDX-License-Identifier: Apache-2.0 */
#include "db/internal.h"

#include "base/alloc.h"
#include <assert.h>
#include <errno.h>

struct db_rows *rows_new(size_t columns, size_t max_bytes)
{
	struct db_rows *rows = NEW(struct db_rows);

	rows->columns = columns;
	buf_init(&rows->arena, max_bytes);
	return rows;
}

void db_rows_free(struct db_rows *rows)
{
	if (!rows)
		return;
	buf_done(&rows->arena);
	free(rows->cells);
	free(rows);
}

static int add_cell(struct db_rows *rows, struct db_cell *cell, sqlite3_stmt *stmt, int column)
{
	static const enum db_type types[] = {
		[SQLITE_INTEGER] = DB_TYPE_INT, [SQLITE_FLOAT] = DB_TYPE_INT,
		[SQLITE_TEXT] = DB_TYPE_TEXT,   [SQLITE_BLOB] = DB_TYPE_BYTES,
		[SQLITE_NULL] = DB_TYPE_NULL,
	};
	int r = 0;

	*cell = (struct db_cell){.type = types[sqlite3_column_type(stmt, column)],
	                         .at = rows->arena.len};
	if (cell->type == DB_TYPE_INT)
		cell->number = sqlite3_column_int64(stmt, column);
	if (cell->type == DB_TYPE_TEXT || cell->type == DB_TYPE_BYTES) {
		const void *data = sqlite3_column_blob(stmt, column);

		cell->len = (size_t)sqlite3_column_bytes(stmt, column);
		if (cell->len > 0)
			r = buf_add(&rows->arena, data, cell->len);
		if (r == 0)
			r = buf_add(&rows->arena, "", 1); /* the NUL that follows */
	}
	return r;
}

int rows_add(struct db_rows *rows, sqlite3_stmt *stmt)
{
	size_t used = rows->count * rows->columns;
	int r = 0;

	/* Rows without text use memory. */
	if ((used + rows->columns) * sizeof(*rows->cells) > rows->arena.max)
		return -ENOBUFS;
	if (rows->count == rows->cap) {
		rows->cap = rows->cap ? rows->cap * 2 : 4;
		rows->cells = xrealloc_array(rows->cells, rows->cap * rows->columns,
		                             sizeof(*rows->cells));
	}
	for (size_t i = 0; i < rows->columns && r == 0; i++)
		r = add_cell(rows, &rows->cells[used + i], stmt, (int)i);
	if (r == 0)
		rows->count++;
	return r;
}

static const struct db_cell *cell_at(const struct db_rows *rows, size_t row, size_t column)
{
	assert(row < rows->count && column < rows->columns);
	return &rows->cells[row * rows->columns + column];
}

size_t db_rows_count(const struct db_rows *rows)
{
	return rows->count;
}

int64_t db_rows_int(const struct db_rows *rows, size_t row, size_t column)
{
	return cell_at(rows, row, column)->number;
}

const char *db_rows_text(const struct db_rows *rows, size_t row, size_t column)
{
	size_t len;

	return db_rows_bytes(rows, row, column, &len);
}

const char *db_rows_bytes(const struct db_rows *rows, size_t row, size_t column, size_t *ret_len)
{
	const struct db_cell *cell = cell_at(rows, row, column);
	bool there = cell->type == DB_TYPE_TEXT || cell->type == DB_TYPE_BYTES;

	*ret_len = cell->len;
	return there ? rows->arena.data + cell->at : NULL;
}
