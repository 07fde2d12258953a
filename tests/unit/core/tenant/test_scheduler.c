/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "core/tenant/scheduler.h"

#define SECOND 1000000ULL

/* An execution whose turn is recorded; some give up their place at once. */
struct job {
	struct scheduler_entry entry;
	struct scheduler *scheduler;
	char name;
	bool quits;
};

static char turns[2048];

static void on_turn(void *ctx)
{
	struct job *j = ctx;
	size_t n = strlen(turns);

	assert_int_equal(j->entry.place, SCHEDULER_RUNNING);
	turns[n] = j->name;
	turns[n + 1] = '\0';
	if (j->quits)
		scheduler_out(j->scheduler, &j->entry, 0);
}

static void init(struct scheduler *s, size_t running, size_t waiting, size_t boxes)
{
	scheduler_init(s, &(struct scheduler_config){.running_max = running,
	                                             .building_max = 1000,
	                                             .waiting_max = waiting,
	                                             .boxes_max = boxes});
}

static struct job make(struct scheduler *s, char name)
{
	return (struct job){.entry.on_turn = on_turn,
	                    .entry.work = SCHEDULER_FRESH,
	                    .scheduler = s,
	                    .name = name};
}

static int enter(struct job *j)
{
	struct error err = {0};

	j->entry.ctx = j;
	return scheduler_enter(j->scheduler, &j->entry, 0, &err);
}

static int enter_at(struct job *j, uint64_t memory_bytes, uint64_t now_us)
{
	struct error err = {0};

	j->entry.ctx = j;
	j->entry.memory_bytes = memory_bytes;
	return scheduler_enter(j->scheduler, &j->entry, now_us, &err);
}

static int reset(void **state)
{
	(void)state;
	turns[0] = '\0';
	return 0;
}

static void places_then_queue_then_refusal(void **state)
{
	struct scheduler s;
	struct error err = {0};
	struct job a, b, c, d;

	(void)state;
	init(&s, 2, 1, 4);
	a = make(&s, 'a');
	b = make(&s, 'b');
	c = make(&s, 'c');
	d = make(&s, 'd');
	assert_int_equal(enter(&a), 0);
	assert_int_equal(enter(&b), 0);
	assert_int_equal(enter(&c), 1);
	assert_int_equal(scheduler_enter(&s, &d.entry, 0, &err), -1);
	assert_int_equal(err.code, ERR_BUSY);
	assert_non_null(strstr(err.msg, "2 executions are running and 1 waiting"));
	assert_int_equal(d.entry.place, SCHEDULER_OUT);
	assert_string_equal(turns, "");
	scheduler_out(&s, &a.entry, 0);
	assert_string_equal(turns, "c");
	assert_int_equal(s.counts[SCHEDULER_RUNNING], 2);
	assert_int_equal(s.counts[SCHEDULER_WAITING], 0);
}

static void first_come_is_first_served(void **state)
{
	struct scheduler s;
	struct job jobs[5];

	(void)state;
	init(&s, 1, 10, 2);
	for (int i = 0; i < 5; i++) {
		jobs[i] = make(&s, (char)('a' + i));
		assert_int_equal(enter(&jobs[i]), i > 0);
	}
	scheduler_out(&s, &jobs[2].entry, 0); /* gave up while waiting */
	for (int i = 0; i < 5; i++)
		scheduler_out(&s, &jobs[i].entry, 0);
	assert_string_equal(turns, "bde");
	assert_int_equal(s.counts[SCHEDULER_RUNNING] + s.counts[SCHEDULER_WAITING] +
	                         s.counts[SCHEDULER_LEAVING],
	                 0);
}

