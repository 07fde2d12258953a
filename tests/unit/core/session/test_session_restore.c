/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "restore_fixture.h"

/* As if the last step of @id had been this long ago. */
static void past_step(struct rig *rig, const char *id, const char *state, int64_t ago_ms)
{
	write_rows(rig,
	           &DB_SQL("UPDATE sessions SET state = ?2, history = history || ?2 || ' ' ||"
	                   " ?3 || char(10) WHERE id = ?1",
	                   DB_TEXT(id), DB_TEXT(state), DB_INT((int64_t)clock_real_ms() - ago_ms)));
}

/* As if it had been requested and started this long ago, and paused for part of it. */
static void past_times(struct rig *rig, const char *id, int64_t created_ms, int64_t started_ms,
                       int64_t paused_ms)
{
	const int64_t now = (int64_t)clock_real_ms();

	write_rows(rig, &DB_SQL("UPDATE executions SET created_ms = ?2, started_ms = ?3,"
	                        " paused_ms = ?4 WHERE id = ?1",
	                        DB_TEXT(id), DB_INT(now - created_ms), DB_INT(now - started_ms),
	                        DB_INT(paused_ms)));
}

static void on_pause_read(void *ctx, const struct db_rows *rows, const struct error *err)
{
	assert_null(err);
	*(int64_t *)ctx = db_rows_int(rows, 0, 0);
}

static int64_t stored_pause(struct rig *rig, const char *id)
{
	struct fixture *f = rig->f;
	int64_t pause = -1;

	/* Earlier output precedes it. */
	assert_non_null(
		db_read(store_db(rig->store),
	                &DB_SQL("SELECT paused_ms FROM executions WHERE id = ?1", DB_TEXT(id)),
	                4096, on_pause_read, &pause, &f->err));
	while (pause < 0)
		loop_run_once(f->loop, true);
	return pause;
}

/* Wait until the box received the acknowledgement of @id. */
static void wait_acked(struct fixture *f, struct box *box, uint32_t id)
{
	uint64_t end = clock_us() + 10 * USEC_PER_SEC;

	while (!fake_exec_of(box, id) || !fake_exec_of(box, id)->acked) {
		assert_true(clock_us() < end);
		(void)fake_exec_last(box);
		loop_run_once(f->loop, false);
	}
}

static void wait_boxes(struct fixture *f, size_t count)
{
	uint64_t end = clock_us() + 10 * USEC_PER_SEC;

	while (fake_box_count(f->driver) < count) {
		assert_true(clock_us() < end);
		loop_run_once(f->loop, false);
	}
}

static void unclaimed_boxes_are_ended(void **state)
{
	struct rig *rig = *state;

	fake_keep(rig->f->driver, "nobodys", false);
	restore(rig);
	assert_int_equal(session_count(rig->f->service, TENANT_DEFAULT), 0);
	assert_int_equal(fake_kept(rig->f->driver), 0); /* it ends */
}

static void a_session_is_ready_with_its_box(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct session *s;

	past_session(rig, "mine", "b1", "ready", "python");
	fake_keep(f->driver, "b1", false);
	restore(rig);
	s = session(rig, "mine");
	assert_int_equal(fake_kept(f->driver), 0);
	assert_string_equal(info_of(s).box_id, "b1");
	assert_true(fake_spec(box_at(f, 0))->keep);
	assert_int_equal(fake_spec(box_at(f, 0))->limits.memory_bytes, 134217728);
	fake_resume(box_of(f, s), 0, 0);
	expect_state(s, SESSION_READY);
	(void)run(f, s);
}

static void session_whose_box_is_lost_has_failed(void **state)
{
	struct rig *rig = *state;

	past_session(rig, "mine", "b1", "running", "python");
	past_execution(rig, "exec_1", "mine", true, "{}");
	past_execution(rig, "exec_2", "mine", false, "{}");
	restore(rig);
	expect_state(session(rig, "mine"), SESSION_FAILED);
	assert_true(info_of(session(rig, "mine")).reason[0] != '\0');
	assert_int_equal(record_of(record(rig, "exec_1")).state, RUN_RECORD_ENDED);
	assert_int_equal(record_of(record(rig, "exec_2")).state, RUN_RECORD_ENDED);
	settle(rig->f);
	assert_int_equal(fake_box_count(rig->f->driver), 0);
}

