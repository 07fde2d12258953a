/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tenant/scheduler.h"

#include "base/clock.h"

/* A queue is in a list of turns exactly while its first entry fits into the queue's own bounds:
 * every change (an entry arrives or leaves, a bound moves) ends in update_turns. So a tenant at its
 * bounds costs the others nothing. Bounds of the machine are checked when it is the queue's turn.
 */

#define RETRY_AFTER_MAX 60                  /* seconds */
#define HOLD_WEIGHT     8                   /* a new sample counts an eighth */
#define MEMORY_PART     16                  /* of its limit counts for a box just admitted */
#define SAMPLE_US       (250 * USEC_PER_MS) /* a box counts by its limit for one or two of these */
#define ACTIVE_US       (5 * USEC_PER_SEC)  /* after its last execution a tenant is active */
#define REST_TIMES      2                   /* the time that the box took */
#define REST_MAX_US     (250 * USEC_PER_MS)
#define BOXES_KEPT      8 /* part of the boxes for tenants below their share */

void scheduler_queue_init(struct scheduler_queue *q)
{
	*q = (struct scheduler_queue){0};
	for (int i = 0; i < SCHEDULER_WORK_COUNT; i++) {
		list_init(&q->turns[i].node);
		q->turns[i].queue = q;
		list_init(&q->waiting[i]);
	}
}

void scheduler_init(struct scheduler *s, const struct scheduler_config *config)
{
	*s = (struct scheduler){.config = *config};
	assert(config->building_max > 0);
	for (int i = 0; i < SCHEDULER_WORK_COUNT; i++)
		list_init(&s->turns[i]);
	scheduler_queue_init(&s->common);
}

static struct scheduler_queue *queue_of(struct scheduler *s, const struct scheduler_entry *e)
{
	return e->queue ? e->queue : &s->common;
}

static bool fits_queue(const struct scheduler_queue *q, const struct scheduler_entry *e)
{
	if (e->work == SCHEDULER_OPEN)
		return true; /* checked by its owner */
	if (q->running_max && q->counts[SCHEDULER_RUNNING] >= q->running_max)
		return false;
	return !q->memory_max || e->work != SCHEDULER_FRESH ||
	       (q->memory_bytes <= q->memory_max &&
	        e->memory_bytes <= q->memory_max - q->memory_bytes);
}

static struct scheduler_entry *first_of(const struct scheduler_queue *q, enum scheduler_work work)
{
	struct scheduler_entry *e = LIST_FIRST(&q->waiting[work], struct scheduler_entry, node);

	return e && fits_queue(q, e) ? e : NULL;
}

static void update_turns(struct scheduler *s, struct scheduler_queue *q)
{
	for (int work = 0; work < SCHEDULER_WORK_COUNT; work++) {
		struct list *node = &q->turns[work].node;

		if (!first_of(q, (enum scheduler_work)work))
			list_remove(node);
		else if (list_is_empty(node))
			list_append(&s->turns[work], node);
	}
}

static void count_place(struct scheduler *s, struct scheduler_queue *q,
                        const struct scheduler_entry *e, int change)
{
	if (e->place == SCHEDULER_OUT || e->work == SCHEDULER_OPEN)
		return;
	if (e->place == SCHEDULER_WAITING && change > 0)
		s->queues += q->counts[SCHEDULER_WAITING] == 0;
	s->counts[e->place] += (size_t)change;
	q->counts[e->place] += (size_t)change;
	if (e->place == SCHEDULER_WAITING && change < 0)
		s->queues -= q->counts[SCHEDULER_WAITING] == 0;
}

static void count_box(struct scheduler *s, struct scheduler_queue *q, int change, uint64_t bytes)
{
	s->owners -= q->boxes > 0;
	s->boxes += (size_t)change;
	q->boxes += (size_t)change;
	s->owners += q->boxes > 0;
	q->memory_bytes = change > 0 ? q->memory_bytes + bytes : q->memory_bytes - bytes;
}

static bool has_box(const struct scheduler_entry *e)
{
	return e->work == SCHEDULER_FRESH &&
	       (e->place == SCHEDULER_RUNNING || e->place == SCHEDULER_LEAVING);
}