static void leaving_frees_the_place_but_not_the_box(void **state)
{
	struct scheduler s;
	struct job a, b, c;

	(void)state;
	init(&s, 1, 10, 2);
	a = make(&s, 'a');
	b = make(&s, 'b');
	c = make(&s, 'c');
	assert_int_equal(enter(&a), 0);
	assert_int_equal(enter(&b), 1);
	assert_int_equal(enter(&c), 1);
	scheduler_leave(&s, &a.entry, 0);
	assert_string_equal(turns, "b");
	scheduler_leave(&s, &b.entry, 0);
	assert_string_equal(turns, "b"); /* two boxes are still going down */
	scheduler_leave(&s, &b.entry, 0);
	assert_int_equal(s.counts[SCHEDULER_LEAVING], 2);
	scheduler_out(&s, &a.entry, 0);
	assert_string_equal(turns, "bc");
	scheduler_out(&s, &a.entry, 0);
	assert_int_equal(s.counts[SCHEDULER_LEAVING], 1);
}

static void no_run_overtakes_the_queue(void **state)
{
	struct scheduler s;
	struct job a, b, c;

	(void)state;
	init(&s, 2, 10, 2);
	a = make(&s, 'a');
	b = make(&s, 'b');
	c = make(&s, 'c');
	assert_int_equal(enter(&a), 0);
	assert_int_equal(enter(&b), 0);
	scheduler_leave(&s, &a.entry, 0);
	assert_int_equal(enter(&c), 1); /* a place is free, a box is not */
	scheduler_out(&s, &a.entry, 0);
	assert_string_equal(turns, "c");
}

static void a_turn_given_up_at_once_passes_to_the_next(void **state)
{
	struct scheduler s;
	struct job jobs[4];

	(void)state;
	init(&s, 1, 10, 1);
	for (int i = 0; i < 4; i++) {
		jobs[i] = make(&s, (char)('a' + i));
		jobs[i].quits = i == 1 || i == 2;
		assert_int_equal(enter(&jobs[i]), i > 0);
	}
	scheduler_out(&s, &jobs[0].entry, 0);
	assert_string_equal(turns, "bcd");
	assert_int_equal(jobs[3].entry.place, SCHEDULER_RUNNING);
	assert_int_equal(s.counts[SCHEDULER_RUNNING], 1);
}

static void no_queue_at_all_is_possible(void **state)
{
	struct scheduler s;
	struct job a, b;

	(void)state;
	init(&s, 1, 0, 0); /* as many boxes as places at least */
	a = make(&s, 'a');
	b = make(&s, 'b');
	assert_int_equal(enter(&a), 0);
	assert_int_equal(enter(&b), -1);
}

static void patient_ones_wait_however_long_the_queue_is(void **state)
{
	struct scheduler s;
	struct job a, b, c, d;

	(void)state;
	init(&s, 1, 1, 2);
	a = make(&s, 'a');
	b = make(&s, 'b');
	c = make(&s, 'c');
	d = make(&s, 'd');
	c.entry.patient = true;
	assert_int_equal(enter(&a), 0);
	assert_int_equal(enter(&b), 1);
	assert_int_equal(enter(&c), 1);
	assert_int_equal(enter(&d), -1);
	scheduler_out(&s, &a.entry, 0);
	scheduler_out(&s, &b.entry, 0);
	assert_string_equal(turns, "bc"); /* in their order */
	scheduler_out(&s, &c.entry, 0);
}

static void retry_follows_how_long_places_are_held(void **state)
{
	struct scheduler s;
	struct error err = {0};
	struct job a, b;

	(void)state;
	init(&s, 1, 10, 2);
	a = make(&s, 'a');
	b = make(&s, 'b');
	assert_int_equal(scheduler_retry_after(&s), 1);
	assert_int_equal(scheduler_enter(&s, &a.entry, 5 * SECOND, &err), 0);
	scheduler_leave(&s, &a.entry, 9 * SECOND);
	scheduler_out(&s, &a.entry, 9 * SECOND);
	assert_int_equal(s.hold_us, 4 * SECOND);
	assert_int_equal(scheduler_retry_after(&s),
	                 8); /* a round for the running one, one for itself */
	assert_int_equal(scheduler_enter(&s, &b.entry, 9 * SECOND, &err), 0);
	scheduler_out(&s, &b.entry, 9 * SECOND);
	assert_int_equal(s.hold_us, 3500000);
	assert_int_equal(scheduler_enter(&s, &b.entry, 0, &err), 0);
	scheduler_out(&s, &b.entry, 5000 * SECOND);
	assert_int_equal(scheduler_retry_after(&s), 60);
	/* A clock that seems to go back is ignored. */
	assert_int_equal(scheduler_enter(&s, &b.entry, 9 * SECOND, &err), 0);
	scheduler_out(&s, &b.entry, 1 * SECOND);
	assert_true(s.hold_us < 600 * SECOND);
}

