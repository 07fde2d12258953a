/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a job of the database's thread, and how a batch of them is run. Inside lib/db only. */

#include "base/list.h"
#include "db/db.h"

struct conn;

struct db_job {
	struct list node;           /* of the queue, the thread's batch, or what is done */
	struct db_statement *steps; /* owned: one block with all values and their bytes */
	size_t count;
	size_t bytes; /* what it counts for in the queue */
	bool is_read;
	bool has_rows;
	size_t max_bytes; /* of the rows */
	db_done_fn *on_done;
	db_rows_fn *on_rows;
	void *ctx;
	struct db_rows *rows; /* owned */
	struct error err;     /* written by the thread while it has the job */
};

/** job_new - copies everything. Return: NULL when memory is out: a caller decides the size. */
struct db_job *job_new(const struct db_statement *steps, size_t count);
void job_free(struct db_job *job);
/** batch_run - struct db_job.node of @batch, in order; each has its result afterwards. */
void batch_run(struct conn *conn, struct list *batch);
