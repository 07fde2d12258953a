/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduler.h"

#include "base/clock.h"

#define RETRY_AFTER_MAX 60 /* seconds; an estimate beyond that is no longer one */
#define HOLD_WEIGHT     8  /* a new sample counts an eighth */

void scheduler_init(struct scheduler *s, size_t running_max, size_t waiting_max, size_t boxes_max)
{
	*s = (struct scheduler){
		.running_max = running_max,
		.waiting_max = waiting_max,
		.boxes_max = boxes_max < running_max ? running_max : boxes_max,
	};
	list_init(&s->waiting);
}

static void move(struct scheduler *s, struct scheduler_entry *e, enum scheduler_place place)
{
	if (e->place == SCHEDULER_WAITING)
		list_remove(&e->node);
	if (e->place != SCHEDULER_OUT)
		s->counts[e->place]--;
	e->place = place;
	if (place != SCHEDULER_OUT)
		s->counts[place]++;
	if (place == SCHEDULER_WAITING)
		list_append(&s->waiting, &e->node);
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

int scheduler_enter(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us,
                    struct error *err)
{
	assert(e->place == SCHEDULER_OUT);
	list_init(&e->node);
	/* Nobody overtakes: with a queue there is room only for its first. */
	if (s->counts[SCHEDULER_WAITING] == 0 && has_room(s)) {
		admit(s, e, now_us);
		return 0;
	}
	if (!e->patient && s->counts[SCHEDULER_WAITING] >= s->waiting_max)
		return error_set(err, ERR_BUSY, 0,
		                 "%zu executions are running and %zu waiting; retry in %u s",
		                 s->counts[SCHEDULER_RUNNING], s->counts[SCHEDULER_WAITING],
		                 scheduler_retry_after(s));
	move(s, e, SCHEDULER_WAITING);
	return 1;
}

/* on_turn may free places again: the loop sees that, a nested call leaves it to the loop. */
static void dispatch(struct scheduler *s, uint64_t now_us)
{
	struct scheduler_entry *e;

	if (s->dispatching)
		return;
	s->dispatching = true;
	while (has_room(s) && (e = LIST_FIRST(&s->waiting, struct scheduler_entry, node))) {
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
