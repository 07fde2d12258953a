/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "session_agent.h"

/* Names of the states, "ready running ...", oldest first. */
static const char *history(const struct session *session, char *ret_text, size_t size)
{
	struct session_step steps[SESSION_HISTORY_MAX];
	size_t count = session_history(session, steps);
	uint64_t before = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		size_t n = strlen(ret_text);

		assert_true(steps[i].at_ms >= before);
		before = steps[i].at_ms;
		(void)snprintf(ret_text + n, size - n, "%s ", session_state_name(steps[i].state));
	}
	return ret_text;
}

static void states_follow_the_life_of_a_session(void **state)
{
	struct fixture *f = *state;
	struct session *session = create(f);
	char text[400];

	assert_string_equal(history(session, text, sizeof(text)), "creating ");
	fake_ready(box_of(f, session));
	(void)run(f, session);
	assert_int_equal(session_pause(session, &f->err), 0);
	assert_int_equal(session_resume(session, &f->err), 0);
	session_terminate(session, "enough");
	assert_string_equal(history(session, text, sizeof(text)),
	                    "creating ready running ready paused ready terminated ");
	assert_string_equal(info_of(session).reason, "enough");
	assert_true(info_of(session).ended_ms >= info_of(session).created_ms);
}

static void history_keeps_the_last_steps(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct session_step steps[SESSION_HISTORY_MAX];

	for (int i = 0; i < 12; i++)
		(void)run(f, session);
	assert_int_equal(session_history(session, steps), SESSION_HISTORY_MAX);
	assert_int_equal(steps[SESSION_HISTORY_MAX - 1].state, SESSION_READY);
	assert_int_equal(steps[0].state, SESSION_RUNNING);
}

enum act {
	EXECUTE,
	PAUSE,
	RESUME,
	INTERRUPT,
	KEEPALIVE,
	ACT_COUNT
};

static int act(struct fixture *f, struct session *session, enum act what)
{
	struct run_record *e;

	error_clear(&f->err);
	switch (what) {
	case EXECUTE:
		return session_execute(session, &f->code, &e, &f->err);
	case PAUSE:
		return session_pause(session, &f->err);
	case RESUME:
		return session_resume(session, &f->err);
	case INTERRUPT:
		return session_interrupt(session, &f->err);
	case KEEPALIVE:
		return session_keepalive(session, &f->err);
	case ACT_COUNT:
		break;
	}
	return -1;
}

/* A new session in @state_. */
static struct session *bring_to(struct fixture *f, enum session_state state_)
{
	const struct error lost = {.code = ERR_AGENT_LOST, .msg = "lost"};
	struct session *session = create(f);
	struct box *box = box_of(f, session);

	if (state_ == SESSION_CREATING)
		return session;
	fake_ready(box);
	if (state_ == SESSION_RUNNING) {
		(void)execute(f, session);
		(void)begin(box);
	}
	if (state_ == SESSION_PAUSED)
		assert_int_equal(session_pause(session, &f->err), 0);
	if (state_ == SESSION_TERMINATED)
		session_terminate(session, "over");
	if (state_ == SESSION_FAILED)
		fake_lost(box, &lost);
	return session;
}

static void every_state_takes_what_it_can_and_refuses_the_rest(void **state)
{
	static const struct {
		bool can[ACT_COUNT];
	} rows[] = {
		[SESSION_CREATING] = {{[EXECUTE] = true, [KEEPALIVE] = true}},
		[SESSION_READY] = {{[EXECUTE] = true, [PAUSE] = true, [KEEPALIVE] = true}},
		[SESSION_RUNNING] = {{[EXECUTE] = true,
	                              [PAUSE] = true,
	                              [INTERRUPT] = true,
	                              [KEEPALIVE] = true}},
		[SESSION_PAUSED] = {{[EXECUTE] = true, [RESUME] = true, [KEEPALIVE] = true}},
		[SESSION_TERMINATED] = {{false}},
		[SESSION_FAILED] = {{false}},
	};
	struct fixture *f = *state;

	static_assert(ARRAY_SIZE(rows) == SESSION_STATE_COUNT, "every state has a row");
	for (int i = 0; i < SESSION_STATE_COUNT; i++)
		for (int what = 0; what < ACT_COUNT; what++) {
			struct session *session = bring_to(f, (enum session_state)i);

			expect_state(session, (enum session_state)i);
			if (rows[i].can[what])
				assert_int_equal(act(f, session, (enum act)what), 0);
			else
				expect_refused(f, act(f, session, (enum act)what), ERR_CONFLICT);
			session_delete(session);
			settle(f);
		}
	assert_int_equal(fake_box_count(f->driver), 0);
	assert_int_equal(running(f), 0);
}

