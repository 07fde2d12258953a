/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tenant/scheduler.h"

#include "base/clock.h"

/* A queue is in the list of turns exactly while its first entry could run if a place were free:
 * every change (an entry arrives or leaves, a bound moves) ends in update_turn. So assigning a
 * freed place looks at one queue, and a tenant at its bounds costs the others nothing. */

#define RETRY_AFTER_MAX 60 /* seconds */
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

static bool fits_queue(const struct scheduler_queue *q, const struct scheduler_entry *e)
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
	bool could_run = first && fits_queue(q, first);

	if (!could_run)
		list_remove(&q->node);
	else if (list_is_empty(&q->node))
		list_append(&s->turns, &q->node);
}

static void count_place(struct scheduler *s, struct scheduler_queue *q, enum scheduler_place place,
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

static void move_entry(struct scheduler *s, struct scheduler_entry *e, enum scheduler_place place)
{
	struct scheduler_queue *q = queue_of(s, e);

	if (e->place == SCHEDULER_WAITING) {
		list_remove(&e->node);
		s->queues -= list_is_empty(&q->waiting);
	}
	count_place(s, q, e->place, -1);
	count_place(s, q, place, 1);
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

static void admit_entry(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us)
{
	e->admitted_us = now_us;
	move_entry(s, e, SCHEDULER_RUNNING);
}

unsigned scheduler_retry_after(const struct scheduler *s)
{
	/* The queue advances by running_max entries per hold time. */
	uint64_t rounds = (s->counts[SCHEDULER_WAITING] + 1) / s->running_max + 1;
	uint64_t seconds = (rounds * s->hold_us + USEC_PER_SEC - 1) / USEC_PER_SEC;

	if (seconds < 1)
		return 1;
	return seconds > RETRY_AFTER_MAX ? RETRY_AFTER_MAX : (unsigned)seconds;
}

/* At the global bound, only queues that have an equal share of it are full: a tenant that fills the
 * queue does so at its own cost. The total can exceed the bound by that, with the logarithm of the
 * number of tenants. */
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
	/* No overtaking, neither in its own queue nor across queues. */
	if (list_is_empty(&s->turns) && list_is_empty(&q->waiting) && has_room(s) &&
	    fits_queue(q, e)) {
		admit_entry(s, e, now_us);
		return 0;
	}
	if (!e->patient && is_full(s, q))
		return error_set(err, ERR_BUSY, 0,
		                 "%zu executions are running and %zu waiting; retry in %u s",
		                 s->counts[SCHEDULER_RUNNING], s->counts[SCHEDULER_WAITING],
		                 scheduler_retry_after(s));
	move_entry(s, e, SCHEDULER_WAITING);
	return 1;
}

void scheduler_resume(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us)
{
	if (e->place == SCHEDULER_RUNNING)
		return;
	if (e->place == SCHEDULER_OUT)
		list_init(&e->node);
	admit_entry(s, e, now_us);
}

/* Rotates the turns. */
static struct scheduler_entry *next_entry(struct scheduler *s)
{
	struct scheduler_queue *q = LIST_FIRST(&s->turns, struct scheduler_queue, node);

	if (!q)
		return NULL;
	list_remove(&q->node);
	list_append(&s->turns, &q->node);
	return LIST_FIRST(&q->waiting, struct scheduler_entry, node);
}

/* on_turn may free places: the loop notices, a nested call returns at once. */
static void dispatch_turns(struct scheduler *s, uint64_t now_us)
{
	struct scheduler_entry *e;

	if (s->dispatching)
		return;
	s->dispatching = true;
	while (has_room(s) && (e = next_entry(s))) {
		admit_entry(s, e, now_us);
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
	move_entry(s, e, SCHEDULER_LEAVING);
	dispatch_turns(s, now_us);
}

void scheduler_out(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us)
{
	if (e->place == SCHEDULER_OUT)
		return;
	if (e->place == SCHEDULER_RUNNING)
		note_hold(s, e, now_us);
	move_entry(s, e, SCHEDULER_OUT);
	dispatch_turns(s, now_us);
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
	dispatch_turns(s, now_us);
}