/* Tenants. */

static struct job of(struct scheduler *s, struct scheduler_queue *q, char name)
{
	struct job j = make(s, name);

	j.entry.queue = q;
	return j;
}

static void thousand_of_one_do_not_delay_the_first_of_another(void **state)
{
	static struct job many[1000];
	struct scheduler s;
	struct scheduler_queue a, b;
	struct job one;

	(void)state;
	init(&s, 1, 2000, 1);
	scheduler_queue_init(&a);
	scheduler_queue_init(&b);
	for (size_t i = 0; i < 1000; i++) {
		many[i] = of(&s, &a, 'a');
		assert_int_equal(enter(&many[i]), i > 0);
	}
	one = of(&s, &b, 'b');
	assert_int_equal(enter(&one), 1);
	scheduler_out(&s, &many[0].entry, 0);
	assert_string_equal(turns, "a"); /* was first in turn already */
	scheduler_out(&s, &many[1].entry, 0);
	assert_string_equal(turns, "ab");
	assert_int_equal(one.entry.place, SCHEDULER_RUNNING);
}

static void queues_take_turns(void **state)
{
	struct scheduler s;
	struct scheduler_queue q[3];
	struct job jobs[9], running;

	(void)state;
	init(&s, 1, 100, 1);
	for (int i = 0; i < 3; i++)
		scheduler_queue_init(&q[i]);
	running = of(&s, NULL, '-');
	assert_int_equal(enter(&running), 0);
	for (int i = 0; i < 9; i++) { /* four of a, three of b, two of c */
		int who = i < 4 ? 0 : i < 7 ? 1 : 2;

		jobs[i] = of(&s, &q[who], (char)('a' + who));
		jobs[i].quits = true;
		assert_int_equal(enter(&jobs[i]), 1);
	}
	scheduler_out(&s, &running.entry, 0);
	assert_string_equal(turns, "abcabcaba");
	assert_int_equal(s.queues, 0);
	assert_true(!scheduler_is_congested(&s));
}

static void a_full_queue_does_not_bound_the_others(void **state)
{
	struct scheduler s;
	struct scheduler_queue a, b;
	struct job jobs[4];

	(void)state;
	init(&s, 4, 100, 8);
	scheduler_queue_init(&a);
	scheduler_queue_init(&b);
	a.running_max = 1;
	for (int i = 0; i < 3; i++) {
		jobs[i] = of(&s, &a, (char)('1' + i));
		assert_int_equal(enter(&jobs[i]), i > 0); /* there are places, but not for a */
	}
	jobs[3] = of(&s, &b, 'b');
	assert_int_equal(enter(&jobs[3]), 0);
	scheduler_out(&s, &jobs[3].entry, 0);
	assert_string_equal(turns, "");
	scheduler_leave(&s, &jobs[0].entry, 0);
	assert_string_equal(turns, "2");
	a.running_max = 2; /* a larger quota takes effect when it is set */
	scheduler_update(&s, &a, 0);
	assert_string_equal(turns, "23");
	assert_int_equal(a.counts[SCHEDULER_RUNNING], 2);
}

