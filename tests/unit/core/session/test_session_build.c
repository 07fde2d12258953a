/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "core/tenant/scheduler.h"
#include "session_agent.h"

/* Sessions whose boxes wait for their turn: one is built at a time. */

static int setup_one(void **state)
{
	struct fixture *f;
	int r = setup(state);

	f = *state;
	if (r == 0)
		run_service_scheduler(f->runs)->config.building_max = 1;
	return r;
}

static size_t boxes_of(struct fixture *f)
{
	struct session_service_stats stats;

	session_service_stats(f->service, &stats);
	return stats.boxes;
}

static void expect_nothing_left(struct fixture *f)
{
	const struct scheduler *s = run_service_scheduler(f->runs);

	settle(f);
	assert_int_equal(fake_box_count(f->driver), 0);
	assert_int_equal(boxes_of(f), 0);
	assert_int_equal(s->building, 0);
	assert_int_equal(s->boxes, 0);
	assert_false(scheduler_is_congested(s));
}

static void boxes_are_built_in_turn(void **state)
{
	struct fixture *f = *state;
	struct session *a = create(f), *b = create(f);
	struct run_record *e;

	assert_int_equal(fake_box_count(f->driver), 1);
	assert_null(info_of(b).box_id);
	expect_state(b, SESSION_CREATING);
	e = execute(f, b);
	assert_non_null(e);
	fake_ready(box_of(f, a));
	expect_state(a, SESSION_READY);
	assert_int_equal(fake_box_count(f->driver), 2);
	expect_state(b, SESSION_CREATING);
	fake_ready(box_of(f, b));
	expect_state(b, SESSION_RUNNING);
	session_terminate(a, "over");
	session_terminate(b, "over");
	expect_nothing_left(f);
}

static void one_that_ends_while_it_waits_needs_no_box(void **state)
{
	struct fixture *f = *state;
	struct session *a = create(f), *b = create(f), *c = create(f);

	session_terminate(b, "over");
	assert_int_equal(boxes_of(f), 2);
	session_terminate(a, "over"); /* its box is still to go */
	settle(f);
	assert_int_equal(fake_box_count(f->driver), 1);
	fake_ready(box_of(f, c));
	session_terminate(c, "over");
	expect_nothing_left(f);
}

static void time_of_waiting_is_not_time_of_building(void **state)
{
	struct fixture *f = *state;
	struct session *a, *b;

	session_service_free(f->service);
	run_service_free(f->runs);
	make_services(f, 500 * USEC_PER_MS);
	run_service_scheduler(f->runs)->config.building_max = 1;
	a = create(f);
	pass(f, 100 * USEC_PER_MS);
	b = create(f);
	for (int i = 0; i < 1000 && info_of(a).state != SESSION_FAILED; i++)
		pass(f, 10 * USEC_PER_MS);
	/* The time of b began when a failed. */
	expect_state(a, SESSION_FAILED);
	expect_state(b, SESSION_CREATING);
	fake_ready(box_of(f, b));
	expect_state(b, SESSION_READY);
	session_terminate(b, "over");
	expect_nothing_left(f);
}

static void box_refused_in_its_turn_fails_the_session(void **state)
{
	struct fixture *f = *state;
	struct session *a = create(f), *b = create(f), *c = create(f);
	struct error err = {0};

	(void)error_set(&err, ERR_UNAVAILABLE, 0, "no engine");
	fake_refuse_next(f->driver, &err);
	fake_ready(box_of(f, a));
	expect_state(b, SESSION_FAILED);
	fake_ready(box_of(f, c)); /* the next one had its turn */
	session_terminate(a, "over");
	session_terminate(c, "over");
	expect_nothing_left(f);
}

/* Executions of sessions that exist do not wait for boxes of others. */
static void runs_inside_need_no_turn(void **state)
{
	struct fixture *f = *state;
	struct session *a = ready(f), *b = create(f), *c = create(f);

	(void)run(f, a);
	assert_int_equal(fake_box_count(f->driver), 2);
	assert_null(info_of(c).box_id);
	expect_state(a, SESSION_READY);
	session_terminate(c, "over");
	session_terminate(b, "over");
	session_terminate(a, "over");
	expect_nothing_left(f);
}

static void service_can_be_freed_while_boxes_wait(void **state)
{
	struct fixture *f = *state;

	(void)create(f);
	(void)create(f);
	assert_int_equal(fake_box_count(f->driver), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_one, teardown)
	const struct CMUnitTest tests[] = {
		TEST(boxes_are_built_in_turn),
		TEST(one_that_ends_while_it_waits_needs_no_box),
		TEST(time_of_waiting_is_not_time_of_building),
		TEST(box_refused_in_its_turn_fails_the_session),
		TEST(runs_inside_need_no_turn),
		TEST(service_can_be_freed_while_boxes_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