/* Its box was requested and never created: nothing was in it. */
static void session_that_was_being_made_gets_another_box(void **state)
{
	struct rig *rig = *state;

	past_session(rig, "mine", "b1", "creating", "python");
	restore(rig);
	expect_state(session(rig, "mine"), SESSION_CREATING);
	fake_ready(box_of(rig->f, session(rig, "mine")));
	expect_state(session(rig, "mine"), SESSION_READY);
}

/* Everything that ran meanwhile is received from its start, and its end is acknowledged once it is
 * written. */
static void a_running_execution_continues(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct run_record *e;
	struct box *box;

	past_session(rig, "mine", "b1", "running", "python");
	past_execution(rig, "exec_1", "mine", true, "{}");
	fake_keep(f->driver, "b1", false);
	restore(rig);
	e = record(rig, "exec_1");
	box = box_of(f, session(rig, "mine"));
	fake_resume(box, 2, 2);
	fake_describe(box, &(struct box_resumed){.id = 1, .keep = true, .label = "python"});
	fake_describe(box, &(struct box_resumed){.id = 2, .runner = 1, .label = "exec_1"});
	fake_started(box, 1);
	fake_started(box, 2);
	assert_int_equal(record_of(e).state, RUN_RECORD_RUNNING);
	expect_state(session(rig, "mine"), SESSION_RUNNING);
	fake_output(box, 2, OUTPUT_STDOUT, "hello", 5);
	done(box, 2, 0);
	expect_status(e, OUTCOME_SUCCESS);
	assert_int_equal(record_of(e).outcome->out.len, 5);
	wait_acked(f, box, 2);
	expect_state(session(rig, "mine"), SESSION_READY);
	/* The runner is the same, and ids continue. */
	assert_non_null(execute(f, session(rig, "mine")));
	assert_int_equal(fake_exec_last(box)->runner, 1);
	assert_true(fake_exec_last(box)->id > 2);
}

/* The store says it ran; the box does not know it. The next in the queue is not affected. */
static void execution_that_the_box_does_not_know_has_crashed(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct box *box;

	past_session(rig, "mine", "b1", "running", "python");
	past_execution(rig, "exec_1", "mine", true, "{}");
	past_execution(rig, "exec_2", "mine", false, "{}");
	fake_keep(f->driver, "b1", false);
	restore(rig);
	box = box_of(f, session(rig, "mine"));
	assert_null(fake_exec_last(box)); /* not before it has described its runs */
	fake_resume(box, 0, 0);
	expect_status(record(rig, "exec_1"), OUTCOME_CRASHED);
	assert_int_equal(record_of(record(rig, "exec_2")).state, RUN_RECORD_PENDING);
	done(box, begin(box), 0);
	expect_status(record(rig, "exec_2"), OUTCOME_SUCCESS);
}

/* Its end was recorded, but not acknowledged: it is forgotten, and ended if it still runs. */
static void an_unknown_run_is_stopped(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct box *box;

	past_session(rig, "mine", "b1", "ready", "python");
	fake_keep(f->driver, "b1", false);
	restore(rig);
	box = box_of(f, session(rig, "mine"));
	fake_resume(box, 5, 1);
	fake_describe(box, &(struct box_resumed){.id = 5, .label = "exec_gone"});
	assert_int_equal(fake_exec_of(box, 5)->signo, SIGKILL); /* it has no variables to keep */
	fake_started(box, 5);
	fake_output(box, 5, OUTPUT_STDOUT, "x", 1);
	done(box, 5, 0);
	expect_state(session(rig, "mine"), SESSION_READY);
	(void)run(f, session(rig, "mine"));
}

/* A hostile agent starts a run before it has described all of them: the link ends the box. */
static void unknown_run_must_not_start_before_all_are_described(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct box *box;

	past_session(rig, "mine", "b1", "ready", "python");
	fake_keep(f->driver, "b1", false);
	restore(rig);
	box = box_of(f, session(rig, "mine"));
	fake_resume(box, 6, 2);
	fake_describe(box, &(struct box_resumed){.id = 5, .label = "exec_gone"});
	fake_started(box, 5);
	settle(f);
	expect_state(session(rig, "mine"), SESSION_FAILED);
}

/* A label that was forged inside the box makes it unusable, and has no other effect. */
static void runner_of_no_language_ends_the_box(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct box *box;

	past_session(rig, "mine", "b1", "ready", "python");
	past_execution(rig, "exec_1", "mine", true, "{}");
	fake_keep(f->driver, "b1", false);
	restore(rig);
	box = box_of(f, session(rig, "mine"));
	fake_resume(box, 1, 1);
	fake_describe(box, &(struct box_resumed){.id = 1, .keep = true, .label = "klingon"});
	settle(f);
	expect_state(session(rig, "mine"), SESSION_FAILED);
	assert_int_equal(record_of(record(rig, "exec_1")).state, RUN_RECORD_ENDED);
}