static void count_building(struct scheduler *s, struct scheduler_entry *e, int change)
{
	struct scheduler_queue *q = queue_of(s, e);
	int open = e->work == SCHEDULER_OPEN ? change : 0;

	e->building = change > 0;
	s->building += (size_t)change;
	q->building += (size_t)change;
	s->opening += (size_t)open;
	q->opening += (size_t)open;
}

static void stop_building(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us)
{
	uint64_t rest = now_us > e->admitted_us ? (now_us - e->admitted_us) * REST_TIMES : 0;

	if (!e->building)
		return;
	count_building(s, e, -1);
	if (e->work == SCHEDULER_OPEN)
		s->rest_until = now_us + (rest < REST_MAX_US ? rest : REST_MAX_US);
}

/* Until two samples after its admission, which then contain it. */
static void count_recent(struct scheduler *s, const struct scheduler_entry *e, bool add)
{
	uint64_t bytes = e->memory_bytes / MEMORY_PART;

	if (s->samples - e->sample < ARRAY_SIZE(s->recent_bytes))
		s->recent_bytes[e->sample % ARRAY_SIZE(s->recent_bytes)] += add ? bytes : -bytes;
}

static void move_entry(struct scheduler *s, struct scheduler_entry *e, enum scheduler_place place,
                       uint64_t now_us)
{
	struct scheduler_queue *q = queue_of(s, e);
	bool had_box = has_box(e);
	bool ran = e->place == SCHEDULER_RUNNING;

	if (e->place == SCHEDULER_WAITING)
		list_remove(&e->node);
	count_place(s, q, e, -1);
	e->place = place;
	count_place(s, q, e, 1);
	if (had_box != has_box(e))
		count_box(s, q, had_box ? -1 : 1, e->memory_bytes);
	if (place == SCHEDULER_WAITING)
		list_append(&q->waiting[e->work], &e->node);
	if (ran && place != SCHEDULER_RUNNING) {
		stop_building(s, e, now_us);
		if (e->work != SCHEDULER_INSIDE)
			count_recent(s, e, false);
	}
	update_turns(s, q);
}

/* More than its equal part of the boxes, if one more tenant came. */
static bool is_over_share(const struct scheduler *s, const struct scheduler_queue *q)
{
	return q->boxes * (s->owners + 1) > s->boxes;
}

static bool fits_boxes(const struct scheduler *s, const struct scheduler_queue *q,
                       const struct scheduler_entry *e)
{
	size_t max = s->config.boxes_max;

	/* The box of an OPEN is held already. */
	if (max == 0 || e->work == SCHEDULER_OPEN)
		return true;
	return s->boxes < max - (is_over_share(s, q) ? max / BOXES_KEPT : 0);
}

static void sample_memory(struct scheduler *s, uint64_t now_us)
{
	s->available_bytes = s->config.measure(s->config.ctx);
	s->sampled_us = now_us;
	s->samples++;
	s->recent_bytes[s->samples % ARRAY_SIZE(s->recent_bytes)] = 0;
}

static bool fits_memory(struct scheduler *s, const struct scheduler_queue *q,
                        const struct scheduler_entry *e, uint64_t now_us)
{
	uint64_t needed = s->config.memory_reserve;

	if (!s->config.measure)
		return true;
	if (s->samples == 0 || now_us >= s->sampled_us + SAMPLE_US)
		sample_memory(s, now_us);
	if (!is_over_share(s, q))
		needed /= 2;
	needed += s->recent_bytes[0] + s->recent_bytes[1] + e->memory_bytes / MEMORY_PART;
	/* Without boxes, waiting would not free memory. */
	return needed <= s->available_bytes || s->boxes == 0;
}

static void note_active(struct scheduler *s, const struct scheduler_queue *q, uint64_t now_us)
{
	if (s->active[0].queue != q)
		s->active[1] = s->active[0];
	s->active[0].queue = q;
	s->active[0].at_us = now_us;
}