/* Pause. */

/* Not interrupted early; a host that was too slow shows nothing. */
static void expect_left_alone(struct box *box, uint32_t id, uint64_t since_us, uint64_t time_us)
{
	unsigned signals = fake_exec_of(box, id)->signals;

	if (clock_us() - since_us < time_us)
		assert_int_equal(signals, 0);
}

static void clock_of_a_paused_execution_stands_still(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e, *queued;
	uint64_t begun, paused, resumed;
	uint32_t id;

	f->code.timeout_us = 150 * USEC_PER_MS;
	e = execute(f, session);
	begun = clock_us();
	id = begin(box);
	pass(f, 30 * USEC_PER_MS);
	assert_int_equal(session_pause(session, &f->err), 0);
	paused = clock_us();
	assert_true(fake_is_frozen(box));
	assert_int_equal(running(f), 0); /* its place is free */
	queued = execute(f, session);
	pass(f, 250 * USEC_PER_MS);
	assert_int_equal(fake_exec_of(box, id)->signals, 0);
	assert_int_equal(record_of(queued).state, RUN_RECORD_PENDING);
	resumed = clock_us();
	assert_int_equal(session_resume(session, &f->err), 0);
	assert_false(fake_is_frozen(box));
	expect_state(session, SESSION_RUNNING);
	assert_int_equal(running(f), 1);
	pass(f, 60 * USEC_PER_MS);
	if (paused - begun < 150 * USEC_PER_MS)
		expect_left_alone(box, id, resumed, 150 * USEC_PER_MS - (paused - begun));
	pass(f, 100 * USEC_PER_MS);
	assert_int_equal(fake_exec_of(box, id)->signo, SIGINT);
	expect_refused(f, session_pause(session, &f->err), ERR_CONFLICT); /* is being stopped */
	done(box, id, 0);
	expect_status(e, OUTCOME_TIMEOUT);
	done(box, begin(box), 0);
	expect_status(queued, OUTCOME_SUCCESS);
}

static void an_execution_that_ended_as_the_box_froze_is_recorded(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e = execute(f, session);
	struct run_record *queued = execute(f, session);
	uint32_t id = begin(box);

	assert_int_equal(session_pause(session, &f->err), 0);
	done(box, id, 0);
	expect_status(e, OUTCOME_SUCCESS);
	expect_state(session, SESSION_PAUSED);
	assert_int_equal(info_of(session).queued, 1);
	assert_int_equal(session_resume(session, &f->err), 0);
	expect_state(session, SESSION_RUNNING);
	done(box, begin(box), 0);
	expect_status(queued, OUTCOME_SUCCESS);
	expect_state(session, SESSION_READY);
}

static void start_that_crosses_the_pause_gets_its_whole_time(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	uint64_t resumed;
	uint32_t id;

	f->code.timeout_us = 60 * USEC_PER_MS;
	(void)execute(f, session);
	assert_int_equal(session_pause(session, &f->err), 0);
	id = begin(box);
	pass(f, 100 * USEC_PER_MS);
	resumed = clock_us();
	assert_int_equal(session_resume(session, &f->err), 0);
	pass(f, 20 * USEC_PER_MS);
	expect_left_alone(box, id, resumed, 60 * USEC_PER_MS);
	pass(f, 60 * USEC_PER_MS);
	assert_int_equal(fake_exec_of(box, id)->signo, SIGINT);
}

