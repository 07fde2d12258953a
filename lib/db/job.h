/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a job of the database thread, and how a batch runs. */

#include "base/list.h"
#include "db/db.h"

struct conn;

struct db_job {
	struct list node;
	struct db_statement *steps; /* owned: one block with all values and their bytes */
	size_t count;
	size_t bytes;
	bool is_read;
	bool has_rows;
	size_t max_bytes; /* of rows */
	db_done_fn *on_done;
	db_rows_fn *on_rows;
	void *ctx;
	struct db_rows *rows; /* owned */
	struct error err;     /* written by the thread while it owns the job */
};

/** job_new - copies everything. Return: NULL when memory is out: callers decide the size. */
struct db_job *job_new(const struct db_statement *steps, size_t count);
void job_free(struct db_job *job);
void batch_run(struct conn *conn, struct list *batch);
