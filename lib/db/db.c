/* SPDX-License-Identifier: Apache-2.0 */
#include "db/db.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "db/internal.h"
#include "db/job.h"
#include "io/loop.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/*
 * Theory of operation. The loop appends jobs to @waiting and signals; the thread takes a batch from
 * the front, runs it in one transaction (batch.c), and moves it to @done; a byte in the pipe makes
 * the loop call back, in order. While one commit is on its way the next batch gathers; no delay is
 * added.
 *
 * The lock protects only the two lists and @stopping; a job in neither list belongs to the thread.
 */

#define BATCH_JOBS_MAX  256
#define BATCH_BYTES_MAX (16u << 20)
#define FILE_MODE       0600
#define SMALL_JOB_BYTES 4096

struct db {
	struct conn conn; /* owned by the thread once started */
	char *path;       /* owned; NULL: in memory */
	int note;         /* fd of the clean marker; -1: none */
	size_t queue_max_bytes;
	size_t queued_bytes;      /* of jobs without callback yet; loop only */
	struct error write_error; /* of the latest write; loop only */
	struct watch *watch;
	int wake[2];
	int (*on_thread)(struct error *err);
	bool started;
	pthread_t thread;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct list waiting, done; /* struct db_job.node */
	bool stopping;
	bool up;
	struct error start_error;
};

/* Return: false when nothing more will come. */
static bool take_batch(struct db *db, struct list *batch)
{
	size_t jobs = 0, bytes = 0;
	struct db_job *job;

	pthread_mutex_lock(&db->lock);
	while (list_is_empty(&db->waiting) && !db->stopping)
		pthread_cond_wait(&db->changed, &db->lock);
	while (jobs < BATCH_JOBS_MAX && bytes < BATCH_BYTES_MAX &&
	       (job = LIST_FIRST(&db->waiting, struct db_job, node))) {
		list_remove(&job->node);
		list_append(batch, &job->node);
		jobs++;
		bytes += job->bytes;
	}
	pthread_mutex_unlock(&db->lock);
	return jobs > 0;
}

static void return_batch(struct db *db, struct list *batch)
{
	struct db_job *job;
	bool was_empty;

	pthread_mutex_lock(&db->lock);
	was_empty = list_is_empty(&db->done);
	LIST_FOREACH (job, batch, struct db_job, node) {
		list_remove(&job->node);
		list_append(&db->done, &job->node);
	}
	pthread_mutex_unlock(&db->lock);
	/* A full pipe already wakes the loop. */
	if (was_empty)
		(void)!write(db->wake[1], "", 1);
}

static bool begin_thread(struct db *db)
{
	struct error err = {0};
	bool ok = !db->on_thread || db->on_thread(&err) == 0;

	pthread_mutex_lock(&db->lock);
	db->start_error = err;
	db->up = true;
	pthread_cond_broadcast(&db->changed);
	pthread_mutex_unlock(&db->lock);
	return ok;
}

static void close_conn(struct db *db)
{
	conn_close(&db->conn);
	if (db->path)
		clean_marker_write(db->path, db->note);
}

static void *run_thread(void *arg)
{
	struct db *db = arg;
	struct list batch;

	list_init(&batch);
	if (!begin_thread(db))
		return NULL;
	while (take_batch(db, &batch)) {
		batch_run(&db->conn, &batch);
		return_batch(db, &batch);
	}
	close_conn(db);
	return NULL;
}

static void call_back(struct db *db, struct db_job *job)
{
	const struct error *err = error_is_set(&job->err) ? &job->err : NULL;

	db->queued_bytes -= job->bytes;
	if (!job->is_read && (!err || err->code == ERR_STORAGE || err->code == ERR_UNAVAILABLE))
		db->write_error = job->err;
	if (job->on_done)
		job->on_done(job->ctx, err);
	else if (job->on_rows)
		job->on_rows(job->ctx, job->rows, err);
	else if (err && !job->is_read)
		log_error("write to the database", err);
}