static void resumed_execution_waits_for_a_place(void **state)
{
	struct fixture *f = *state; /* two places */
	struct session *s[3];
	struct run_record *e[3];

	for (size_t i = 0; i < 3; i++)
		s[i] = ready(f);
	e[0] = execute(f, s[0]);
	(void)begin(box_of(f, s[0]));
	assert_int_equal(session_pause(s[0], &f->err), 0);
	for (size_t i = 1; i < 3; i++) {
		e[i] = execute(f, s[i]);
		(void)begin(box_of(f, s[i]));
	}
	assert_int_equal(session_resume(s[0], &f->err), 0);
	expect_state(s[0], SESSION_PAUSED);
	assert_int_equal(session_resume(s[0], &f->err), 0); /* on its way */
	assert_true(fake_is_frozen(box_of(f, s[0])));
	assert_int_equal(session_pause(s[0], &f->err), 0); /* or not */
	done(box_of(f, s[1]), fake_exec_last(box_of(f, s[1]))->id, 0);
	expect_state(s[0], SESSION_PAUSED);
	assert_int_equal(running(f), 1);
	e[1] = execute(f, s[1]);
	(void)begin(box_of(f, s[1]));
	assert_int_equal(session_resume(s[0], &f->err), 0);
	expect_state(s[0], SESSION_PAUSED);
	done(box_of(f, s[2]), fake_exec_last(box_of(f, s[2]))->id, 0);
	expect_state(s[0], SESSION_RUNNING);
	assert_false(fake_is_frozen(box_of(f, s[0])));
	assert_int_equal(running(f), 2);
	done(box_of(f, s[0]), fake_exec_last(box_of(f, s[0]))->id, 0);
	expect_status(e[0], OUTCOME_SUCCESS);
}

static void waiting_execution_goes_back_to_the_queue(void **state)
{
	struct fixture *f = *state;
	struct session *busy[2], *session;
	struct run_record *e, *second;

	for (size_t i = 0; i < 2; i++) {
		busy[i] = ready(f);
		(void)execute(f, busy[i]);
		(void)begin(box_of(f, busy[i]));
	}
	session = ready(f);
	e = execute(f, session);
	second = execute(f, session);
	assert_int_equal(info_of(session).queued, 1);
	assert_int_equal(session_pause(session, &f->err), 0);
	assert_int_equal(info_of(session).queued, 2);
	done(box_of(f, busy[0]), fake_exec_last(box_of(f, busy[0]))->id, 0);
	assert_null(fake_exec_last(box_of(f, session)));
	assert_int_equal(session_resume(session, &f->err), 0);
	done(box_of(f, session), begin(box_of(f, session)), 0);
	expect_status(e, OUTCOME_SUCCESS); /* still the first */
	done(box_of(f, session), begin(box_of(f, session)), 0);
	expect_status(second, OUTCOME_SUCCESS);
}

static void cancelling_what_is_paused_wakes_it(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e = execute(f, session);
	uint32_t id = begin(box);

	assert_int_equal(session_pause(session, &f->err), 0);
	assert_int_equal(run_record_cancel(e, &f->err), 0);
	assert_false(fake_is_frozen(box));
	assert_int_equal(fake_exec_of(box, id)->signo, SIGINT);
	done(box, id, 130);
	expect_status(e, OUTCOME_CANCELLED);
	expect_state(session, SESSION_READY);
}

static void driver_without_a_freezer_cannot_pause(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);

	f->driver->caps.can_freeze = false;
	expect_refused(f, session_pause(session, &f->err), ERR_UNAVAILABLE);
	expect_state(session, SESSION_READY);
}

/* Clocks. */

/* Keep @session until @other has ended. Return: false if the test itself stalled for longer than it
 * may be idle. */
static bool keep_meanwhile(struct fixture *f, struct session *session, const struct session *other)
{
	while (state_of(other) != SESSION_TERMINATED) {
		uint64_t kept = clock_us();

		pass(f, 10 * USEC_PER_MS);
		if (session_keepalive(session, &f->err) < 0) {
			assert_true(clock_us() - kept >= info_of(session).idle_timeout_us);
			return false;
		}
	}
	return true;
}