static void memory_counts_until_the_box_is_gone(void **state)
{
	struct scheduler s;
	struct scheduler_queue q;
	struct job jobs[3];

	(void)state;
	init(&s, 4, 100, 8);
	scheduler_queue_init(&q);
	q.memory_max = 100;
	scheduler_hold(&s, &q, 30);
	for (int i = 0; i < 3; i++) {
		jobs[i] = of(&s, &q, (char)('1' + i));
		jobs[i].entry.memory_bytes = i < 2 ? 60 : 5;
		assert_int_equal(enter(&jobs[i]), i > 0);
	}
	assert_int_equal(q.memory_bytes, 90);
	scheduler_leave(&s, &jobs[0].entry, 0); /* the third would fit, but must not overtake */
	assert_string_equal(turns, "");
	scheduler_out(&s, &jobs[0].entry, 0);
	assert_string_equal(turns, "23");
	assert_int_equal(q.memory_bytes, 95);
	scheduler_out(&s, &jobs[1].entry, 0);
	scheduler_out(&s, &jobs[2].entry, 0);
	scheduler_release(&s, &q, 30, 0);
	assert_int_equal(q.memory_bytes, 0);
}

static void a_full_queue_rejects_its_largest_tenant(void **state)
{
	struct scheduler s;
	struct scheduler_queue a, b;
	struct job running, of_a[5], of_b[4];

	(void)state;
	init(&s, 1, 4, 1);
	scheduler_queue_init(&a);
	scheduler_queue_init(&b);
	running = of(&s, NULL, '-');
	assert_int_equal(enter(&running), 0);
	for (int i = 0; i < 5; i++) {
		of_a[i] = of(&s, &a, 'a');
		assert_int_equal(enter(&of_a[i]), i < 4 ? 1 : -1);
	}
	for (int i = 0; i < 4; i++) {
		of_b[i] = of(&s, &b, 'b');
		assert_int_equal(enter(&of_b[i]), i < 2 ? 1 : -1); /* half, as there are two */
	}
}

/* Building is bounded, running is not. */
static void built_boxes_make_room_for_others(void **state)
{
	struct scheduler s;
	struct job jobs[3];

	(void)state;
	scheduler_init(&s, &(struct scheduler_config){.building_max = 1, .waiting_max = 10});
	for (int i = 0; i < 3; i++)
		jobs[i] = make(&s, (char)('a' + i));
	assert_int_equal(enter(&jobs[0]), 0);
	assert_int_equal(enter(&jobs[1]), 1);
	assert_int_equal(enter(&jobs[2]), 1);
	scheduler_built(&s, &jobs[0].entry, 0);
	assert_string_equal(turns, "b");
	scheduler_built(&s, &jobs[0].entry, 0); /* again: no effect */
	assert_string_equal(turns, "b");
	scheduler_leave(&s, &jobs[1].entry, 0); /* it was never built */
	assert_string_equal(turns, "bc");
	assert_int_equal(s.counts[SCHEDULER_RUNNING], 2);
	for (int i = 0; i < 3; i++)
		scheduler_out(&s, &jobs[i].entry, 0);
	assert_int_equal(s.building, 0);
	assert_int_equal(s.boxes, 0);
	assert_int_equal(s.owners, 0);
}

static void executions_in_existing_boxes_need_no_building_place(void **state)
{
	struct scheduler s;
	struct job a, b, c;

	(void)state;
	scheduler_init(&s, &(struct scheduler_config){.building_max = 1, .waiting_max = 10});
	a = make(&s, 'a');
	b = make(&s, 'b');
	c = make(&s, 'c');
	c.entry.work = SCHEDULER_INSIDE;
	assert_int_equal(enter(&a), 0);
	assert_int_equal(enter(&b), 1);
	assert_int_equal(enter(&c), 0);
	assert_int_equal(s.boxes, 1);
}

