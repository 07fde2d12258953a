/* SPDX-License-Identifier: Apache-2.0 */
#include "io/spool.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

/*
 * Theory of operation. The loop adds to @waiting under the lock; the thread moves it to its own
 * batch and writes without the lock. Written records stay in the batch until synced, and are
 * written again if the sync fails. What is left after a failure goes first.
 */

struct spool {
	struct spool_config config;
	pthread_t thread;
	bool started;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct buf waiting;
	size_t busy_bytes; /* of the thread's own batch */
	uint64_t lost;
	int failed;
	bool stopping;
	bool up;
	struct error start_error;
};

/* Used by the thread only. */
struct batch {
	struct buf data;
	size_t written;     /* bytes written but not synced */
	uint64_t settle_at; /* set while something is not synced */
	int failed;         /* last attempt: 0 or a negative errno */
	bool last_try;
};

/* Return: false on timeout. */
static bool wait_until(struct spool *s, uint64_t at_us)
{
	const struct timespec until = {.tv_sec = (time_t)(at_us / USEC_PER_SEC),
	                               .tv_nsec = (long)(at_us % USEC_PER_SEC) * 1000};

	return pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT;
}

/* Until there is work or a retry is due. */
static void wait_for_work(struct spool *s, const struct batch *b)
{
	uint64_t retry_at = clock_us() + s->config.retry_us;

	if (b->failed)
		while (!s->stopping && wait_until(s, retry_at))
			;
	else if (b->written > 0)
		while (s->waiting.len == 0 && !s->stopping && wait_until(s, b->settle_at))
			;
	else
		while (s->waiting.len == 0 && !s->stopping)
			pthread_cond_wait(&s->changed, &s->lock);
}

/* Without memory it stays; the next turn retries. */
static void take_waiting(struct spool *s, struct batch *b)
{
	if (b->data.len > 0) {
		if (buf_add(&b->data, s->waiting.data, s->waiting.len) == 0)
			buf_consume(&s->waiting, s->waiting.len);
	} else {
		struct buf empty = BUF_INIT(s->config.max_bytes);

		buf_done(&b->data);
		b->data = s->waiting;
		s->waiting = empty;
	}
	s->busy_bytes = b->data.len;
}

/* Return: false when nothing is left, or the last attempt failed. */
static bool take_batch(struct spool *s, struct batch *b)
{
	bool more;

	pthread_mutex_lock(&s->lock);
	s->failed = b->failed;
	s->busy_bytes = b->data.len;
	more = !(b->failed && b->last_try);
	if (more) {
		b->last_try = s->stopping;
		wait_for_work(s, b);
		take_waiting(s, b);
		more = b->data.len > 0 || b->failed || !s->stopping;
	}
	pthread_mutex_unlock(&s->lock);
	return more;
}

static void write_batch(struct spool *s, struct batch *b)
{
	size_t taken = 0;

	if (b->written == 0)
		b->settle_at = clock_us() + s->config.settle_us;
	b->failed = s->config.write(s->config.ctx, b->data.data + b->written,
	                            b->data.len - b->written, &taken);
	b->written += taken;
}

static void settle_batch(struct spool *s, struct batch *b)
{
	bool undone = false;

	b->failed = s->config.settle(s->config.ctx, &undone);
	if (!undone)
		buf_consume(&b->data, b->written);
	b->written = 0;
}

static bool is_stopping(struct spool *s)
{
	bool stopping;

	pthread_mutex_lock(&s->lock);
	stopping = s->stopping;
	pthread_mutex_unlock(&s->lock);
	return stopping;
}

/*
 * A failure is over only after a successful sync, so a retry is synced at once, with records
 * written before the failure.
 */
static void write_and_settle(struct spool *s, struct batch *b)
{
	bool again = b->failed;
	int r;

	b->failed = 0;
	if (b->written < b->data.len)
		write_batch(s, b);
	r = b->failed;
	if (r < 0 && b->written == 0)
		return;
	if (again || clock_us() >= b->settle_at || is_stopping(s))
		settle_batch(s, b);
	if (r < 0)
		b->failed = r;
}

static bool begin_thread(struct spool *s)
{
	struct error err = {0};
	bool ok = !s->config.on_thread || s->config.on_thread(&err) == 0;

	pthread_mutex_lock(&s->lock);
	s->start_error = err;
	s->up = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return ok;
}

static void *run_thread(void *arg)
{
	struct spool *s = arg;
	struct batch batch = {.data = BUF_INIT(s->config.max_bytes)};

	if (!begin_thread(s))
		return NULL;
	while (take_batch(s, &batch))
		write_and_settle(s, &batch);
	buf_done(&batch.data);
	return NULL;
}

/* The loop's thread handles signals. */
static int make_thread(struct spool *s)
{
	sigset_t all, before;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&s->thread, NULL, run_thread, s);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static void init_lock(struct spool *s)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
}

void spool_free(struct spool *s)
{
	if (!s)
		return;
	if (s->started) {
		pthread_mutex_lock(&s->lock);
		s->stopping = true;
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
	}
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	buf_done(&s->waiting);
	free(s);
}

static void spool_freep(struct spool **s)
{
	spool_free(*s);
}

int spool_add(struct spool *s, const char *record, size_t len)
{
	bool wake = false;
	int r = -ENOBUFS;

	pthread_mutex_lock(&s->lock);
	/* A record is queued whole or not at all. */
	if (s->waiting.len + s->busy_bytes + len + 1 <= s->config.max_bytes &&
	    buf_reserve(&s->waiting, len + 1) == 0) {
		memcpy(s->waiting.data + s->waiting.len, record, len);
		s->waiting.data[s->waiting.len + len] = '\n';
		s->waiting.len += len + 1;
		r = 0;
		/* A thread that waits to retry would retry too often. */
		wake = !s->failed;
	}
	s->lost += r < 0;
	pthread_mutex_unlock(&s->lock);
	/* Outside the lock, or the thread would block on it. */
	if (wake)
		pthread_cond_signal(&s->changed);
	return r;
}

int spool_error(struct spool *s)
{
	int failed;

	pthread_mutex_lock(&s->lock);
	failed = s->failed;
	pthread_mutex_unlock(&s->lock);
	return failed;
}

uint64_t spool_lost(struct spool *s)
{
	uint64_t lost;

	pthread_mutex_lock(&s->lock);
	lost = s->lost;
	s->lost = 0;
	pthread_mutex_unlock(&s->lock);
	return lost;
}

size_t spool_waiting(struct spool *s)
{
	size_t bytes;

	pthread_mutex_lock(&s->lock);
	bytes = s->waiting.len + s->busy_bytes;
	pthread_mutex_unlock(&s->lock);
	return bytes;
}

int spool_open(const struct spool_config *config, struct spool **ret_spool, struct error *err)
{
	attr_cleanup(spool_freep) struct spool *s = NEW(struct spool);
	int r;

	s->config = *config;
	buf_init(&s->waiting, config->max_bytes);
	init_lock(s);
	r = make_thread(s);
	if (r != 0)
		return error_set(err, ERR_SYSTEM, r, "start a thread");
	s->started = true;
	pthread_mutex_lock(&s->lock);
	while (!s->up)
		pthread_cond_wait(&s->changed, &s->lock);
	*err = s->start_error;
	pthread_mutex_unlock(&s->lock);
	if (error_is_set(err))
		return -1;
	*ret_spool = TAKE_PTR(s);
	return 0;
}