static void idle_session_ends(void **state)
{
	struct fixture *f = *state;
	struct session *session, *busy, *paused;

	f->request.idle_timeout_us = 400 * USEC_PER_MS;
	session = ready(f);
	busy = ready(f);
	paused = ready(f);
	(void)execute(f, busy);
	(void)begin(box_of(f, busy));
	assert_int_equal(session_pause(paused, &f->err), 0);
	if (!keep_meanwhile(f, session, paused))
		skip();
	expect_state(session, SESSION_READY);
	expect_state(busy, SESSION_RUNNING); /* a running execution keeps it */
	pass(f, 600 * USEC_PER_MS);
	expect_state(session, SESSION_TERMINATED);
	assert_non_null(strstr(info_of(session).reason, "idle"));
	expect_state(busy, SESSION_RUNNING);
	done(box_of(f, busy), fake_exec_last(box_of(f, busy))->id, 0);
	pass(f, 600 * USEC_PER_MS);
	expect_state(busy, SESSION_TERMINATED);
	assert_int_equal(fake_box_count(f->driver), 0);
}

static void old_session_ends_whatever_it_does(void **state)
{
	struct fixture *f = *state;
	const uint64_t since = clock_us();
	struct session *session;
	struct run_record *e, *queued;
	int r;

	f->request.lifetime_us = 60 * USEC_PER_MS;
	session = ready(f);
	assert_int_equal(info_of(session).idle_timeout_us, 60 * USEC_PER_MS);
	e = execute(f, session);
	queued = execute(f, session);
	(void)begin(box_of(f, session));
	pass(f, 30 * USEC_PER_MS);
	r = session_keepalive(session, &f->err);
	assert_true(r == 0 || clock_us() - since >= 60 * USEC_PER_MS);
	pass(f, 50 * USEC_PER_MS);
	expect_state(session, SESSION_TERMINATED);
	assert_non_null(strstr(info_of(session).reason, "lifetime"));
	expect_status(e, OUTCOME_CANCELLED);
	expect_status(queued, OUTCOME_CANCELLED);
	assert_int_equal(fake_box_count(f->driver), 0);
	assert_int_equal(running(f), 0);
}

static void clocks_are_bounded_by_the_configuration(void **state)
{
	struct fixture *f = *state;
	struct session *session = create(f);

	assert_int_equal(info_of(session).idle_timeout_us, f->config->session_idle_us);
	assert_int_equal(info_of(session).lifetime_us, f->config->session_lifetime_us);
	f->request.idle_timeout_us = UINT64_MAX;
	f->request.lifetime_us = UINT64_MAX;
	session = create(f);
	assert_int_equal(info_of(session).idle_timeout_us, f->config->session_lifetime_us);
	assert_int_equal(info_of(session).lifetime_us, f->config->session_lifetime_us);
}

/* Ends. */

static void terminating_ends_everything_once(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e = execute(f, session);
	struct run_record *queued = execute(f, session);
	uint32_t id = begin(box);

	fake_hold_gone(f->driver, true);
	fake_output(box, id, OUTPUT_STDOUT, "so far", 6);
	session_terminate(session, "first");
	session_terminate(session, "second");
	assert_string_equal(info_of(session).reason, "first");
	assert_true(fake_is_destroyed(box));
	expect_status(e, OUTCOME_CANCELLED);
	assert_string_equal(record_of(e).outcome->out.data, "so far");
	expect_status(queued, OUTCOME_CANCELLED);
	assert_int_equal(running(f), 0);
	assert_int_equal(info_of(session).queued, 0);
	fake_gone(box);
	settle(f);
	/* It can still be read. */
	assert_ptr_equal(session_find(f->service, TENANT_DEFAULT, info_of(session).id), session);
	assert_int_equal(run_records_count_of(f->executions, TENANT_DEFAULT, info_of(session).id),
	                 2);
}

