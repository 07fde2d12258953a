/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "io/spool.h"

/* A disk that can be broken and slow; the test examines it under the lock. */
struct disk {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct buf written;
	int broken; /* negative errno */
	bool held;
	unsigned tries;
	size_t settled;   /* bytes of @written */
	int unsettled;    /* negative errno: result of the next sync, or */
	bool stays_so;    /* of all */
	bool takes_back;  /* and whether it undoes the writes */
	unsigned settles; /* number of calls */
};

static int write_some(void *ctx, const char *data, size_t len, size_t *ret_taken)
{
	struct disk *d = ctx;
	int r;

	pthread_mutex_lock(&d->lock);
	d->tries++;
	pthread_cond_broadcast(&d->changed);
	while (d->held)
		pthread_cond_wait(&d->changed, &d->lock);
	r = d->broken;
	*ret_taken = r < 0 ? 0 : len;
	if (r == 0)
		assert_int_equal(buf_add(&d->written, data, len), 0);
	pthread_mutex_unlock(&d->lock);
	return r;
}

static int settle(void *ctx, bool *ret_undone)
{
	struct disk *d = ctx;
	int r;

	pthread_mutex_lock(&d->lock);
	d->settles++;
	r = d->unsettled;
	if (!d->stays_so)
		d->unsettled = 0;
	*ret_undone = r < 0 && d->takes_back;
	if (*ret_undone)
		d->written.len = d->settled;
	else
		d->settled = d->written.len;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	return r;
}

static void set_disk(struct disk *d, int broken, bool held)
{
	pthread_mutex_lock(&d->lock);
	d->broken = broken;
	d->held = held;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

static void wait_for_tries(struct disk *d, unsigned tries)
{
	pthread_mutex_lock(&d->lock);
	while (d->tries < tries)
		pthread_cond_wait(&d->changed, &d->lock);
	pthread_mutex_unlock(&d->lock);
}

static void init_disk(struct disk *d)
{
	*d = (struct disk){.written = BUF_INIT(1 << 20)};
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->changed, NULL);
}

static struct spool *open_lazy(struct disk *d, size_t max, uint64_t settle_us)
{
	const struct spool_config config = {
		.ctx = d,
		.write = write_some,
		.settle = settle,
		.max_bytes = max,
		.retry_us = 1000,
		.settle_us = settle_us,
	};
	struct error err = {0};
	struct spool *s = NULL;

	assert_int_equal(spool_open(&config, &s, &err), 0);
	return s;
}

static struct spool *open_spool(struct disk *d, size_t max)
{
	return open_lazy(d, max, 0);
}

static void wait_for_settles(struct disk *d, unsigned settles)
{
	pthread_mutex_lock(&d->lock);
	while (d->settles < settles)
		pthread_cond_wait(&d->changed, &d->lock);
	pthread_mutex_unlock(&d->lock);
}

static void add(struct spool *s, const char *text)
{
	assert_int_equal(spool_add(s, text, strlen(text)), 0);
}

static void everything_is_written_in_order_before_the_end(void **state)
{
	struct disk d;
	struct spool *s;

	(void)state;
	init_disk(&d);
	s = open_spool(&d, 1 << 16);
	add(s, "one");
	add(s, "two");
	add(s, "three");
	spool_free(s);
	assert_string_equal(d.written.data, "one\ntwo\nthree\n");
	buf_done(&d.written);
}

static void a_recovered_disk_gets_everything(void **state)
{
	struct disk d;
	struct spool *s;

	(void)state;
	init_disk(&d);
	set_disk(&d, -ENOSPC, false);
	s = open_spool(&d, 1 << 16);
	add(s, "one");
	wait_for_tries(&d, 3);
	assert_int_equal(spool_error(s), -ENOSPC);
	add(s, "two");
	set_disk(&d, 0, false);
	while (spool_error(s) != 0) /* the next try is a millisecond away */
		;
	spool_free(s);
	assert_string_equal(d.written.data, "one\ntwo\n");
	buf_done(&d.written);
}

static void a_full_queue_loses_whole_records_and_counts_them(void **state)
{
	struct disk d;
	struct spool *s;

	(void)state;
	init_disk(&d);
	set_disk(&d, 0, true);
	s = open_spool(&d, 16);
	add(s, "0123456");
	wait_for_tries(&d, 1); /* it is in the thread's batch now, and still counts */
	add(s, "89");
	assert_int_equal(spool_add(s, "abcdef", 6), -ENOBUFS);
	assert_int_equal(spool_waiting(s), 11);
	assert_int_equal(spool_lost(s), 1);
	assert_int_equal(spool_lost(s), 0);
	set_disk(&d, 0, false);
	spool_free(s);
	assert_string_equal(d.written.data, "0123456\n89\n");
	buf_done(&d.written);
}

