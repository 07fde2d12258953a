/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one thread, one loop: thin adapters that make libuv's handles ours (only lib/io includes
 * uv.h). Callbacks run on the loop, one at a time. Objects may be freed in their own callback: the
 * handle is closed at once and its memory goes after the dispatch.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

struct loop;
struct watch;
struct timer;
struct signal_watch;

void loop_free(struct loop *loop);
struct loop *loop_new(void) attr_owned(loop_free);
/** loop_run - until loop_stop. */
void loop_run(struct loop *loop);
/** loop_run_once - one round of events; @wait: block for the first. For tests. */
void loop_run_once(struct loop *loop, bool wait);
void loop_stop(struct loop *loop);
/** loop_defer - call @fn after the current dispatch. */
void loop_defer(struct loop *loop, void (*fn)(void *arg), void *arg);

enum watch_events {
	WATCH_READ = 1,
	WATCH_WRITE = 2,
};
typedef void watch_fn(void *ctx, int events);

void watch_free(struct watch *w);
/** watch_new - level-triggered readiness of @fd, which stays the caller's and must outlive it. */
struct watch *watch_new(struct loop *loop, int fd, watch_fn *fn, void *ctx) attr_owned(watch_free);
/** watch_set - which events are wanted; 0 pauses. */
void watch_set(struct watch *w, int events);

typedef void timer_fn(void *ctx);

void timer_free(struct timer *t);
struct timer *timer_new(struct loop *loop, timer_fn *fn, void *ctx) attr_owned(timer_free);
/** timer_start - fire once, @delay_us from now (rounded up to a millisecond); restarts. */
void timer_start(struct timer *t, uint64_t delay_us);
void timer_stop(struct timer *t);

typedef void signal_fn(void *ctx, int signo);

void signal_watch_free(struct signal_watch *s);
struct signal_watch *signal_watch_new(struct loop *loop, int signo, signal_fn *fn, void *ctx)
	attr_owned(signal_watch_free);
