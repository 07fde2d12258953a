/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "core/run/run_record_internal.h"
#include "core/session/session_internal.h"
#include "session_agent.h"

/* Runs beside the queue: docs/terminals.md. */

#define BESIDE_MAX 16

static int set_up(void **state, const char *output)
{
	const struct config_override settings[] = {
		{"admission.max_running", "2"}, {"admission.max_queued", "2"},
		{"limits.output", output},      {"limits.output_max", output},
		{"sessions.max", "4"},          {"sessions.queue", "3"},
		{"pools.enabled", "false"},     {"executions.background_output", "1Mi"},
	};
	struct fixture *f;

	if (setup(state) < 0)
		return -1;
	f = *state;
	session_service_free(f->service);
	run_service_free(f->runs);
	config_free(f->config);
	f->config = config_load(NULL, settings, ARRAY_SIZE(settings), &f->err);
	if (!f->config)
		return -1;
	make_services(f, 0);
	return 0;
}

/* For all runs beside queues. */
#define SHOWN_MAX ((size_t)1 << 20)

static int setup_crowd(void **state)
{
	return set_up(state, "4Mi");
}

static int setup_small(void **state)
{
	return set_up(state, "8");
}

static int setup_large(void **state)
{
	return set_up(state, "256Mi");
}

static struct run_record *start_beside(struct fixture *f, struct session *session, uint64_t rows)
{
	struct run_request before = f->code;
	struct run_record *e;

	f->code.background = true;
	f->code.tty_rows = rows;
	f->code.tty_cols = rows;
	f->code.stdin_open = rows > 0;
	e = execute(f, session);
	f->code = before;
	return e;
}

static int try_beside(struct fixture *f, struct session *session)
{
	return start_beside(f, session, 0) ? 0 : -1;
}

/* One that runs. */
static struct run_record *beside(struct fixture *f, struct session *session, uint64_t rows,
                                 uint32_t *ret_id)
{
	struct run_record *e = start_beside(f, session, rows);
	struct box *box = box_of(f, session);

	assert_non_null(e);
	assert_true(fake_exec_last(box)->beside);
	*ret_id = begin(box);
	assert_int_equal(record_of(e).state, RUN_RECORD_RUNNING);
	return e;
}

static void killed(struct box *box, uint32_t id)
{
	const struct exec_facts facts = {.signalled = true, .status = SIGKILL};

	assert_int_equal(fake_exec_of(box, id)->signo, SIGKILL);
	fake_done(box, id, &facts);
}

static void expect_running(const struct run_record *e)
{
	assert_int_equal(record_of(e).state, RUN_RECORD_RUNNING);
}

static void it_is_a_process_of_its_own_and_leaves_the_session_ready(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e;
	uint32_t id;

	e = beside(f, session, 0, &id);
	assert_int_equal(fake_exec_of(box, id)->runner, 0);
	assert_int_equal(fake_exec_of(box, id)->report_max, 0);
	expect_state(session, SESSION_READY);
	fake_output(box, id, OUTPUT_STDOUT, "hi", 2);
	fake_done(box, id, &(struct exec_facts){.status = 3, .stdout_bytes = 2});
	expect_status(e, OUTCOME_FAILED);
	assert_int_equal(record_of(e).outcome->exit_code, 3);
	assert_true(record_of(e).outcome->background);
	expect_state(session, SESSION_READY);
	assert_int_equal(running(f), 0);
}

static void the_queue_goes_on_beside_it(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e, *other;
	uint32_t id, second;

	e = beside(f, session, 0, &id);
	other = beside(f, session, 24, &second);
	/* The end of a queued run, and its death, leave them. */
	(void)run(f, session);
	(void)execute(f, session);
	die(box, begin(box), true, SIGSEGV);
	expect_running(e);
	expect_running(other);
	assert_int_equal(fake_exec_of(box, id)->signals, 0);
	assert_int_equal(fake_exec_of(box, second)->signals, 0);
	/* And so does the end of one. */
	fake_done(box, second, &(struct exec_facts){.status = 0});
	expect_status(other, OUTCOME_SUCCESS);
	expect_running(e);
	fake_done(box, id, &(struct exec_facts){.status = 0});
	expect_status(e, OUTCOME_SUCCESS);
}