/* Session @id with the running execution @exec, which its box has described with @label. */
static struct box *resumed(struct rig *rig, const char *id, const char *label)
{
	struct box *box = box_of(rig->f, session(rig, id));

	fake_resume(box, 2, 2);
	fake_describe(box, &(struct box_resumed){.id = 1, .keep = true, .label = "python"});
	fake_describe(box, &(struct box_resumed){.id = 2, .runner = 1, .label = label});
	fake_started(box, 1);
	return box;
}

/* An earlier daemon's run has a place: others wait for it. There are two. */
static void resumed_execution_has_a_place(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct run_record *e;
	struct box *boxes[3];
	static const char *const names[] = {"s1", "s2", "s3"};
	static const char *const ids[] = {"exec_1", "exec_2", "exec_3"};
	static const char *const box_ids[] = {"b1", "b2", "b3"};

	for (int i = 0; i < 3; i++) {
		past_session(rig, names[i], box_ids[i], "running", "python");
		past_execution(rig, ids[i], names[i], true, "{}");
		fake_keep(f->driver, box_ids[i], false);
	}
	past_session(rig, "s4", "b4", "ready", "python");
	fake_keep(f->driver, "b4", false);
	restore(rig);
	fake_resume(box_of(f, session(rig, "s4")), 0, 0);
	for (int i = 0; i < 3; i++) {
		boxes[i] = resumed(rig, names[i], ids[i]);
		fake_started(boxes[i], 2);
		assert_int_equal(running(f), i + 1); /* beyond the limit, but counted */
	}
	e = execute(f, session(rig, "s4"));
	assert_non_null(e);
	done(boxes[0], 2, 0);
	assert_int_equal(running(f), 2);
	assert_null(fake_exec_last(box_of(f, session(rig, "s4"))));
	done(boxes[1], 2, 0);
	assert_int_equal(running(f), 2);
	assert_non_null(fake_exec_last(box_of(f, session(rig, "s4"))));
	done(boxes[2], 2, 0);
	done(box_of(f, session(rig, "s4")), begin(box_of(f, session(rig, "s4"))), 0);
	expect_status(e, OUTCOME_SUCCESS);
	assert_int_equal(running(f), 0);
}

/* The box keeps the baseline of its counters; the rest is in the times. */
static void resumed_execution_is_measured_from_its_start(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	const struct outcome *outcome;
	struct box *box;

	past_session(rig, "mine", "b1", "running", "python");
	past_execution(rig, "exec_1", "mine", true, "{}");
	past_times(rig, "exec_1", 1500, 1000, 0);
	fake_keep(f->driver, "b1", false);
	restore(rig);
	/* Waited 0x30d40 = 200000 us; 1000000 us, 3 kills and 5 refused forks came before. */
	box = resumed(rig, "mine", "exec_1 30d40 f4240 3 5");
	fake_started(box, 2);
	fake_set_counters(
		box, &(struct box_counters){.cpu_us = 1250000, .oom_kills = 4, .pids_denied = 5});
	fake_done(box, 2, &(struct exec_facts){.signalled = true, .status = SIGKILL});
	expect_status(record(rig, "exec_1"), OUTCOME_FAILED);
	outcome = record_of(record(rig, "exec_1")).outcome;
	assert_int_equal(outcome->limit, OUTCOME_LIMIT_MEMORY);
	assert_int_equal(outcome->cpu_us, 250000);
	assert_int_equal(outcome->queue_us, 200000);
	assert_int_equal(outcome->start_us, 300000);
}

/* A box of an earlier version without a baseline: unknown is not earlier usage. */
static void a_resumed_execution_without_a_baseline_names_no_limit(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct box *box;

	past_session(rig, "mine", "b1", "running", "python");
	past_execution(rig, "exec_1", "mine", true, "{}");
	fake_keep(f->driver, "b1", false);
	restore(rig);
	box = resumed(rig, "mine", "exec_1");
	fake_started(box, 2);
	fake_set_counters(box, &(struct box_counters){.cpu_us = 1250000, .oom_kills = 4});
	fake_done(box, 2, &(struct exec_facts){.signalled = true, .status = SIGKILL});
	expect_status(record(rig, "exec_1"), OUTCOME_FAILED);
	assert_int_equal(record_of(record(rig, "exec_1")).outcome->limit, OUTCOME_LIMIT_NONE);
}