static void sessions_end_well_in_every_state(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < SESSION_STATE_COUNT; i++)
		for (int way = 0; way < 2; way++) {
			struct session *session = bring_to(f, (enum session_state)i);
			cleanup_free char *id = xstrdup(info_of(session).id);

			if (way == 0) {
				session_terminate(session, "enough");
				expect_state(session, i == SESSION_FAILED ? SESSION_FAILED
				                                          : SESSION_TERMINATED);
				settle(f);
			}
			session_delete(session);
			assert_null(session_find(f->service, TENANT_DEFAULT, id));
			assert_int_equal(run_records_count_of(f->executions, TENANT_DEFAULT, id),
			                 0);
			settle(f);
		}
	assert_int_equal(session_count(f->service, TENANT_DEFAULT), 0);
	assert_int_equal(fake_box_count(f->driver), 0);
	assert_int_equal(running(f), 0);
}

static void heard_end(void *ctx, struct run_record *e, const struct run_event *event)
{
	int *ends = ctx;

	if (event->kind == RUN_EVENT_END) {
		(*ends)++;
		expect_status(e, OUTCOME_CANCELLED);
	}
}

static void deleting_while_running_notifies_the_watchers(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e = execute(f, session);
	int ends = 0;

	(void)begin(box);
	(void)run_watch(e, 0, heard_end, &ends);
	session_delete(session);
	settle(f);
	assert_int_equal(ends, 1);
	assert_int_equal(fake_box_count(f->driver), 0);
}

static void a_box_that_dies_slowly_is_harmless(void **state)
{
	struct fixture *f = *state;
	struct session *session;
	struct box *box;

	f->request.id = (char *)"mine";
	session = ready(f);
	box = box_of(f, session);
	fake_hold_gone(f->driver, true);
	session_delete(session);
	/* The name is free at once. */
	session = create(f);
	assert_ptr_equal(session_find(f->service, TENANT_DEFAULT, "mine"), session);
	fake_gone(box);
	settle(f);
	assert_int_equal(fake_box_count(f->driver), 1);
	fake_hold_gone(f->driver, false);
}

static void box_that_cannot_be_made_fails_the_session(void **state)
{
	struct fixture *f = *state;
	const struct error no = {.code = ERR_UNAVAILABLE, .msg = "no engine"};
	struct session *session;
	struct run_record *e;

	fake_refuse_next(f->driver, &no);
	expect_refused(f, try_create(f), ERR_UNAVAILABLE);
	assert_int_equal(session_count(f->service, TENANT_DEFAULT), 0);
	session = create(f);
	e = execute(f, session);
	fake_lost(box_of(f, session), &no);
	expect_state(session, SESSION_FAILED);
	assert_int_equal(record_of(e).failure->code, ERR_UNAVAILABLE);
	assert_string_equal(info_of(session).reason, "no engine");
}

static void counters_are_those_of_the_box(void **state)
{
	struct fixture *f = *state;
	const struct box_counters counters = {.memory_bytes = 77};
	struct session *session = ready(f);
	struct box_counters got;

	fake_set_counters(box_of(f, session), &counters);
	session_counters(session, &got);
	assert_int_equal(got.memory_bytes, 77);
	session_terminate(session, "over");
	settle(f);
	session_counters(session, &got);
	assert_true(got.memory_bytes == COUNTER_UNKNOWN);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(states_follow_the_life_of_a_session),
		TEST(history_keeps_the_last_steps),
		TEST(every_state_takes_what_it_can_and_refuses_the_rest),
		TEST(clock_of_a_paused_execution_stands_still),
		TEST(an_execution_that_ended_as_the_box_froze_is_recorded),
		TEST(start_that_crosses_the_pause_gets_its_whole_time),
		TEST(resumed_execution_waits_for_a_place),
		TEST(waiting_execution_goes_back_to_the_queue),
		TEST(cancelling_what_is_paused_wakes_it),
		TEST(driver_without_a_freezer_cannot_pause),
		TEST(idle_session_ends),
		TEST(old_session_ends_whatever_it_does),
		TEST(clocks_are_bounded_by_the_configuration),
		TEST(terminating_ends_everything_once),
		TEST(sessions_end_well_in_every_state),
		TEST(deleting_while_running_notifies_the_watchers),
		TEST(a_box_that_dies_slowly_is_harmless),
		TEST(box_that_cannot_be_made_fails_the_session),
		TEST(counters_are_those_of_the_box),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