static void on_wake(void *ctx, int events)
{
	struct db *db = ctx;
	struct list done;
	struct db_job *job;
	char bytes[64];

	(void)events;
	(void)!read(db->wake[0], bytes, sizeof(bytes));
	list_init(&done);
	pthread_mutex_lock(&db->lock);
	LIST_FOREACH (job, &db->done, struct db_job, node) {
		list_remove(&job->node);
		list_append(&done, &job->node);
	}
	pthread_mutex_unlock(&db->lock);
	/* Callbacks may forget later jobs: keep those in the list. */
	while ((job = LIST_FIRST(&done, struct db_job, node))) {
		list_remove(&job->node);
		call_back(db, job);
		job_free(job);
	}
}

void db_set_queue_max(struct db *db, size_t bytes)
{
	db->queue_max_bytes = bytes;
}

/* Small jobs (marks, deletions) get through when large ones do not. */
bool db_has_room(const struct db *db, size_t bytes)
{
	size_t reserve = bytes <= SMALL_JOB_BYTES ? db->queue_max_bytes / 4 : 0;

	return db->queued_bytes == 0 || (db->queued_bytes < db->queue_max_bytes + reserve &&
	                                 bytes <= db->queue_max_bytes + reserve - db->queued_bytes);
}

size_t db_waiting(const struct db *db)
{
	return db->queued_bytes;
}

const struct error *db_last_write_error(const struct db *db)
{
	return &db->write_error;
}

static struct db_job *enqueue(struct db *db, struct db_job *job, struct error *err)
{
	assert(db->started);
	if (!job || !db_has_room(db, job->bytes)) {
		(void)error_set(err, ERR_BUSY, 0, "the database has %zu bytes queued",
		                db->queued_bytes);
		/* Only its caller knows what a write belongs to. */
		if (job && job->is_read)
			(void)error_retry(err, ERROR_SOON_US);
		job_free(job);
		return NULL;
	}
	db->queued_bytes += job->bytes;
	pthread_mutex_lock(&db->lock);
	list_append(&db->waiting, &job->node);
	pthread_mutex_unlock(&db->lock);
	/* Outside the lock, or the thread would block on it. */
	pthread_cond_signal(&db->changed);
	return job;
}

struct db_job *db_write(struct db *db, const struct db_statement *steps, size_t count,
                        db_done_fn *on_done, void *ctx, struct error *err)
{
	struct db_job *job = job_new(steps, count);

	if (job) {
		job->on_done = on_done;
		job->ctx = ctx;
	}
	return enqueue(db, job, err);
}

static struct db_job *enqueue_rows_job(const struct db_statement *statement, size_t max_bytes,
                                       db_rows_fn *on_rows, void *ctx)
{
	struct db_job *job = job_new(statement, 1);

	if (job) {
		job->has_rows = true;
		job->max_bytes = max_bytes;
		job->on_rows = on_rows;
		job->ctx = ctx;
	}
	return job;
}

struct db_job *db_change(struct db *db, const struct db_statement *step, size_t max_bytes,
                         db_rows_fn *on_rows, void *ctx, struct error *err)
{
	return enqueue(db, enqueue_rows_job(step, max_bytes, on_rows, ctx), err);
}

struct db_job *db_read(struct db *db, const struct db_statement *query, size_t max_bytes,
                       db_rows_fn *on_rows, void *ctx, struct error *err)
{
	struct db_job *job = enqueue_rows_job(query, max_bytes, on_rows, ctx);

	if (job)
		job->is_read = true;
	return enqueue(db, job, err);
}

/* The thread does not read these fields. */
void db_forget(struct db_job *job)
{
	job->on_done = NULL;
	job->on_rows = NULL;
}

static int make_file(const char *path, struct error *err)
{
	/* SQLite gives its other files this one's mode and owner. */
	int fd = fd_open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, FILE_MODE);

	if (fd < 0)
		return error_set(err, ERR_CONFIG, -fd, "open the database %s", path);
	fd_close(fd);
	return 0;
}