static void one_more_than_the_maximum_is_refused(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *runs[BESIDE_MAX], *more;
	uint32_t ids[BESIDE_MAX], id;

	for (size_t i = 0; i < BESIDE_MAX; i++)
		runs[i] = beside(f, session, i % 2 ? 24 : 0, &ids[i]);
	expect_refused(f, try_beside(f, session), ERR_BUSY);
	/* The queue has a bound of its own. */
	(void)run(f, session);
	fake_done(box, ids[7], &(struct exec_facts){.status = 0});
	expect_status(runs[7], OUTCOME_SUCCESS);
	more = beside(f, session, 0, &id);
	expect_refused(f, try_beside(f, session), ERR_BUSY);
	expect_running(more);
}

static void the_end_of_the_session_ends_all(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct run_record *runs[BESIDE_MAX], *current;
	uint32_t id;

	for (size_t i = 0; i < BESIDE_MAX; i++)
		runs[i] = beside(f, session, i % 2 ? 24 : 0, &id);
	current = execute(f, session);
	(void)begin(box_of(f, session));
	session_terminate(session, "enough");
	settle(f);
	expect_status(current, OUTCOME_CANCELLED);
	for (size_t i = 0; i < BESIDE_MAX; i++)
		expect_status(runs[i], OUTCOME_CANCELLED);
	assert_int_equal(fake_box_count(f->driver), 0);
	assert_int_equal(running(f), 0);
	expect_refused(f, try_beside(f, session), ERR_CONFLICT);
}

static void a_deleted_session_takes_those_that_wait_along(void **state)
{
	struct fixture *f = *state;
	struct session *session = create(f);
	struct run_record *e = start_beside(f, session, 24);

	assert_non_null(e);
	assert_int_equal(record_of(e).state, RUN_RECORD_PENDING);
	session_delete(session); /* with its records */
	settle(f);
	assert_int_equal(fake_box_count(f->driver), 0);
	assert_int_equal(running(f), 0);
}

static void a_lost_box_ends_all(void **state)
{
	const struct error lost = {.code = ERR_AGENT_LOST, .msg = "lost"};
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct run_record *first, *second;
	uint32_t id;

	first = beside(f, session, 0, &id);
	second = beside(f, session, 24, &id);
	fake_lost(box_of(f, session), &lost);
	settle(f);
	assert_int_equal(record_of(first).state, RUN_RECORD_ENDED);
	assert_int_equal(record_of(second).state, RUN_RECORD_ENDED);
	expect_state(session, SESSION_FAILED);
	assert_int_equal(running(f), 0);
}

static void restart_ends_all_and_the_session_goes_on(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *first, *second;
	uint32_t ids[2], id;

	first = beside(f, session, 0, &ids[0]);
	second = beside(f, session, 24, &ids[1]);
	assert_int_equal(session_restart(session, &f->err), 0);
	killed(box, ids[0]);
	killed(box, ids[1]);
	expect_status(first, OUTCOME_CANCELLED);
	expect_status(second, OUTCOME_CANCELLED);
	expect_state(session, SESSION_READY);
	(void)run(f, session);
	expect_running(beside(f, session, 0, &id));
}

static void cancelling_one_ends_no_other(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *first, *second;
	uint32_t ids[2];

	first = beside(f, session, 0, &ids[0]);
	second = beside(f, session, 0, &ids[1]);
	assert_int_equal(run_record_cancel(first, &f->err), 0);
	killed(box, ids[0]);
	expect_status(first, OUTCOME_CANCELLED);
	assert_int_equal(fake_exec_of(box, ids[1])->signals, 0);
	expect_running(second);
}