/* A tenant whose boxes take long to build does not stop the others. */
static void last_building_place_is_for_a_tenant_without_one(void **state)
{
	struct scheduler_queue a, b;
	struct scheduler s;
	struct job jobs[6];

	(void)state;
	scheduler_init(&s, &(struct scheduler_config){.building_max = 2, .waiting_max = 10});
	scheduler_queue_init(&a);
	scheduler_queue_init(&b);
	for (int i = 0; i < 4; i++) {
		jobs[i] = of(&s, &a, (char)('a' + i));
		assert_int_equal(enter(&jobs[i]), i < 2 ? 0 : 1);
	}
	jobs[4] = of(&s, &b, 'x');
	jobs[5] = of(&s, &b, 'y');
	assert_int_equal(enter(&jobs[4]), 0);
	assert_int_equal(enter(&jobs[5]), 1);
	scheduler_built(&s, &jobs[4].entry, 0);
	assert_string_equal(turns, "y");
	scheduler_built(&s, &jobs[0].entry, 0);
	assert_string_equal(turns, "y"); /* two are building still */
	scheduler_built(&s, &jobs[1].entry, 0);
	assert_string_equal(turns, "yc");
}

/* Opening sessions and executions of one tenant wait for different things. */
static void sessions_open_while_executions_are_at_their_quota(void **state)
{
	struct scheduler_queue q;
	struct scheduler s;
	struct job a, b, c, d;

	(void)state;
	scheduler_init(&s, &(struct scheduler_config){.building_max = 1, .waiting_max = 0});
	scheduler_queue_init(&q);
	q.running_max = 1;
	a = of(&s, &q, 'a');
	b = of(&s, &q, 'b');
	c = of(&s, &q, 'c');
	d = of(&s, &q, 'd');
	b.entry.patient = c.entry.patient = d.entry.patient = true;
	c.entry.work = d.entry.work = SCHEDULER_OPEN;
	assert_int_equal(enter(&a), 0);
	assert_int_equal(enter(&b), 1);
	assert_int_equal(enter(&c), 1);
	assert_int_equal(enter(&d), 1);
	scheduler_built(&s, &a.entry, 0);
	assert_string_equal(turns, "c");
	assert_int_equal(s.counts[SCHEDULER_RUNNING], 1); /* executions only */
	assert_int_equal(s.counts[SCHEDULER_WAITING], 1);
	scheduler_out(&s, &c.entry, 0);
	assert_string_equal(turns, "cd");
	scheduler_out(&s, &a.entry, 0);
	assert_string_equal(turns, "cd"); /* one place */
	scheduler_out(&s, &d.entry, 0);
	assert_string_equal(turns, "cdb");
}

static void kinds_of_work_take_turns(void **state)
{
	struct scheduler s;
	struct job running, jobs[4];

	(void)state;
	scheduler_init(&s, &(struct scheduler_config){.building_max = 1, .waiting_max = 10});
	running = make(&s, '-');
	assert_int_equal(enter(&running), 0);
	for (int i = 0; i < 4; i++) {
		jobs[i] = make(&s, (char)('a' + i));
		jobs[i].entry.work = i < 2 ? SCHEDULER_OPEN : SCHEDULER_FRESH;
		jobs[i].quits = true;
		assert_int_equal(enter(&jobs[i]), 1);
	}
	scheduler_built(&s, &running.entry, 0);
	assert_string_equal(turns, "cadb");
}

static uint64_t rest_us;

static void on_rest(void *ctx, uint64_t delay_us)
{
	(void)ctx;
	rest_us = delay_us;
}

static void init_opening(struct scheduler *s, struct scheduler_queue *queues, size_t count)
{
	rest_us = 0;
	scheduler_init(s, &(struct scheduler_config){
				  .building_max = 4, .waiting_max = 10, .on_rest = on_rest});
	for (size_t i = 0; i < count; i++)
		scheduler_queue_init(&queues[i]);
}

static struct job opening(struct scheduler *s, struct scheduler_queue *q, char name)
{
	struct job j = of(s, q, name);

	j.entry.work = SCHEDULER_OPEN;
	j.entry.patient = true;
	return j;
}