static int open_conn(struct db *db, const struct db_config *config, struct error *err)
{
	int64_t version = 0;

	if (!config->path)
		return conn_open(&db->conn, ":memory:", false, err) < 0 ||
		                       migrate(&db->conn, config, 0, err) < 0
		               ? -1
		               : 0;
	db->path = xstrdup(config->path);
	if (make_file(config->path, err) < 0 || check_file(config, &version, err) < 0 ||
	    clean_marker_clear(config->path, &db->note, err) < 0)
		return -1;
	if (conn_open(&db->conn, config->path, false, err) < 0 || conn_setup(&db->conn, err) < 0 ||
	    migrate(&db->conn, config, version, err) < 0) {
		err->code = ERR_CONFIG;
		return error_wrap(err, "%.90s", config->path);
	}
	return 0;
}

int db_open(const struct db_config *config, struct db **ret_db, struct error *err)
{
	attr_cleanup(db_closep) struct db *db = NEW(struct db);

	db->wake[0] = db->wake[1] = db->note = -1;
	db->queue_max_bytes = config->queue_max_bytes;
	list_init(&db->waiting);
	list_init(&db->done);
	pthread_mutex_init(&db->lock, NULL);
	pthread_cond_init(&db->changed, NULL);
	if (open_conn(db, config, err) < 0)
		return -1;
	*ret_db = TAKE_PTR(db);
	return 0;
}

int db_exec_now(struct db *db, const struct db_statement *steps, size_t count, struct error *err)
{
	struct db_job *job = job_new(steps, count);
	struct list batch;

	assert(!db->started);
	if (!job)
		return error_set(err, ERR_SYSTEM, ENOMEM, "database");
	list_init(&batch);
	list_append(&batch, &job->node);
	batch_run(&db->conn, &batch);
	list_remove(&job->node);
	*err = job->err;
	job_free(job);
	return error_is_set(err) ? -1 : 0;
}

int db_query_now(struct db *db, const struct db_statement *query, size_t max_bytes,
                 struct db_rows **ret_rows, struct error *err)
{
	assert(!db->started);
	return conn_run(&db->conn, query, max_bytes, ret_rows, err);
}

/* The loop's thread handles signals. */
static int make_thread(struct db *db)
{
	sigset_t all, before;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&db->thread, NULL, run_thread, db);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int db_start(struct db *db, struct loop *loop, int (*on_thread)(struct error *err),
             struct error *err)
{
	int r = fd_pipe(db->wake, O_NONBLOCK);

	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "create a pipe for the database");
	db->on_thread = on_thread;
	r = make_thread(db);
	if (r != 0)
		return error_set(err, ERR_SYSTEM, r, "start the database thread");
	db->started = true;
	pthread_mutex_lock(&db->lock);
	while (!db->up)
		pthread_cond_wait(&db->changed, &db->lock);
	*err = db->start_error;
	pthread_mutex_unlock(&db->lock);
	if (error_is_set(err))
		return error_wrap(err, "database thread");
	db->watch = watch_new(loop, db->wake[0], on_wake, db);
	watch_set(db->watch, WATCH_READ);
	return 0;
}

static void drop_jobs(struct list *jobs)
{
	struct db_job *job;

	LIST_FOREACH (job, jobs, struct db_job, node) {
		list_remove(&job->node);
		if (!job->is_read && error_is_set(&job->err))
			log_error("write to the database", &job->err);
		job_free(job);
	}
}

void db_close(struct db *db)
{
	if (!db)
		return;
	if (db->started) {
		pthread_mutex_lock(&db->lock);
		db->stopping = true;
		pthread_cond_signal(&db->changed);
		pthread_mutex_unlock(&db->lock);
		(void)pthread_join(db->thread, NULL);
	}
	if (db->conn.sql)
		close_conn(db);
	drop_jobs(&db->waiting);
	drop_jobs(&db->done);
	watch_free(db->watch);
	fd_close(db->wake[0]);
	fd_close(db->wake[1]);
	fd_close(db->note);
	free(db->path);
	pthread_mutex_destroy(&db->lock);
	pthread_cond_destroy(&db->changed);
	free(db);
}