/* What all of them print would be 6 MiB. */
static void their_output_is_bounded_together(void **state)
{
	static char page[64 * 1024];
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *runs[4], *shown[2];
	uint32_t ids[6];
	size_t held = 0;

	memset(page, 'x', sizeof(page));
	for (size_t i = 0; i < 4; i++)
		runs[i] = beside(f, session, 0, &ids[i]);
	for (size_t i = 0; i < 2; i++)
		shown[i] = beside(f, session, 24, &ids[4 + i]);
	for (size_t round = 0; round < 16; round++)
		for (size_t i = 0; i < 6; i++)
			fake_output(box, ids[i], OUTPUT_STDOUT, page, sizeof(page));
	for (size_t i = 0; i < 4; i++) {
		held += run_record_held(runs[i]);
		assert_in_range(run_record_printed(runs[i], OUTPUT_STDOUT)->len, 16 * 1024,
		                SHOWN_MAX);
	}
	for (size_t i = 0; i < 2; i++) {
		held += run_record_held(shown[i]);
		assert_in_range(run_record_printed(shown[i], OUTPUT_STDOUT)->len, 16 * 1024,
		                SHOWN_MAX);
	}
	/* A piece of each, in a buffer that has doubled, may come before its bound is seen. */
	assert_in_range(held, SHOWN_MAX / 2, 2 * SHOWN_MAX);
	/* Nothing is missing in the middle: what was dropped once stays dropped. */
	for (size_t i = 0; i < 5; i++)
		fake_done(box, ids[i], &(struct exec_facts){.stdout_bytes = SHOWN_MAX});
	expect_status(runs[3], OUTCOME_SUCCESS);
	assert_true(record_of(runs[3]).outcome->out_truncated);
	assert_false(record_of(shown[0]).outcome->out_truncated);
	assert_int_equal(f->runs->shown_bytes, run_record_held(shown[1]));
	fake_done(box, ids[5], &(struct exec_facts){.stdout_bytes = SHOWN_MAX});
	assert_int_equal(f->runs->shown_bytes, 0);
}

static void they_wait_for_the_box_and_for_its_resumption(void **state)
{
	struct fixture *f = *state;
	struct session *session = create(f);
	struct box *box = box_of(f, session);
	struct run_record *early = start_beside(f, session, 0), *late;

	assert_null(fake_exec_last(box));
	fake_ready(box);
	(void)begin(box);
	expect_running(early);
	assert_int_equal(session_pause(session, &f->err), 0);
	assert_true(fake_is_frozen(box));
	assert_int_equal(running(f), 0);
	late = start_beside(f, session, 0);
	assert_non_null(late);
	assert_int_equal(record_of(late).state, RUN_RECORD_PENDING);
	assert_int_equal(session_resume(session, &f->err), 0);
	(void)begin(box);
	expect_running(late);
	expect_running(early);
}

static void a_terminal_is_granted_what_was_recorded(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e;
	uint32_t id;

	/* More than its limit of output, which only pipes have. */
	e = beside(f, session, 24, &id);
	assert_int_equal(fake_exec_of(box, id)->rows, 24);
	for (int i = 0; i < 10; i++)
		fake_output(box, id, OUTPUT_STDOUT, "12345", 5);
	assert_int_equal(fake_exec_of(box, id)->granted, 50);
	assert_int_equal(fake_exec_of(box, id)->signals, 0);
	fake_done(box, id, &(struct exec_facts){.stdout_bytes = 50});
	expect_status(e, OUTCOME_SUCCESS);
	assert_int_equal(record_of(e).outcome->stdout_bytes, 50);
}

/* It keeps the end of what it shows, and never all that a record may have. */
static void the_record_of_a_terminal_has_room_for_more(void **state)
{
	struct fixture *f = *state;
	struct run_record *e;
	uint32_t id;

	e = beside(f, ready(f), 24, &id);
	assert_true(e->rolling > 0 && 2 * e->rolling < RUN_RECORD_OUTPUT_MAX);
}

/* They may wait for hours: executions have all places, also after a pause. */
static void they_take_no_place(void **state)
{
	struct fixture *f = *state; /* two places */
	struct session *s[3];
	struct run_record *e;
	uint32_t id;

	for (size_t i = 0; i < 3; i++) {
		s[i] = ready(f);
		for (size_t k = 0; k < 3; k++)
			(void)beside(f, s[i], 0, &id);
		assert_int_equal(session_pause(s[i], &f->err), 0);
	}
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(session_resume(s[i], &f->err), 0);
		expect_state(s[i], SESSION_READY);
	}
	assert_int_equal(running(f), 0);
	(void)run(f, s[0]);
	for (size_t i = 0; i < 2; i++) {
		(void)execute(f, s[i]);
		(void)begin(box_of(f, s[i]));
	}
	e = execute(f, s[2]);
	assert_int_equal(record_of(e).state, RUN_RECORD_PENDING);
	assert_int_equal(running(f), 2);
}