static bool others_are_active(const struct scheduler *s, const struct scheduler_queue *q,
                              uint64_t now_us)
{
	size_t i = s->active[0].queue == q;

	return s->active[i].queue && now_us < s->active[i].at_us + ACTIVE_US;
}

/* One more for a tenant that opens nothing: another's slow box must not delay it. */
static bool fits_others(struct scheduler *s, const struct scheduler_queue *q, uint64_t now_us)
{
	if (!others_are_active(s, q, now_us))
		return true;
	if (s->opening > (size_t)(q->opening == 0))
		return false;
	if (now_us >= s->rest_until)
		return true;
	if (s->config.on_rest)
		s->config.on_rest(s->config.ctx, s->rest_until - now_us);
	return false;
}

static bool fits_machine(struct scheduler *s, const struct scheduler_queue *q,
                         const struct scheduler_entry *e, uint64_t now_us)
{
	if (e->work != SCHEDULER_OPEN && s->config.running_max &&
	    s->counts[SCHEDULER_RUNNING] >= s->config.running_max)
		return false;
	if (e->work == SCHEDULER_INSIDE)
		return true;
	if (s->building >= s->config.building_max + (q->building == 0) || !fits_boxes(s, q, e))
		return false;
	if (e->work == SCHEDULER_OPEN && !fits_others(s, q, now_us))
		return false;
	if (fits_memory(s, q, e, now_us))
		return true;
	if (s->config.on_short)
		s->config.on_short(s->config.ctx);
	return false;
}

static void admit_entry(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us)
{
	e->admitted_us = now_us;
	move_entry(s, e, SCHEDULER_RUNNING, now_us);
	if (e->work == SCHEDULER_INSIDE)
		return;
	e->sample = s->samples;
	count_recent(s, e, true);
	count_building(s, e, 1);
}

unsigned scheduler_retry_after(const struct scheduler *s)
{
	/* The queue advances by the running entries per hold time. */
	size_t running = s->counts[SCHEDULER_RUNNING] ? s->counts[SCHEDULER_RUNNING] : 1;
	uint64_t rounds = (s->counts[SCHEDULER_WAITING] + 1) / running + 1;
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
	size_t share = s->config.waiting_max / (s->queues + (own == 0));

	if (s->counts[SCHEDULER_WAITING] < s->config.waiting_max)
		return false;
	if (share == 0 && s->config.waiting_max > 0)
		share = 1;
	return own >= share;
}

/* No overtaking: whatever waits does not fit, or dispatch_turns is about to admit it. */
static bool may_begin(struct scheduler *s, const struct scheduler_queue *q,
                      const struct scheduler_entry *e, uint64_t now_us)
{
	if (!list_is_empty(&q->waiting[e->work]) ||
	    (s->dispatching && !list_is_empty(&s->turns[e->work])))
		return false;
	return fits_queue(q, e) && fits_machine(s, q, e, now_us);
}

int scheduler_enter(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us,
                    struct error *err)
{
	struct scheduler_queue *q = queue_of(s, e);

	assert(e->place == SCHEDULER_OUT);
	list_init(&e->node);
	if (e->work != SCHEDULER_OPEN)
		note_active(s, q, now_us);
	if (may_begin(s, q, e, now_us)) {
		admit_entry(s, e, now_us);
		return 0;
	}
	if (!e->patient && is_full(s, q))
		return error_later(err, ERR_BUSY, scheduler_retry_after(s) * USEC_PER_SEC,
		                   "%zu executions are running and %zu waiting; retry in %u s",
		                   s->counts[SCHEDULER_RUNNING], s->counts[SCHEDULER_WAITING],
		                   scheduler_retry_after(s));
	move_entry(s, e, SCHEDULER_WAITING, now_us);
	return 1;
}

void scheduler_resume(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us)
{
	if (e->place == SCHEDULER_RUNNING)
		return;
	if (e->place == SCHEDULER_OUT)
		list_init(&e->node);
	admit_entry(s, e, now_us);
	stop_building(s, e, now_us);
}

