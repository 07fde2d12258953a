/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tenant/scheduler.h"

#include "base/clock.h"

/*
 * Theory of operation. A queue is in the list of turns exactly while its first entry could run if
 * there were a place: what can change that (an entry comes or goes, a bound moves) ends in
 * update_turn. So a place that becomes free is given by looking at one queue, and a tenant at its
 * bounds costs the others nothing.
 */

#define RETRY_AFTER_MAX 60 /* seconds; an estimate beyond that is no longer one */
#define HOLD_WEIGHT     8  /* a new sample counts an eighth */

void scheduler_queue_init(struct scheduler_queue *q)
{
	*q = (struct scheduler_queue){0};
	list_init(&q->node);
	list_init(&q->waiting);
}

void scheduler_init(struct scheduler *s, size_t running_max, size_t waiting_max, size_t boxes_max)
{
	*s = (struct scheduler){
		.running_max = running_max,
		.waiting_max = waiting_max,
		.boxes_max = boxes_max < running_max ? running_max : boxes_max,
	};
	list_init(&s->turns);
	scheduler_queue_init(&s->common);
}

static struct scheduler_queue *queue_of(struct scheduler *s, const struct scheduler_entry *e)
{
	return e->queue ? e->queue : &s->common;
}

/* Whether the bounds of @q leave room for @e. */
static bool fits(const struct scheduler_queue *q, const struct scheduler_entry *e)
{
	if (q->running_max && q->counts[SCHEDULER_RUNNING] >= q->running_max)
		return false;
	return !q->memory_max || e->memory_bytes == 0 ||
	       (q->memory_bytes <= q->memory_max &&
	        e->memory_bytes <= q->memory_max - q->memory_bytes);
}

static void update_turn(struct scheduler *s, struct scheduler_queue *q)
{
	const struct scheduler_entry *first = LIST_FIRST(&q->waiting, struct scheduler_entry, node);
	bool could_run = first && fits(q, first);

	if (!could_run)
		list_remove(&q->node);
	else if (list_is_empty(&q->node))
		list_append(&s->turns, &q->node);
}

static void count(struct scheduler *s, struct scheduler_queue *q, enum scheduler_place place,
                  int change)
{
	if (place == SCHEDULER_OUT)
		return;
	s->counts[place] += (size_t)change;
	q->counts[place] += (size_t)change;
}

static bool has_box(enum scheduler_place place)
{
	return place == SCHEDULER_RUNNING || place == SCHEDULER_LEAVING;
}

static void move(struct scheduler *s, struct scheduler_entry *e, enum scheduler_place place)
{
	struct scheduler_queue *q = queue_of(s, e);

	if (e->place == SCHEDULER_WAITING) {
		list_remove(&e->node);
		s->queues -= list_is_empty(&q->waiting);
	}
	count(s, q, e->place, -1);
	count(s, q, place, 1);
	q->memory_bytes -= has_box(e->place) ? e->memory_bytes : 0;
	q->memory_bytes += has_box(place) ? e->memory_bytes : 0;
	e->place = place;
	if (place == SCHEDULER_WAITING) {
		s->queues += list_is_empty(&q->waiting);
		list_append(&q->waiting, &e->node);
	}
	update_turn(s, q);
}

static bool has_room(const struct scheduler *s)
{
	return s->counts[SCHEDULER_RUNNING] < s->running_max &&
	       s->counts[SCHEDULER_RUNNING] + s->counts[SCHEDULER_LEAVING] < s->boxes_max;
}

static void admit(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us)
{
	e->admitted_us = now_us;
	move(s, e, SCHEDULER_RUNNING);
}

unsigned scheduler_retry_after(const struct scheduler *s)
{
	/* The queue moves on by running_max entries per hold time. */
	uint64_t rounds = (s->counts[SCHEDULER_WAITING] + 1) / s->running_max + 1;
	uint64_t seconds = (rounds * s->hold_us + USEC_PER_SEC - 1) / USEC_PER_SEC;

	if (seconds < 1)
		return 1;
	return seconds > RETRY_AFTER_MAX ? RETRY_AFTER_MAX : (unsigned)seconds;
}