static void sessions_of_one_tenant_open_at_the_same_time(void **state)
{
	struct scheduler_queue q;
	struct scheduler s;
	struct job own, jobs[3];

	(void)state;
	init_opening(&s, &q, 1);
	own = of(&s, &q, 'x'); /* its own executions do not count */
	assert_int_equal(enter(&own), 0);
	for (int i = 0; i < 3; i++) {
		jobs[i] = opening(&s, &q, (char)('a' + i));
		assert_int_equal(enter(&jobs[i]), 0);
	}
	assert_int_equal(s.opening, 3);
	scheduler_out(&s, &jobs[0].entry, SECOND);
	assert_int_equal(s.opening, 2);
	jobs[0] = opening(&s, &q, 'd');
	assert_int_equal(enter_at(&jobs[0], 0, SECOND), 0);
	assert_int_equal(rest_us, 0);
}

/* One at a time, and then the builder rests; executions do not wait for that. */
static void sessions_open_slowly_beside_executions_of_others(void **state)
{
	struct scheduler_queue q[2];
	struct scheduler s;
	struct job jobs[3], runs[2];

	(void)state;
	init_opening(&s, q, 2);
	for (int i = 0; i < 2; i++)
		runs[i] = of(&s, &q[1], 'x');
	assert_int_equal(enter_at(&runs[0], 0, 0), 0);
	for (int i = 0; i < 3; i++) {
		jobs[i] = opening(&s, &q[0], (char)('a' + i));
		assert_int_equal(enter_at(&jobs[i], 0, 0), i > 0);
	}
	assert_true(scheduler_delays_boxes(&s));
	assert_false(scheduler_is_congested(&s));
	scheduler_out(&s, &jobs[0].entry, 1000);
	assert_string_equal(turns, "");
	assert_int_equal(rest_us, 2000);
	assert_int_equal(enter_at(&runs[1], 0, 1000), 0);
	scheduler_continue(&s, 3000);
	assert_string_equal(turns, "b");
	scheduler_out(&s, &jobs[1].entry, 3000 + 2 * SECOND);
	assert_int_equal(rest_us, SECOND / 4); /* a slow box does not make all others slow */
	scheduler_continue(&s, 10 * SECOND);   /* no other tenant has executed for long */
	assert_string_equal(turns, "bc");
	assert_false(scheduler_delays_boxes(&s));
}

/* A tenant whose session takes long to open does not stop another's. */
static void last_opening_place_is_for_a_tenant_without_one(void **state)
{
	struct scheduler_queue q[3];
	struct scheduler s;
	struct job run, jobs[4];

	(void)state;
	init_opening(&s, q, 3);
	run = of(&s, &q[2], 'x');
	assert_int_equal(enter(&run), 0);
	for (int i = 0; i < 4; i++) {
		jobs[i] = opening(&s, &q[i / 2], (char)('a' + i));
		assert_int_equal(enter(&jobs[i]), i % 2);
	}
	scheduler_out(&s, &jobs[2].entry, 0);
	assert_string_equal(turns, "d");
}

static uint64_t memory;
static int shortages;

static uint64_t measure(void *ctx)
{
	(void)ctx;
	return memory;
}

static void on_short(void *ctx)
{
	(void)ctx;
	shortages++;
}

static void init_memory(struct scheduler *s, uint64_t available)
{
	memory = available;
	shortages = 0;
	scheduler_init(s, &(struct scheduler_config){.building_max = 1000,
	                                             .waiting_max = 1000,
	                                             .measure = measure,
	                                             .memory_reserve = 100,
	                                             .on_short = on_short});
}

/* A box counts a sixteenth of its limit until the measurement contains it. */
static void memory_bounds_what_begins(void **state)
{
	struct scheduler s;
	struct job jobs[8];

	(void)state;
	init_memory(&s, 100 + 3 * 10);
	for (int i = 0; i < 8; i++)
		jobs[i] = make(&s, (char)('a' + i));
	for (int i = 0; i < 3; i++)
		assert_int_equal(enter_at(&jobs[i], 160, 0), 0);
	assert_int_equal(shortages, 0);
	assert_int_equal(enter_at(&jobs[3], 160, 0), 1);
	assert_int_equal(shortages, 1);
	scheduler_out(&s, &jobs[0].entry, 0); /* it had hardly begun */
	assert_string_equal(turns, "d");
	assert_int_equal(enter_at(&jobs[4], 160, 0), 1);
	memory = 100 + 4 * 10; /* they use less than they may */
	scheduler_poll(&s, SECOND);
	assert_string_equal(turns, "de");
	scheduler_poll(&s, 2 * SECOND); /* the first three are measured */
	assert_int_equal(enter_at(&jobs[5], 160, 2 * SECOND), 0);
	assert_int_equal(enter_at(&jobs[6], 160, 2 * SECOND), 0);
	assert_int_equal(enter_at(&jobs[7], 16000, 2 * SECOND), 1);
}

