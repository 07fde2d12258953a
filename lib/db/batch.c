/* SPDX-License-Identifier: Apache-2.0 */
#include "db/job.h"

#include "base/alloc.h"
#include "db/internal.h"

/*
 * Theory of operation. A job that violates a constraint fails alone: its statements are rolled back
 * to a savepoint and the batch continues. If the transaction fails (disk full), the jobs run one by
 * one, so that a small one does not fail because of a large one.
 */

static size_t job_size(const struct db_statement *steps, size_t count)
{
	size_t size = count * sizeof(*steps);

	for (size_t i = 0; i < count; i++) {
		size += steps[i].count * sizeof(*steps[i].values);
		for (size_t k = 0; k < steps[i].count; k++)
			size += steps[i].values[k].len;
	}
	return size;
}

/* One block: all statements, then all values, then all bytes. */
static void copy_steps(struct db_statement *to, const struct db_statement *from, size_t count)
{
	struct db_value *value = (struct db_value *)(to + count);
	size_t values = 0;
	char *bytes;

	for (size_t i = 0; i < count; i++)
		values += from[i].count;
	bytes = (char *)(value + values);
	for (size_t i = 0; i < count; i++) {
		to[i] = (struct db_statement){from[i].sql, value, from[i].count};
		for (size_t k = 0; k < from[i].count; k++, value++) {
			*value = from[i].values[k];
			if (!value->data)
				continue;
			memcpy(bytes, value->data, value->len);
			value->data = bytes;
			bytes += value->len;
		}
	}
}

struct db_job *job_new(const struct db_statement *steps, size_t count)
{
	size_t size = job_size(steps, count);
	void *block = malloc(size);
	struct db_job *job;

	if (!block)
		return NULL;
	job = NEW(struct db_job);
	list_init(&job->node);
	job->steps = block;
	job->count = count;
	job->bytes = sizeof(*job) + size;
	copy_steps(job->steps, steps, count);
	return job;
}

void job_free(struct db_job *job)
{
	if (!job)
		return;
	db_rows_free(job->rows);
	free(job->steps);
	free(job);
}

static int run_steps(struct conn *c, struct db_job *job)
{
	for (size_t i = 0; i < job->count; i++)
		if (conn_run(c, &job->steps[i], job->max_bytes, job->has_rows ? &job->rows : NULL,
		             &job->err) < 0)
			return -1;
	return 0;
}

static void roll_back(struct conn *c, const char *how)
{
	struct error ignored = {0};

	if (!sqlite3_get_autocommit(c->sql))
		(void)!conn_script(c, how, &ignored);
}

static void run_write(struct conn *c, struct db_job *job)
{
	/* One statement is atomic by itself. */
	if (job->count == 1) {
		(void)!run_steps(c, job); /* the job has its error */
		return;
	}
	if (conn_script(c, "SAVEPOINT job", &job->err) < 0)
		return;
	if (run_steps(c, job) < 0)
		roll_back(c, "ROLLBACK TO job");
	if (!error_is_set(&job->err))
		(void)!conn_script(c, "RELEASE job", &job->err);
	else
		roll_back(c, "RELEASE job");
}

static void run_job(struct conn *c, struct db_job *job)
{
	error_clear(&job->err);
	db_rows_free(TAKE_PTR(job->rows));
	if (job->is_read)
		(void)!run_steps(c, job);
	else
		run_write(c, job);
}

static bool has_write(const struct list *batch)
{
	struct db_job *job;

	LIST_FOREACH (job, batch, struct db_job, node)
		if (!job->is_read)
			return true;
	return false;
}

/* Return: whether the transaction succeeded; single jobs may have failed. */
static bool run_together(struct conn *c, struct list *batch, struct error *err)
{
	struct db_job *job;

	if (conn_script(c, "BEGIN IMMEDIATE", err) < 0)
		return false;
	LIST_FOREACH (job, batch, struct db_job, node) {
		run_job(c, job);
		if (sqlite3_get_autocommit(c->sql)) {
			*err = job->err;
			return false;
		}
	}
	if (conn_script(c, "COMMIT", err) == 0)
		return true;
	roll_back(c, "ROLLBACK");
	return false;
}

static void run_alone(struct conn *c, struct db_job *job)
{
	struct error err = {0};
	struct list only;

	list_init(&only);
	list_append(&only, &job->node);
	if (!job->is_read && !run_together(c, &only, &err))
		job->err = err;
	else if (job->is_read)
		run_job(c, job);
	list_remove(&job->node);
}

void batch_run(struct conn *c, struct list *batch)
{
	struct error err = {0};
	struct list again;
	struct db_job *job;

	if (!has_write(batch)) {
		LIST_FOREACH (job, batch, struct db_job, node)
			run_job(c, job);
		return;
	}
	if (run_together(c, batch, &err))
		return;
	list_init(&again);
	LIST_FOREACH (job, batch, struct db_job, node) {
		list_remove(&job->node);
		run_alone(c, job);
		list_append(&again, &job->node);
	}
	LIST_FOREACH (job, &again, struct db_job, node) {
		list_remove(&job->node);
		list_append(batch, &job->node);
	}
}