/*
 * The waiting are bounded together. Where the bound is reached only those are sent away whose queue
 * has an equal part of it: who fills it up does so at his own cost. The sum can grow beyond the
 * bound by that, with the logarithm of the number of tenants.
 */
static bool is_full(const struct scheduler *s, const struct scheduler_queue *q)
{
	size_t own = q->counts[SCHEDULER_WAITING];
	size_t share = s->waiting_max / (s->queues + (own == 0));

	if (s->counts[SCHEDULER_WAITING] < s->waiting_max)
		return false;
	if (share == 0 && s->waiting_max > 0)
		share = 1;
	return own >= share;
}

int scheduler_enter(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us,
                    struct error *err)
{
	struct scheduler_queue *q = queue_of(s, e);

	assert(e->place == SCHEDULER_OUT);
	list_init(&e->node);
	/* Nobody overtakes: neither his own, nor those whose turn it would be. */
	if (list_is_empty(&s->turns) && list_is_empty(&q->waiting) && has_room(s) && fits(q, e)) {
		admit(s, e, now_us);
		return 0;
	}
	if (!e->patient && is_full(s, q))
		return error_set(err, ERR_BUSY, 0,
		                 "%zu executions are running and %zu waiting; retry in %u s",
		                 s->counts[SCHEDULER_RUNNING], s->counts[SCHEDULER_WAITING],
		                 scheduler_retry_after(s));
	move(s, e, SCHEDULER_WAITING);
	return 1;
}

void scheduler_resume(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us)
{
	if (e->place == SCHEDULER_RUNNING)
		return;
	if (e->place == SCHEDULER_OUT)
		list_init(&e->node);
	admit(s, e, now_us);
}

/* The first of the queue whose turn it is, which goes to the end of the turns. */
static struct scheduler_entry *next(struct scheduler *s)
{
	struct scheduler_queue *q = LIST_FIRST(&s->turns, struct scheduler_queue, node);

	if (!q)
		return NULL;
	list_remove(&q->node);
	list_append(&s->turns, &q->node);
	return LIST_FIRST(&q->waiting, struct scheduler_entry, node);
}

/* on_turn may free places again: the loop sees that, a nested call leaves it to the loop. */
static void dispatch(struct scheduler *s, uint64_t now_us)
{
	struct scheduler_entry *e;

	if (s->dispatching)
		return;
	s->dispatching = true;
	while (has_room(s) && (e = next(s))) {
		admit(s, e, now_us);
		e->on_turn(e->ctx);
	}
	s->dispatching = false;
}

static void note_hold(struct scheduler *s, const struct scheduler_entry *e, uint64_t now_us)
{
	uint64_t held = now_us > e->admitted_us ? now_us - e->admitted_us : 0;

	s->hold_us = s->hold_us == 0 ? held : (s->hold_us * (HOLD_WEIGHT - 1) + held) / HOLD_WEIGHT;
}

void scheduler_leave(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us)
{
	if (e->place != SCHEDULER_RUNNING)
		return;
	note_hold(s, e, now_us);
	move(s, e, SCHEDULER_LEAVING);
	dispatch(s, now_us);
}

void scheduler_out(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us)
{
	if (e->place == SCHEDULER_OUT)
		return;
	if (e->place == SCHEDULER_RUNNING)
		note_hold(s, e, now_us);
	move(s, e, SCHEDULER_OUT);
	dispatch(s, now_us);
}

void scheduler_hold(struct scheduler *s, struct scheduler_queue *q, uint64_t bytes)
{
	q->memory_bytes += bytes;
	update_turn(s, q);
}

void scheduler_release(struct scheduler *s, struct scheduler_queue *q, uint64_t bytes,
                       uint64_t now_us)
{
	q->memory_bytes -= bytes;
	update_turn(s, q);
	dispatch(s, now_us);
}