static void cancelling_one_in_a_pause_leaves_the_places_of_others(void **state)
{
	struct fixture *f = *state; /* two places */
	struct session *session = ready(f), *other[2];
	struct box *box = box_of(f, session);
	struct run_record *e, *current;
	uint32_t id, current_id;

	e = beside(f, session, 0, &id);
	current = execute(f, session);
	current_id = begin(box);
	assert_int_equal(session_pause(session, &f->err), 0);
	for (size_t i = 0; i < 2; i++) {
		other[i] = ready(f);
		(void)execute(f, other[i]);
		(void)begin(box_of(f, other[i]));
	}
	assert_int_equal(run_record_cancel(e, &f->err), 0);
	assert_true(fake_is_frozen(box));
	assert_int_equal(running(f), 2);
	done(box_of(f, other[0]), fake_exec_last(box_of(f, other[0]))->id, 0);
	assert_false(fake_is_frozen(box));
	assert_int_equal(running(f), 2);
	killed(box, id);
	expect_status(e, OUTCOME_CANCELLED);
	expect_running(current);
	done(box, current_id, 0);
	expect_status(current, OUTCOME_SUCCESS);
}

static void cancelling_the_only_one_in_a_pause_wakes_the_session(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e;
	uint32_t id;

	e = beside(f, session, 0, &id);
	assert_int_equal(session_pause(session, &f->err), 0);
	assert_int_equal(run_record_cancel(e, &f->err), 0);
	assert_false(fake_is_frozen(box));
	killed(box, id);
	expect_status(e, OUTCOME_CANCELLED);
	expect_state(session, SESSION_READY);
}

#define INPUT (1024 * 1024)

/* The agent of the driver makes no room. */
static void input_that_is_not_read_is_bounded(void **state)
{
	static const char input[INPUT];
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct run_record *e;
	size_t taken = 0;
	uint32_t id;

	e = beside(f, session, 24, &id);
	while (taken < 64 && run_record_stdin(e, input, INPUT, false, &f->err) == 0)
		taken++;
	assert_in_range(taken, 3, 5);
	assert_int_equal(f->err.code, ERR_BUSY);
	assert_true(session->service->queued_bytes >= 3 * INPUT);
	assert_int_equal(run_record_cancel(e, &f->err), 0);
	killed(box_of(f, session), id);
	assert_int_equal(session->service->queued_bytes, 0);
}

static void only_sessions_with_a_box_that_stays_have_them(void **state)
{
	struct fixture *f = *state;

	f->request.mode = SESSION_EPHEMERAL;
	expect_refused(f, try_beside(f, create(f)), ERR_INVALID);
	assert_int_equal(fake_box_count(f->driver), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_small, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_a_process_of_its_own_and_leaves_the_session_ready),
		TEST(the_queue_goes_on_beside_it),
		TEST(one_more_than_the_maximum_is_refused),
		TEST(the_end_of_the_session_ends_all),
		TEST(a_deleted_session_takes_those_that_wait_along),
		TEST(a_lost_box_ends_all),
		TEST(restart_ends_all_and_the_session_goes_on),
		TEST(cancelling_one_ends_no_other),
		TEST(they_wait_for_the_box_and_for_its_resumption),
		TEST(a_terminal_is_granted_what_was_recorded),
		cmocka_unit_test_setup_teardown(the_record_of_a_terminal_has_room_for_more,
	                                        setup_large, teardown),
		cmocka_unit_test_setup_teardown(their_output_is_bounded_together, setup_crowd,
	                                        teardown),
		TEST(they_take_no_place),
		TEST(cancelling_one_in_a_pause_leaves_the_places_of_others),
		TEST(cancelling_the_only_one_in_a_pause_wakes_the_session),
		TEST(input_that_is_not_read_is_bounded),
		TEST(only_sessions_with_a_box_that_stays_have_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
