/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <signal.h>

#include "core/pool/pool.h"
#include "run_fixture.h"

/* A process that waits in a pooled box may have died unnoticed: its execution then gets a new box,
 * unless a line of its code may have run. */

static int setup_pools(void **state)
{
	struct runners *runners =
		fixture_runners_with("prepare_command: [/bin/sh, '{runner}/run', '-']\n"
	                             "zygote: run.zygote\n");

	return setup_with(state, runners, "true");
}

static struct pools_totals totals(struct fixture *f)
{
	struct pools_totals t;

	pools_totals(run_service_pools(f->service), &t);
	return t;
}

/* Two members, of which the next run takes the second. */
static struct box *fill(struct fixture *f)
{
	uint64_t deadline = clock_us() + 5 * USEC_PER_SEC;

	run_service_prepare(f->service);
	while (fake_box_count(f->driver) < 2 && clock_us() < deadline)
		loop_pass(f->loop, USEC_PER_MS);
	for (size_t i = 0; i < 2; i++)
		fake_prepared(box_at(f, i), POOL_EXEC_ID);
	assert_int_equal(totals(f).ready, 2);
	return box_at(f, 1);
}

static struct box *take(struct fixture *f, struct heard *h)
{
	struct box *box = fill(f);

	start(f, h);
	assert_int_equal(totals(f).ready, 1);
	assert_string_equal(fake_exec_of(box, EXEC_ID)->source, "main.x");
	return box;
}

static void untaken(struct box *box)
{
	const struct exec_facts facts = {.signalled = true, .status = SIGKILL, .untaken = true};

	fake_done(box, EXEC_ID, &facts);
}

/* The new box, whose program it executes. */
static struct box *newest(struct fixture *f)
{
	size_t count = fake_box_count(f->driver);
	struct box *box = box_at(f, count - 1);

	assert_string_equal(fake_exec_last(box)->argv[1], "/opt/millibox/runners/demo/run");
	return box;
}

static void expect_cold_success(struct fixture *f, struct heard *h)
{
	const struct exec_facts facts = {.stdout_bytes = 2};
	struct box *box = newest(f);

	assert_int_equal(h->ends + h->errors, 0);
	fake_ready(box);
	fake_started(box, EXEC_ID);
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "hi", 2);
	fake_done(box, EXEC_ID, &facts);
	assert_int_equal(h->ends, 1);
	assert_int_equal(h->starts, 1);
	assert_int_equal(h->outcome.status, OUTCOME_SUCCESS);
	assert_false(h->outcome.pooled);
	assert_string_equal(h->out, "hi");
	assert_int_equal(totals(f).hits, 0);
	assert_int_equal(totals(f).misses, 1);
}

static void unread_code_gets_a_new_box(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box = take(f, &h);

	fake_started(box, EXEC_ID);
	untaken(box);
	assert_true(fake_is_destroyed(box));
	expect_cold_success(f, &h);
}

static void a_box_that_was_lost_before_its_start_is_replaced(void **state)
{
	struct fixture *f = *state;
	const struct error err = {.code = ERR_AGENT_LOST, .msg = "gone"};
	struct heard h = {0};

	fake_lost(take(f, &h), &err);
	expect_cold_success(f, &h);
}

static void a_start_that_failed_is_tried_elsewhere(void **state)
{
	struct fixture *f = *state;
	const struct error err = {.code = ERR_BOX_FAILED, .msg = "it ended"};
	struct heard h = {0};

	fake_exec_failed(take(f, &h), EXEC_ID, &err);
	expect_cold_success(f, &h);
}

static void expect_killed(struct fixture *f, const struct heard *h)
{
	assert_int_equal(h->ends, 1);
	assert_int_equal(h->outcome.signal, SIGKILL);
	assert_true(h->outcome.pooled);
	assert_int_equal(totals(f).hits, 1);
	assert_int_equal(totals(f).misses, 0);
}

static void code_that_was_read_is_not_run_again(void **state)
{
	struct fixture *f = *state;
	const struct exec_facts killed = {.signalled = true, .status = SIGKILL};
	struct heard h = {0};
	struct box *box = take(f, &h);

	fake_started(box, EXEC_ID);
	fake_done(box, EXEC_ID, &killed);
	expect_killed(f, &h);
}

static void a_run_killed_by_its_caller_is_not_repeated(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box = take(f, &h);

	fake_started(box, EXEC_ID);
	assert_int_equal(run_signal(h.exec, SIGKILL, &f->err), 0);
	untaken(box);
	expect_killed(f, &h);
}

static void a_box_that_was_lost_after_its_start_is_the_outcome(void **state)
{
	struct fixture *f = *state;
	const struct error err = {.code = ERR_AGENT_LOST, .msg = "gone"};
	struct heard h = {0};
	struct box *box = take(f, &h);

	fake_started(box, EXEC_ID);
	fake_lost(box, &err);
	assert_int_equal(h.ends, 1);
	assert_true(h.outcome.pooled);
	assert_int_equal(totals(f).misses, 0);
}

static void a_second_loss_is_reported(void **state)
{
	struct fixture *f = *state;
	const struct error err = {.code = ERR_AGENT_LOST, .msg = "gone"};
	struct heard h = {0};
	struct box *box = take(f, &h);

	fake_started(box, EXEC_ID);
	untaken(box);
	fake_lost(newest(f), &err);
	assert_int_equal(h.errors, 1);
	assert_int_equal(h.error.code, ERR_AGENT_LOST);
}

static void input_that_came_meanwhile_goes_along(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	f->request.stdin_open = true;
	box = take(f, &h);
	fake_started(box, EXEC_ID);
	assert_int_equal(run_stdin(h.exec, "abc", 3, true, &f->err), 0);
	untaken(box);
	assert_string_equal(fake_exec_last(newest(f))->stdin_data, "abc");
	assert_false(fake_exec_last(newest(f))->stdin_open);
	expect_cold_success(f, &h);
}

/* More than is kept for a program that has not started. */
static void a_program_that_runs_takes_any_input(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *much = xcalloc(1, 800 << 10);
	struct heard h = {0};
	struct box *box;

	f->request.stdin_open = true;
	box = take(f, &h);
	fake_started(box, EXEC_ID);
	assert_int_equal(run_stdin(h.exec, much, 800 << 10, false, &f->err), 0);
	assert_int_equal(run_stdin(h.exec, much, 800 << 10, true, &f->err), 0);
	untaken(box);
	expect_killed(f, &h);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_pools, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(unread_code_gets_a_new_box),
		TEST(a_box_that_was_lost_before_its_start_is_replaced),
		TEST(a_start_that_failed_is_tried_elsewhere),
		TEST(code_that_was_read_is_not_run_again),
		TEST(a_run_killed_by_its_caller_is_not_repeated),
		TEST(a_box_that_was_lost_after_its_start_is_the_outcome),
		TEST(a_second_loss_is_reported),
		TEST(input_that_came_meanwhile_goes_along),
		TEST(a_program_that_runs_takes_any_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