/* Lost with its box: it ran since its start, not since we know it. */
static void lost_execution_has_run_since_its_start(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct error why = {0};
	struct box *box;
	uint64_t duration_us;

	past_session(rig, "mine", "b1", "running", "python");
	past_execution(rig, "exec_1", "mine", true, "{}");
	past_times(rig, "exec_1", 3000, 3000, 1000);
	fake_keep(f->driver, "b1", false);
	restore(rig);
	box = resumed(rig, "mine", "exec_1");
	fake_started(box, 2);
	(void)error_set(&why, ERR_AGENT_LOST, 0, "gone");
	fake_lost(box, &why);
	expect_status(record(rig, "exec_1"), OUTCOME_CRASHED);
	duration_us = record_of(record(rig, "exec_1")).outcome->duration_us;
	assert_in_range(duration_us, 1900000, 10000000);
}

/* It has 50 seconds, started 110 seconds ago, and was paused for 100 of them, and for as long as
 * this test takes until it resumes. No more, because a box is not older than its host: the times of
 * a host that booted some minutes ago would be cut. */
static void pause_does_not_count_for_the_deadline(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	const int64_t begun_ms = (int64_t)clock_real_ms();
	struct box *box;
	int64_t here_ms;

	past_session(rig, "mine", "b1", "running", "python");
	past_execution(rig, "exec_1", "mine", true, "{\"timeout_us\": 50000000}");
	past_times(rig, "exec_1", 110000, 110000, 30000); /* an earlier pause */
	past_step(rig, "mine", "paused", 70000);
	fake_keep(f->driver, "b1", true);
	restore(rig);
	expect_state(session(rig, "mine"), SESSION_PAUSED);
	assert_int_equal(running(f), 0);
	assert_int_equal(session_resume(session(rig, "mine"), &f->err), 0);
	here_ms = (int64_t)clock_real_ms() - begun_ms;
	box = resumed(rig, "mine", "exec_1");
	fake_started(box, 2);
	assert_int_equal(running(f), 1);
	pass(f, 200 * 1000);
	assert_null(fake_exec_of(box, 2)); /* it was sent nothing */
	assert_int_equal(record_of(record(rig, "exec_1")).state, RUN_RECORD_RUNNING);
	assert_in_range(stored_pause(rig, "exec_1"), 100000, 100000 + here_ms);
	done(box, 2, 0);
	expect_status(record(rig, "exec_1"), OUTCOME_SUCCESS);
}

/* Without the pauses it is late at once: control of the test before. */
static void a_deadline_that_passed_meanwhile(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct box *box;

	past_session(rig, "mine", "b1", "running", "python");
	past_execution(rig, "exec_1", "mine", true, "{\"timeout_us\": 50000000}");
	past_times(rig, "exec_1", 110000, 110000, 30000);
	fake_keep(f->driver, "b1", false);
	restore(rig);
	box = resumed(rig, "mine", "exec_1");
	fake_started(box, 2);
	/* A kill follows later, not in the same turn of the loop. */
	while (!fake_exec_of(box, 2) || !fake_exec_of(box, 2)->signo)
		loop_run_once(f->loop, true);
	assert_int_equal(fake_exec_of(box, 2)->signo, SIGINT);
	done(box, 2, 0);
	expect_status(record(rig, "exec_1"), OUTCOME_TIMEOUT);
}

/* A run paused under an earlier daemon resumes when there is a place, like any other. */
static void a_paused_execution_waits_for_a_place_to_resume(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct session *s;
	struct box *box, *others[2];

	past_session(rig, "mine", "b1", "running", "python");
	past_execution(rig, "exec_1", "mine", true, "{}");
	past_step(rig, "mine", "paused", 0);
	fake_keep(f->driver, "b1", true);
	restore(rig);
	s = session(rig, "mine");
	for (int i = 0; i < 2; i++) {
		struct session *other = ready(f);

		assert_non_null(execute(f, other));
		others[i] = box_of(f, other);
		(void)begin(others[i]);
	}
	assert_int_equal(session_resume(s, &f->err), 0);
	expect_state(s, SESSION_PAUSED);
	/* Pausing again gives up the place in the queue. */
	assert_int_equal(session_pause(s, &f->err), 0);
	done(others[0], fake_exec_last(others[0])->id, 0);
	expect_state(s, SESSION_PAUSED);
	assert_int_equal(session_resume(s, &f->err), 0);
	expect_state(s, SESSION_READY); /* until it has described its runs */
	box = resumed(rig, "mine", "exec_1");
	fake_started(box, 2);
	expect_state(s, SESSION_RUNNING);
	assert_int_equal(running(f), 2);
	done(box, 2, 0);
	expect_status(record(rig, "exec_1"), OUTCOME_SUCCESS);
	assert_int_equal(running(f), 1);
	done(others[1], fake_exec_last(others[1])->id, 0);
}

