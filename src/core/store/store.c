/* SPDX-License-Identifier: Apache-2.0 */
#include "core/store/store.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "core/config/embedded.h"
#include "core/store/store_internal.h"
#include "io/loop.h"

#define APPLICATION_ID  0x4d626f78u /* "Mbox" */
#define QUEUE_MAX_BYTES (64u << 20)
#define MIGRATIONS_MAX  64

int store_open(const char *dir, struct store **ret_store, struct error *err)
{
	struct db_migration migrations[MIGRATIONS_MAX];
	cleanup_free char *path = dir ? xasprintf("%s/" STORE_FILE, dir) : NULL;
	struct db_config config = {
		.path = path,
		.application_id = APPLICATION_ID,
		.migrations = migrations,
		.queue_max_bytes = QUEUE_MAX_BYTES,
	};
	struct db *db = NULL;

	/* File names begin with their number; the build lists them in order. */
	for (const struct embedded_file *f = embedded_migrations; f->name; f++) {
		unsigned n = (unsigned)config.migrations_count++;

		assert(n < MIGRATIONS_MAX);
		migrations[n] =
			(struct db_migration){.version = n + 1, .name = f->name, .sql = f->data};
	}
	if (db_open(&config, &db, err) < 0)
		return -1;
	*ret_store = NEW(struct store);
	(*ret_store)->db = db;
	list_init(&(*ret_store)->sessions);
	list_init(&(*ret_store)->executions);
	list_init(&(*ret_store)->tasks);
	list_init(&(*ret_store)->orphans);
	return 0;
}

void store_wants_flush(struct store *s, uint64_t delay_us)
{
	if (s->flush_due || !s->flush_timer)
		return;
	s->flush_due = true;
	timer_start(s->flush_timer, delay_us);
}

/* Return: whether all fitted. */
static bool write_items(struct list *items)
{
	struct store_item *item;

	LIST_FOREACH (item, items, struct store_item, node)
		if (item->write(item) < 0)
			return false;
	return true;
}

/* Sessions first: an execution in the database always has its session. */
void store_flush(struct store *s)
{
	if (write_items(&s->sessions))
		(void)write_items(&s->executions);
}

static void on_flush_timer(void *ctx)
{
	struct store *s = ctx;

	s->flush_due = false;
	/* Do not retry a failing disk at the speed of the loop. */
	store_flush(s);
	if (!list_is_empty(&s->sessions) || !list_is_empty(&s->executions))
		store_wants_flush(s, STORE_FLUSH_US);
}

bool store_was_written(struct store *s, const struct error *err)
{
	bool failed = err && (err->code == ERR_STORAGE || err->code == ERR_UNAVAILABLE);

	if (err && !failed) {
		log_error("write to the store", err);
	} else if (failed != s->failing) {
		s->failing = failed;
		if (failed)
			log_error("the store cannot be written", err);
		else
			log_info("the store can be written again");
	}
	return failed;
}

struct store_task *store_task_new(struct store *s, store_done_fn *fn, void *ctx)
{
	struct store_task *task = NEW(struct store_task);

	task->store = s;
	task->fn = fn;
	task->ctx = ctx;
	list_append(&s->tasks, &task->node);
	return task;
}

void store_task_cancel(struct store_task *task)
{
	list_remove(&task->node);
	free(task);
}

void store_task_done(void *ctx, const struct error *err)
{
	struct store_task task = *(struct store_task *)ctx;

	store_task_cancel(ctx);
	task.fn(task.ctx, err);
}

static void on_task(void *ctx, const struct error *err)
{
	struct store_task *task = ctx;

	(void)store_was_written(task->store, err);
	store_task_done(task, err);
}

int store_write(struct store *s, const struct db_statement *steps, size_t count, store_done_fn *fn,
                void *ctx, struct error *err)
{
	struct store_task *task = store_task_new(s, fn, ctx);

	if (db_write(s->db, steps, count, on_task, task, err))
		return 0;
	store_task_cancel(task);
	return -1;
}

void store_finish(struct store *s)
{
	db_set_queue_max(s->db, SIZE_MAX / 2);
	store_flush(s);
}

bool store_is_failing(const struct store *s)
{
	return s->failing;
}

int store_start(struct store *s, struct loop *loop, int (*on_thread)(struct error *err),
                struct error *err)
{
	if (db_start(s->db, loop, on_thread, err) < 0)
		return -1;
	s->flush_timer = timer_new(loop, on_flush_timer, s);
	return 0;
}

struct db *store_db(struct store *s)
{
	return s->db;
}

void store_close(struct store *s)
{
	struct store_orphan *orphan;
	struct store_task *task;
	struct error err = {0};

	if (!s)
		return;
	timer_free(s->flush_timer);
	db_close(s->db); /* makes no more callbacks */
	(void)error_set(&err, ERR_UNAVAILABLE, ECANCELED, "the daemon is stopping");
	LIST_FOREACH (task, &s->tasks, struct store_task, node)
		store_task_done(task, &err);
	LIST_FOREACH (orphan, &s->orphans, struct store_orphan, node)
		orphan->free(orphan);
	free(s);
}

void store_load_cancel(struct store_load *load)
{
	db_forget(load->job);
	free(load);
}