static void first_box_needs_no_memory(void **state)
{
	struct scheduler s;
	struct job a, b;

	(void)state;
	init_memory(&s, 0);
	a = make(&s, 'a');
	b = make(&s, 'b');
	assert_int_equal(enter_at(&a, 160, 0), 0);
	assert_int_equal(enter_at(&b, 160, 0), 1);
	scheduler_out(&s, &a.entry, 0);
	assert_string_equal(turns, "b");
}

/* A tenant that uses up the memory leaves half of the reserve to the others. */
static void half_of_the_reserve_is_for_small_tenants(void **state)
{
	struct scheduler_queue a, b;
	struct scheduler s;
	struct job jobs[12], x, y;

	(void)state;
	init_memory(&s, 200);
	scheduler_queue_init(&a);
	scheduler_queue_init(&b);
	for (int i = 0; i < 12; i++) {
		jobs[i] = of(&s, &a, (char)('a' + i));
		assert_int_equal(enter_at(&jobs[i], 160, 0), i < 10 ? 0 : 1);
	}
	x = of(&s, &b, 'x');
	assert_int_equal(enter_at(&x, 160, 0), 0);
	memory = 55;
	y = of(&s, &b, 'y');
	assert_int_equal(enter_at(&y, 160, SECOND), 1);
	memory = 70;
	scheduler_poll(&s, 2 * SECOND);
	assert_string_equal(turns, "y");
}

static void last_boxes_are_for_small_tenants(void **state)
{
	struct scheduler_queue a, b;
	struct scheduler s;
	struct job jobs[16], x;

	(void)state;
	init(&s, 0, 100, 16);
	scheduler_queue_init(&a);
	scheduler_queue_init(&b);
	for (int i = 0; i < 16; i++) {
		jobs[i] = of(&s, &a, (char)('a' + i));
		assert_int_equal(enter(&jobs[i]), i < 14 ? 0 : 1);
	}
	x = of(&s, &b, 'x');
	assert_int_equal(enter(&x), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, reset)
	const struct CMUnitTest tests[] = {
		TEST(places_then_queue_then_refusal),
		TEST(first_come_is_first_served),
		TEST(leaving_frees_the_place_but_not_the_box),
		TEST(no_run_overtakes_the_queue),
		TEST(a_turn_given_up_at_once_passes_to_the_next),
		TEST(no_queue_at_all_is_possible),
		TEST(patient_ones_wait_however_long_the_queue_is),
		TEST(retry_follows_how_long_places_are_held),
		TEST(thousand_of_one_do_not_delay_the_first_of_another),
		TEST(queues_take_turns),
		TEST(a_full_queue_does_not_bound_the_others),
		TEST(memory_counts_until_the_box_is_gone),
		TEST(a_full_queue_rejects_its_largest_tenant),
		TEST(last_boxes_are_for_small_tenants),
		TEST(half_of_the_reserve_is_for_small_tenants),
		TEST(first_box_needs_no_memory),
		TEST(memory_bounds_what_begins),
		TEST(kinds_of_work_take_turns),
		TEST(sessions_of_one_tenant_open_at_the_same_time),
		TEST(sessions_open_slowly_beside_executions_of_others),
		TEST(last_opening_place_is_for_a_tenant_without_one),
		TEST(sessions_open_while_executions_are_at_their_quota),
		TEST(last_building_place_is_for_a_tenant_without_one),
		TEST(executions_in_existing_boxes_need_no_building_place),
		TEST(built_boxes_make_room_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