/* Its end is being written when all sessions are freed; its box takes a moment longer. */
static void an_end_recorded_after_all_watchers_left_notifies_none(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct box *box;

	past_session(rig, "mine", "b1", "running", "python");
	past_execution(rig, "exec_1", "mine", true, "{}");
	fake_keep(f->driver, "b1", false);
	restore(rig);
	box = resumed(rig, "mine", "exec_1");
	fake_started(box, 2);
	fake_hold_gone(f->driver, true);
	done(box, 2, 0);
	session_service_free(TAKE_PTR(f->service));
	pass(f, 200 * 1000);
	fake_hold_gone(f->driver, false);
	fake_gone(box);
}

/* Cancelled while it is paused and unknown to us: it resumes, and is ordered to end. */
static void paused_execution_is_cancelled(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct box *box;

	past_session(rig, "mine", "b1", "running", "python");
	past_execution(rig, "exec_1", "mine", true, "{}");
	past_step(rig, "mine", "paused", 0);
	fake_keep(f->driver, "b1", true);
	restore(rig);
	assert_int_equal(run_record_cancel(record(rig, "exec_1"), &f->err), 0);
	expect_status(record(rig, "exec_1"), OUTCOME_CANCELLED);
	assert_int_equal(session_resume(session(rig, "mine"), &f->err), 0);
	box = resumed(rig, "mine", "exec_1");
	assert_int_equal(fake_exec_of(box, 2)->signo, SIGINT);
	assert_int_equal(running(f), 0);
}

/* The rest of the request's stdin: what the agent already has is not sent twice. */
static void rest_of_stdin_follows(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct box *box;

	past_session(rig, "mine", "b1", "running", "python");
	past_execution(rig, "exec_1", "mine", true, "{\"stdin\": \"aGVsbG8=\"}");
	fake_keep(f->driver, "b1", false);
	restore(rig);
	box = box_of(f, session(rig, "mine"));
	fake_resume(box, 2, 2);
	fake_describe(box, &(struct box_resumed){.id = 1, .keep = true, .label = "python"});
	fake_describe(box, &(struct box_resumed){.id = 2,
	                                         .runner = 1,
	                                         .label = "exec_1",
	                                         .stdin_open = true,
	                                         .stdin_bytes = 2});
	assert_string_equal(fake_exec_of(box, 2)->stdin_data, "llo");
	assert_false(fake_exec_of(box, 2)->stdin_open);
}

/* The box's state counts, whatever the store says. */
static void frozen_box_makes_a_paused_session(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;

	past_session(rig, "cold", "b1", "ready", "python");
	past_session(rig, "warm", "b2", "paused", "python");
	fake_keep(f->driver, "b1", true);
	fake_keep(f->driver, "b2", false);
	restore(rig);
	expect_state(session(rig, "cold"), SESSION_PAUSED);
	expect_state(session(rig, "warm"), SESSION_READY);
}

/* The box of an ephemeral session is not kept: what ran is lost, what had not started is
 * started. */
static void an_ephemeral_session_starts_what_had_not_started(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct box *box;

	past_session(rig, "mine", NULL, "running", "python");
	past_execution(rig, "exec_1", "mine", true, "{}");
	past_execution(rig, "exec_2", "mine", false, "{}");
	restore(rig);
	expect_status(record(rig, "exec_1"), OUTCOME_CRASHED);
	/* Its start is on disk before it starts. */
	assert_int_equal(fake_box_count(f->driver), 0);
	wait_boxes(f, 1);
	assert_true(record_of(record(rig, "exec_2")).begun);
	box = box_at(f, 0);
	fake_ready(box);
	done(box, begin(box), 0);
	expect_status(record(rig, "exec_2"), OUTCOME_SUCCESS);
}