/* The queue that gets it goes to the end. */
static struct scheduler_entry *next_of(struct scheduler *s, enum scheduler_work work,
                                       uint64_t now_us)
{
	struct scheduler_turns *t;

	if (work != SCHEDULER_INSIDE && s->building > s->config.building_max)
		return NULL;
	LIST_FOREACH (t, &s->turns[work], struct scheduler_turns, node) {
		struct scheduler_entry *e = first_of(t->queue, work);

		if (!e || !fits_machine(s, t->queue, e, now_us))
			continue;
		list_remove(&t->node);
		list_append(&s->turns[work], &t->node);
		return e;
	}
	return NULL;
}

/* Kinds of work take turns, so that none waits for the bounds of another. */
static struct scheduler_entry *next_entry(struct scheduler *s, uint64_t now_us)
{
	for (int i = 0; i < SCHEDULER_WORK_COUNT; i++) {
		enum scheduler_work work = (s->next + i) % SCHEDULER_WORK_COUNT;
		struct scheduler_entry *e = next_of(s, work, now_us);

		if (!e)
			continue;
		s->next = (work + 1) % SCHEDULER_WORK_COUNT;
		return e;
	}
	return NULL;
}

/* on_turn may free places: the loop notices, a nested call returns at once. */
static void dispatch_turns(struct scheduler *s, uint64_t now_us)
{
	struct scheduler_entry *e;

	if (s->dispatching)
		return;
	s->dispatching = true;
	while ((e = next_entry(s, now_us))) {
		admit_entry(s, e, now_us);
		e->on_turn(e->ctx);
	}
	s->dispatching = false;
}

static void note_hold(struct scheduler *s, const struct scheduler_entry *e, uint64_t now_us)
{
	uint64_t held = now_us > e->admitted_us ? now_us - e->admitted_us : 0;

	if (e->work == SCHEDULER_OPEN)
		return;
	s->hold_us = s->hold_us == 0 ? held : (s->hold_us * (HOLD_WEIGHT - 1) + held) / HOLD_WEIGHT;
}

void scheduler_built(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us)
{
	if (!e->building)
		return;
	stop_building(s, e, now_us);
	dispatch_turns(s, now_us);
}

void scheduler_leave(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us)
{
	if (e->place != SCHEDULER_RUNNING)
		return;
	note_hold(s, e, now_us);
	move_entry(s, e, SCHEDULER_LEAVING, now_us);
	dispatch_turns(s, now_us);
}

void scheduler_out(struct scheduler *s, struct scheduler_entry *e, uint64_t now_us)
{
	if (e->place == SCHEDULER_OUT)
		return;
	if (e->place == SCHEDULER_RUNNING)
		note_hold(s, e, now_us);
	move_entry(s, e, SCHEDULER_OUT, now_us);
	dispatch_turns(s, now_us);
}

void scheduler_hold(struct scheduler *s, struct scheduler_queue *q, uint64_t bytes)
{
	q = q ? q : &s->common;
	count_box(s, q, 1, bytes);
	update_turns(s, q);
}

void scheduler_release(struct scheduler *s, struct scheduler_queue *q, uint64_t bytes,
                       uint64_t now_us)
{
	q = q ? q : &s->common;
	count_box(s, q, -1, bytes);
	scheduler_update(s, q, now_us);
}

void scheduler_update(struct scheduler *s, struct scheduler_queue *q, uint64_t now_us)
{
	update_turns(s, q);
	dispatch_turns(s, now_us);
}

void scheduler_poll(struct scheduler *s, uint64_t now_us)
{
	s->sampled_us = 0; /* old */
	dispatch_turns(s, now_us);
}

void scheduler_continue(struct scheduler *s, uint64_t now_us)
{
	dispatch_turns(s, now_us);
}

bool scheduler_is_congested(const struct scheduler *s)
{
	return !list_is_empty(&s->turns[SCHEDULER_INSIDE]) ||
	       !list_is_empty(&s->turns[SCHEDULER_FRESH]);
}

bool scheduler_delays_boxes(const struct scheduler *s)
{
	return !list_is_empty(&s->turns[SCHEDULER_OPEN]);
}