static void a_broken_disk_does_not_block_the_end(void **state)
{
	struct disk d;
	struct spool *s;

	(void)state;
	init_disk(&d);
	set_disk(&d, -EIO, false);
	s = open_spool(&d, 1 << 16);
	add(s, "one");
	spool_free(s);
	assert_int_equal(d.written.len, 0);
	buf_done(&d.written);
}

#define LONG_US (3600 * 1000 * 1000ULL)

static void writes_are_synced_later_and_at_the_end(void **state)
{
	struct disk d;
	struct spool *s;

	(void)state;
	init_disk(&d);
	s = open_lazy(&d, 1 << 16, LONG_US);
	add(s, "one");
	wait_for_tries(&d, 1);
	add(s, "two");
	wait_for_tries(&d, 2); /* writing does not wait */
	assert_int_equal(d.settles, 0);
	assert_int_equal(spool_waiting(s), 8);
	spool_free(s);
	assert_string_equal(d.written.data, "one\ntwo\n");
	assert_int_equal(d.settled, 8);
	assert_int_equal(d.settles, 1);
	buf_done(&d.written);
}

static void records_that_were_not_synced_are_written_again(void **state)
{
	struct disk d;
	struct spool *s;

	(void)state;
	init_disk(&d);
	d.unsettled = -EIO;
	d.takes_back = true;
	s = open_lazy(&d, 1 << 16, 1000);
	add(s, "one");
	add(s, "two");
	wait_for_settles(&d, 2);
	add(s, "three");
	spool_free(s);
	assert_int_equal(d.settled, 14);
	assert_memory_equal(d.written.data, "one\ntwo\nthree\n", 14);
	buf_done(&d.written);
}

static void settling_is_tried_again_without_a_new_record(void **state)
{
	struct disk d;
	struct spool *s;

	(void)state;
	init_disk(&d);
	d.unsettled = -ENOSPC;
	s = open_lazy(&d, 1 << 16, 1000);
	add(s, "one");
	wait_for_settles(&d, 2);
	while (spool_error(s) != 0)
		;
	assert_int_equal(spool_waiting(s), 0);
	spool_free(s);
	assert_string_equal(d.written.data, "one\n");
	buf_done(&d.written);
}

/* Each write succeeds, which proves nothing. */
static void a_failing_sync_stays_an_error(void **state)
{
	struct disk d;
	struct spool *s;

	(void)state;
	init_disk(&d);
	d.unsettled = -EIO;
	d.takes_back = d.stays_so = true;
	s = open_lazy(&d, 1 << 16, 2000);
	add(s, "one");
	while (spool_error(s) == 0)
		;
	for (unsigned tries = 0; tries < 5;) {
		assert_int_equal(spool_error(s), -EIO);
		pthread_mutex_lock(&d.lock);
		tries = d.tries;
		pthread_mutex_unlock(&d.lock);
	}
	assert_int_equal(spool_waiting(s), 4);
	spool_free(s);
	buf_done(&d.written);
}

static void records_written_before_a_failure_are_synced(void **state)
{
	struct disk d;
	struct spool *s;

	(void)state;
	init_disk(&d);
	s = open_lazy(&d, 1 << 16, LONG_US);
	add(s, "one");
	wait_for_tries(&d, 1);
	set_disk(&d, -ENOSPC, false);
	add(s, "two");
	wait_for_settles(&d, 1);
	assert_int_equal(d.settled, 4);
	set_disk(&d, 0, false);
	spool_free(s);
	assert_string_equal(d.written.data, "one\ntwo\n");
	assert_int_equal(d.settled, 8);
	buf_done(&d.written);
}

static int refuse(struct error *err)
{
	return error_set(err, ERR_SYSTEM, EPERM, "no");
}

static void a_thread_that_cannot_begin_is_an_error(void **state)
{
	struct disk d;
	const struct spool_config config = {
		.ctx = &d, .write = write_some, .on_thread = refuse, .max_bytes = 16};
	struct error err = {0};
	struct spool *s = NULL;

	(void)state;
	init_disk(&d);
	assert_int_equal(spool_open(&config, &s, &err), -1);
	assert_int_equal(err.code, ERR_SYSTEM);
	assert_null(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_written_in_order_before_the_end),
		cmocka_unit_test(a_recovered_disk_gets_everything),
		cmocka_unit_test(a_full_queue_loses_whole_records_and_counts_them),
		cmocka_unit_test(a_broken_disk_does_not_block_the_end),
		cmocka_unit_test(writes_are_synced_later_and_at_the_end),
		cmocka_unit_test(records_that_were_not_synced_are_written_again),
		cmocka_unit_test(settling_is_tried_again_without_a_new_record),
		cmocka_unit_test(a_failing_sync_stays_an_error),
		cmocka_unit_test(records_written_before_a_failure_are_synced),
		cmocka_unit_test(a_thread_that_cannot_begin_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