/* Accepted, and perhaps started, when the daemon was killed: it is not run a second time. */
static void a_run_that_may_have_started_is_not_repeated(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;

	past_session(rig, "mine", NULL, "ready", "python");
	past_execution(rig, "exec_1", "mine", false, "{}");
	past_execution(rig, "exec_2", "mine", false, "{}");
	write_rows(rig, &DB_SQL("UPDATE executions SET begun = 1 WHERE id = 'exec_1'"));
	restore(rig);
	expect_status(record(rig, "exec_1"), OUTCOME_CRASHED);
	assert_int_equal(record_of(record(rig, "exec_2")).state, RUN_RECORD_PENDING);
	wait_boxes(f, 1);
	fake_ready(box_at(f, 0));
	done(box_at(f, 0), begin(box_at(f, 0)), 0);
	expect_status(record(rig, "exec_2"), OUTCOME_SUCCESS);
}

/* The box was lost before the store knew that it was ready: runs it may have received are lost. */
static void runs_that_a_lost_new_box_may_have_started_are_not_repeated(void **state)
{
	struct rig *rig = *state;

	past_session(rig, "mine", "b1", "creating", "python");
	past_execution(rig, "exec_1", "mine", false, "{}");
	past_execution(rig, "exec_2", "mine", false, "{\"background\": true}");
	write_rows(rig, &DB_SQL("UPDATE executions SET begun = 1"));
	restore(rig);
	expect_status(record(rig, "exec_1"), OUTCOME_CRASHED);
	expect_status(record(rig, "exec_2"), OUTCOME_CRASHED);
	expect_state(session(rig, "mine"), SESSION_CREATING);
}

/* Of an unknown session, or malformed: it ends, its neighbour continues. */
static void an_execution_that_cannot_resume_has_crashed(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct box *box;

	past_session(rig, "mine", "b1", "ready", "python");
	past_execution(rig, "exec_1", "gone", false, "{}");
	past_execution(rig, "exec_2", "mine", false, NULL);
	past_execution(rig, "exec_3", "mine", false, "{\"timeout_us\": -1}");
	past_execution(rig, "exec_4", "mine", false, "{\"language\": \"klingon\"}");
	past_execution(rig, "exec_5", "mine", false, "{\"language\": \"demo\"}");
	fake_keep(f->driver, "b1", false);
	restore(rig);
	expect_status(record(rig, "exec_1"), OUTCOME_CRASHED);
	expect_status(record(rig, "exec_2"), OUTCOME_CRASHED);
	expect_status(record(rig, "exec_3"), OUTCOME_CRASHED);
	expect_status(record(rig, "exec_4"), OUTCOME_CRASHED);
	box = box_of(f, session(rig, "mine"));
	fake_resume(box, 0, 0);
	done(box, begin(box), 0);
	expect_status(record(rig, "exec_5"), OUTCOME_SUCCESS);
}

/* A language that no longer exists: the session reports it, and its box ends. */
static void session_that_is_not_allowed_any_more_fails(void **state)
{
	struct rig *rig = *state;

	past_session(rig, "mine", "b1", "ready", "klingon");
	fake_keep(rig->f->driver, "b1", false);
	restore(rig);
	expect_state(session(rig, "mine"), SESSION_FAILED);
	assert_int_equal(fake_kept(rig->f->driver), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_rig, teardown_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(unclaimed_boxes_are_ended),
		TEST(a_session_is_ready_with_its_box),
		TEST(session_whose_box_is_lost_has_failed),
		TEST(session_that_was_being_made_gets_another_box),
		TEST(a_running_execution_continues),
		TEST(execution_that_the_box_does_not_know_has_crashed),
		TEST(an_unknown_run_is_stopped),
		TEST(unknown_run_must_not_start_before_all_are_described),
		TEST(runner_of_no_language_ends_the_box),
		TEST(rest_of_stdin_follows),
		TEST(frozen_box_makes_a_paused_session),
		TEST(an_ephemeral_session_starts_what_had_not_started),
		TEST(a_run_that_may_have_started_is_not_repeated),
		TEST(runs_that_a_lost_new_box_may_have_started_are_not_repeated),
		TEST(an_execution_that_cannot_resume_has_crashed),
		TEST(session_that_is_not_allowed_any_more_fails),
		TEST(resumed_execution_has_a_place),
		TEST(resumed_execution_is_measured_from_its_start),
		TEST(a_resumed_execution_without_a_baseline_names_no_limit),
		TEST(lost_execution_has_run_since_its_start),
		TEST(pause_does_not_count_for_the_deadline),
		TEST(a_deadline_that_passed_meanwhile),
		TEST(a_paused_execution_waits_for_a_place_to_resume),
		TEST(paused_execution_is_cancelled),
		TEST(an_end_recorded_after_all_watchers_left_notifies_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
