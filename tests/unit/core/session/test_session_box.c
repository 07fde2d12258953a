/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <sys/syscall.h>

#include "session_agent.h"
#include "wire/layer.h"

static void runner_is_started_once_and_code_handed_to_it(void **state)
{
	struct fixture *f = *state;
	char *args[] = {(char *)"-v", NULL};
	char *env[] = {(char *)"MINE=1", NULL};
	struct run_request_file files[] = {{(char *)"a.txt", (char *)"data", 4}};
	const struct fake_exec *run, *runner;
	struct session *session;
	struct run_record *e;
	struct box *box;

	f->request.env = env;
	session = ready(f);
	box = box_of(f, session);
	assert_null(fake_exec_last(box)); /* no runner before it is needed */
	f->code.args = args;
	f->code.files = files;
	f->code.files_count = 1;
	e = execute(f, session);
	expect_state(session, SESSION_RUNNING);
	assert_int_equal(record_of(e).state, RUN_RECORD_PENDING);
	run = fake_exec_last(box);
	runner = fake_exec_of(box, run->runner);
	assert_true(runner->keep);
	assert_string_equal(runner->argv[0], "/bin/sh");
	assert_string_equal(runner->argv[1], "/opt/millibox/runners/python/stay");
	assert_null(runner->argv[2]);
	assert_string_equal(runner->env[str_list_count(runner->env) - 2], "DEMO=1");
	assert_string_equal(runner->env[str_list_count(runner->env) - 1], "MINE=1");
	assert_string_equal(run->source, "run1.py");
	assert_string_equal(run->argv[0], ""); /* no variables of this run */
	assert_string_equal(run->argv[1], "-v");
	assert_int_equal(run->files_count, 2);
	assert_string_equal(run->files[0].path, "run1.py");
	assert_string_equal(run->files[0].data, "x = 1");
	assert_true(run->files[0].source);
	assert_string_equal(run->files[1].path, "a.txt");
	assert_int_equal(run->stdout_max, 9);
	assert_false(run->stdin_open);
	(void)begin(box);
	assert_int_equal(record_of(e).state, RUN_RECORD_RUNNING);
	done(box, 2, 0);
	expect_status(e, OUTCOME_SUCCESS);
	expect_state(session, SESSION_READY);
	assert_false(record_of(e).session_reset);
	e = execute(f, session);
	run = fake_exec_last(box);
	assert_int_equal(run->runner, 1); /* the same */
	assert_string_equal(run->source, "run3.py");
	done(box, begin(box), 0);
	expect_status(e, OUTCOME_SUCCESS);
	assert_int_equal(info_of(session).executions, 2);
	assert_false(fake_is_destroyed(box));
}

static void language_without_a_runner_runs_as_a_program(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	char *env[] = {(char *)"MINE=1", NULL};
	const struct fake_exec *program;
	struct run_record *e;

	f->code.language = (char *)"demo";
	f->code.env = env;
	e = execute(f, session);
	program = fake_exec_last(box);
	assert_int_equal(program->id, 1);
	assert_int_equal(program->runner, 0);
	assert_false(program->keep);
	assert_string_equal(program->argv[1], "/run/millibox/run1");
	assert_string_equal(program->files[0].path, "run1");
	assert_string_equal(program->env[str_list_count(program->env) - 1], "MINE=1");
	done(box, begin(box), 3);
	expect_status(e, OUTCOME_FAILED);
	assert_int_equal(record_of(e).outcome->exit_code, 3);
	assert_false(record_of(e).session_reset);
	assert_string_equal(record_of(e).language, "demo");
	/* A resident runner receives them with the run. */
	f->code.language = NULL;
	e = execute(f, session);
	assert_string_equal(fake_exec_last(box)->argv[0], "MINE=1");
	assert_string_equal(fake_exec_last(box)->argv[1], "");
	done(box, begin(box), 0);
	expect_status(e, OUTCOME_SUCCESS);
}

static void outcome_has_output_report_and_growth_of_counters(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct box_counters counters = {.memory_peak_bytes = 4096,
	                                .cpu_us = 1000,
	                                .pids_peak = 7,
	                                .pids_denied = 5,
	                                .oom_kills = 2};
	const struct exec_facts facts = {.duration_us = 70, .stdout_bytes = 10, .stderr_bytes = 3};
	const struct outcome *out;
	struct run_record *e;
	uint32_t id;

	fake_set_counters(box, &counters); /* usage of earlier executions */
	e = execute(f, session);
	id = begin(box);
	fake_output(box, id, OUTPUT_STDOUT, "123456", 6);
	fake_output(box, id, OUTPUT_STDERR, "err", 3);
	fake_output(box, id, OUTPUT_STDOUT, "789", 3);
	fake_report(box, id, "{\"a\":1}");
	fake_denial(box, id, SYS_mount, 4);
	fake_denial(box, runner_of(box, id), SYS_ptrace, 1);
	counters.cpu_us = 1250;
	fake_set_counters(box, &counters);
	fake_set_layers(box, LAYERS_ALL & ~LAYER_BIT(LAYER_LANDLOCK));
	fake_done(box, id, &facts);
	expect_status(e, OUTCOME_SUCCESS);
	out = record_of(e).outcome;
	assert_string_equal(out->out.data, "12345678");
	assert_string_equal(out->err.data, "err");
	assert_true(out->out_truncated);
	assert_false(out->err_truncated);
	assert_int_equal(out->limit, OUTCOME_LIMIT_OUTPUT);
	assert_string_equal(out->report.data, "{\"a\":1}");
	assert_int_equal(out->cpu_us, 250);
	assert_int_equal(out->memory_peak_bytes, 4096);
	assert_int_equal(out->processes_peak, 7);
	assert_int_equal(out->duration_us, 70);
	assert_int_equal(out->denials_count, 3); /* mount, ptrace, the truncated output */
	assert_int_equal(out->layers_missing, LAYER_BIT(LAYER_LANDLOCK));
	assert_string_equal(out->engine, "fake");
	assert_string_equal(out->execution_id, record_of(e).id);
}

static void stdin_is_passed_and_closed(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);

	f->code.stdin_data = (char *)"in";
	f->code.stdin_len = 2;
	(void)execute(f, session);
	assert_string_equal(fake_exec_last(box)->stdin_data, "in");
	assert_false(fake_exec_last(box)->stdin_open);
}

static void stdin_may_stay_open(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	static const char big[1 << 20];
	struct run_record *first, *second;

	f->code.stdin_open = true;
	first = execute(f, session);
	second = execute(f, session);
	assert_true(fake_exec_last(box)->stdin_open);
	assert_int_equal(run_record_stdin(first, "ab", 2, false, &f->err), 0);
	assert_int_equal(run_record_stdin(first, "c", 1, true, &f->err), 0);
	assert_string_equal(fake_exec_last(box)->stdin_data, "abc");
	assert_false(fake_exec_last(box)->stdin_open);
	/* For a waiting run it is kept, up to a bound. */
	assert_int_equal(run_record_stdin(second, "x", 1, false, &f->err), 0);
	expect_refused(f, run_record_stdin(second, big, sizeof(big), false, &f->err),
	               ERR_TOO_LARGE);
	assert_int_equal(run_record_stdin(second, "yz", 2, true, &f->err), 0);
	expect_refused(f, run_record_stdin(second, "x", 1, false, &f->err), ERR_CONFLICT);
	done(box, begin(box), 0);
	expect_refused(f, run_record_stdin(first, "x", 1, false, &f->err), ERR_CONFLICT);
	assert_string_equal(fake_exec_last(box)->stdin_data, "xyz");
	assert_false(fake_exec_last(box)->stdin_open);
}

static void executions_run_in_order_and_the_queue_is_bounded(void **state)
{
	struct fixture *f = *state;
	struct session *session = create(f);
	struct box *box = box_of(f, session);
	struct run_record *e[3];

	for (size_t i = 0; i < 3; i++)
		e[i] = execute(f, session); /* the box is not ready */
	expect_state(session, SESSION_CREATING);
	assert_int_equal(info_of(session).queued, 3);
	expect_refused(f, try_execute(f, session), ERR_BUSY);
	assert_int_equal(info_of(session).executions, 3);
	fake_ready(box);
	for (size_t i = 0; i < 3; i++) {
		expect_state(session, SESSION_RUNNING);
		assert_int_equal(info_of(session).queued, 2 - i);
		(void)begin(box);
		assert_int_equal(record_of(e[i]).state, RUN_RECORD_RUNNING);
		if (i < 2)
			assert_int_equal(record_of(e[i + 1]).state, RUN_RECORD_PENDING);
		done(box, fake_exec_last(box)->id, 0);
		expect_status(e[i], OUTCOME_SUCCESS);
	}
	expect_state(session, SESSION_READY);
	assert_int_equal(running(f), 0);
}

static void places_are_shared_with_all_executions(void **state)
{
	struct fixture *f = *state; /* two places, and two may wait for one */
	struct session *s[4];
	struct run_record *e[4];

	for (size_t i = 0; i < 4; i++) {
		s[i] = ready(f);
		e[i] = execute(f, s[i]);
		expect_state(s[i], SESSION_RUNNING);
	}
	assert_int_equal(running(f), 2);
	assert_null(fake_exec_last(box_of(f, s[2]))); /* has no place yet */
	done(box_of(f, s[0]), begin(box_of(f, s[0])), 0);
	assert_int_equal(running(f), 2);
	assert_non_null(fake_exec_last(box_of(f, s[2])));
	assert_null(fake_exec_last(box_of(f, s[3])));
	/* A waiting run can be cancelled, and takes no place. */
	assert_int_equal(run_record_cancel(e[3], &f->err), 0);
	expect_status(e[3], OUTCOME_CANCELLED);
	expect_state(s[3], SESSION_READY);
	done(box_of(f, s[1]), begin(box_of(f, s[1])), 0);
	done(box_of(f, s[2]), begin(box_of(f, s[2])), 0);
	expect_status(e[2], OUTCOME_SUCCESS);
	assert_int_equal(running(f), 0);
}

/* Deadlines. */

/* It was interrupted in this turn of the loop: what follows comes later. */
static struct run_record *overdue(struct fixture *f, struct session *session, uint32_t *ret_id)
{
	struct box *box = box_of(f, session);
	struct run_record *e;

	f->code.timeout_us = 20 * USEC_PER_MS;
	e = execute(f, session);
	*ret_id = begin(box);
	while (fake_exec_of(box, *ret_id)->signals == 0)
		loop_run_once(f->loop, true);
	assert_int_equal(record_of(e).state, RUN_RECORD_RUNNING);
	return e;
}

static void run_that_heeds_the_interrupt_saves_the_session(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e;
	uint32_t id;

	e = overdue(f, session, &id);
	assert_int_equal(fake_exec_of(box, id)->signo, SIGINT);
	assert_int_equal(fake_exec_of(box, runner_of(box, id))->signals, 0);
	fake_output(box, id, OUTPUT_STDERR, "^C", 2);
	done(box, id, 130);
	expect_status(e, OUTCOME_TIMEOUT);
	assert_int_equal(record_of(e).outcome->limit, OUTCOME_LIMIT_TIME);
	assert_int_equal(record_of(e).outcome->exit_code, 130);
	assert_string_equal(record_of(e).outcome->err.data, "^C");
	assert_false(record_of(e).session_reset);
	expect_state(session, SESSION_READY);
	(void)run(f, session);
	assert_int_equal(fake_exec_last(box)->runner, 1);
}

static void runner_that_does_not_is_killed_and_replaced(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e, *next;
	uint64_t since = clock_us();
	uint32_t id;

	e = overdue(f, session, &id);
	next = execute(f, session);
	while (fake_exec_of(box, runner_of(box, id))->signo != SIGKILL)
		pass(f, 10 * USEC_PER_MS);
	assert_true(clock_us() - since >= 520 * USEC_PER_MS);
	assert_int_equal(fake_exec_of(box, id)->signals, 1);
	die(box, id, true, SIGKILL);
	expect_status(e, OUTCOME_TIMEOUT);
	assert_true(record_of(e).session_reset);
	assert_int_equal(record_of(e).outcome->signal, SIGKILL);
	/* The next is on its way to a new runner in the same box. */
	expect_state(session, SESSION_RUNNING);
	assert_int_not_equal(fake_exec_last(box)->runner, 1);
	done(box, begin(box), 0);
	expect_status(next, OUTCOME_SUCCESS);
	assert_false(record_of(next).session_reset);
	assert_int_equal(fake_box_count(f->driver), 1);
}

static void answer_that_crosses_the_kill_costs_the_runner(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e;
	uint32_t id;

	e = overdue(f, session, &id);
	while (fake_exec_of(box, 1)->signo != SIGKILL)
		pass(f, 10 * USEC_PER_MS);
	done(box, id, 0);
	expect_status(e, OUTCOME_TIMEOUT);
	assert_true(record_of(e).session_reset);
	(void)execute(f, session);
	assert_int_not_equal(fake_exec_last(box)->runner, 1);
}

static void agent_that_does_not_report_the_kill_costs_the_box(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct run_record *e, *queued;
	uint32_t id;

	e = overdue(f, session, &id);
	queued = execute(f, session);
	while (record_of(e).state != RUN_RECORD_ENDED)
		pass(f, 10 * USEC_PER_MS);
	expect_status(e, OUTCOME_TIMEOUT);
	expect_status(queued, OUTCOME_CRASHED);
	expect_state(session, SESSION_FAILED);
	assert_true(record_of(e).session_reset);
	assert_int_equal(fake_box_count(f->driver), 0);
	assert_int_equal(running(f), 0);
}

static void a_separate_program_is_killed_at_once(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	const struct exec_facts killed = {.signalled = true, .status = SIGKILL};
	struct run_record *e;
	uint32_t id;

	f->code.language = (char *)"demo";
	e = overdue(f, session, &id);
	assert_int_equal(fake_exec_of(box, id)->signo, SIGKILL);
	fake_done(box, id, &killed);
	expect_status(e, OUTCOME_TIMEOUT);
	assert_false(record_of(e).session_reset);
	expect_state(session, SESSION_READY);
}

static void cancelling_interrupts_first(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e = execute(f, session);
	struct run_record *queued = execute(f, session);
	uint32_t id = begin(box);

	assert_int_equal(run_record_cancel(queued, &f->err), 0);
	expect_status(queued, OUTCOME_CANCELLED);
	assert_int_equal(info_of(session).queued, 0);
	assert_int_equal(run_record_cancel(e, &f->err), 0);
	assert_int_equal(run_record_cancel(e, &f->err), 0); /* is on its way */
	assert_int_equal(fake_exec_of(box, id)->signo, SIGINT);
	assert_int_equal(fake_exec_of(box, id)->signals, 1);
	done(box, id, 130);
	expect_status(e, OUTCOME_CANCELLED);
	assert_false(record_of(e).session_reset);
	expect_state(session, SESSION_READY);
	expect_refused(f, run_record_cancel(e, &f->err), ERR_CONFLICT);
}

static void cancelling_before_the_start_is_heeded_too(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e = execute(f, session);
	uint32_t id = fake_exec_last(box)->id;

	assert_int_equal(run_record_cancel(e, &f->err), 0);
	(void)begin(box);
	while (fake_exec_of(box, runner_of(box, id))->signo != SIGKILL)
		pass(f, 10 * USEC_PER_MS);
	die(box, id, true, SIGKILL);
	expect_status(e, OUTCOME_CANCELLED);
	assert_true(record_of(e).session_reset);
}

static void interrupt_leaves_the_session_as_it_is(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e;
	uint32_t id;

	expect_refused(f, session_interrupt(session, &f->err), ERR_CONFLICT);
	e = execute(f, session);
	expect_refused(f, session_interrupt(session, &f->err), ERR_CONFLICT);
	id = begin(box);
	assert_int_equal(session_interrupt(session, &f->err), 0);
	assert_int_equal(fake_exec_of(box, id)->signo, SIGINT);
	pass(f, 20 * USEC_PER_MS);
	expect_state(session, SESSION_RUNNING);
	done(box, id, 130);
	expect_status(e, OUTCOME_FAILED);
	expect_state(session, SESSION_READY);
}

/* Deaths. */

static void runner_that_ends_with_the_run_is_a_reset(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e = execute(f, session);

	die(box, begin(box), false, 7); /* os._exit(7) */
	expect_status(e, OUTCOME_FAILED);
	assert_int_equal(record_of(e).outcome->exit_code, 7);
	assert_true(record_of(e).session_reset);
	expect_state(session, SESSION_READY);
	e = execute(f, session);
	die(box, begin(box), true, SIGSEGV);
	expect_status(e, OUTCOME_FAILED);
	assert_int_equal(record_of(e).outcome->signal, SIGSEGV);
	assert_true(record_of(e).session_reset);
	e = run(f, session);
	assert_false(record_of(e).session_reset);
	assert_int_equal(fake_exec_last(box)->runner, 5); /* the third */
}

static void runner_killed_for_memory_names_the_limit(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct box_counters counters = {.oom_kills = 3};
	struct run_record *e;
	uint32_t id;

	fake_set_counters(box, &counters);
	e = execute(f, session);
	id = begin(box);
	counters.oom_kills = 4;
	fake_set_counters(box, &counters);
	die(box, id, true, SIGKILL);
	expect_status(e, OUTCOME_FAILED);
	assert_int_equal(record_of(e).outcome->limit, OUTCOME_LIMIT_MEMORY);
	e = run(f, session);
	assert_int_equal(record_of(e).outcome->limit, OUTCOME_LIMIT_NONE); /* not its kill */
}

static void a_dead_idle_runner_is_reported_by_the_next_run(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e = run(f, session);

	done(box, 1, 0);
	expect_state(session, SESSION_READY);
	assert_false(record_of(e).session_reset);
	e = run(f, session);
	assert_true(record_of(e).session_reset);
	e = run(f, session);
	assert_false(record_of(e).session_reset);
}

static void a_run_that_crosses_its_runners_death_goes_to_another(void **state)
{
	struct fixture *f = *state;
	const struct error gone = {.code = ERR_CONFLICT, .msg = "no runner"};
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e;
	uint32_t id;

	(void)run(f, session);
	e = execute(f, session);
	id = fake_exec_last(box)->id;
	done(box, 1, 0);
	fake_exec_failed(box, id, &gone);
	assert_int_equal(record_of(e).state, RUN_RECORD_PENDING);
	assert_true(fake_exec_last(box)->id > id);
	assert_string_equal(fake_exec_last(box)->files[0].data, "x = 1");
	done(box, begin(box), 0);
	expect_status(e, OUTCOME_SUCCESS);
	assert_true(record_of(e).session_reset);
	/* But not indefinitely. */
	e = execute(f, session);
	for (int i = 0; i < 2; i++) {
		id = fake_exec_last(box)->id;
		if (i > 0)
			fake_started(box, runner_of(box, id));
		done(box, runner_of(box, id), 0);
		fake_exec_failed(box, id, &gone);
	}
	assert_int_equal(record_of(e).failure->code, ERR_CONFLICT);
	expect_state(session, SESSION_READY);
}

static void runner_that_cannot_be_started_fails_the_run_with_its_reason(void **state)
{
	struct fixture *f = *state;
	const struct error no = {.code = ERR_BOX_FAILED, .msg = "no memory"};
	const struct error none = {.code = ERR_CONFLICT, .msg = "no runner"};
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e = execute(f, session);
	uint32_t id = fake_exec_last(box)->id;

	fake_exec_failed(box, runner_of(box, id), &no);
	fake_exec_failed(box, id, &none);
	assert_int_equal(record_of(e).state, RUN_RECORD_ENDED);
	assert_int_equal(record_of(e).failure->code, ERR_BOX_FAILED);
	assert_non_null(strstr(record_of(e).failure->msg, "no memory"));
	expect_state(session, SESSION_READY);
	(void)run(f, session);
}

static void lost_box_is_a_crash(void **state)
{
	struct fixture *f = *state;
	const struct error lost = {.code = ERR_AGENT_LOST, .msg = "it vanished"};
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e = execute(f, session);
	struct run_record *queued = execute(f, session);

	(void)begin(box);
	fake_lost(box, &lost);
	expect_state(session, SESSION_FAILED);
	assert_string_equal(info_of(session).reason, "it vanished");
	expect_status(e, OUTCOME_CRASHED);
	expect_status(queued, OUTCOME_CRASHED);
	assert_true(record_of(e).session_reset);
	settle(f);
	assert_int_equal(fake_box_count(f->driver), 0);
	assert_null(info_of(session).box_id);
	assert_int_equal(running(f), 0);
	expect_refused(f, try_execute(f, session), ERR_CONFLICT);
}

static void a_box_lost_to_memory_is_reported_as_such(void **state)
{
	struct fixture *f = *state;
	const struct error lost = {.code = ERR_AGENT_LOST, .msg = "it vanished"};
	const struct box_counters counters = {.oom_kills = 1};
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e = execute(f, session);

	(void)begin(box);
	fake_set_counters(box, &counters);
	fake_lost(box, &lost);
	expect_status(e, OUTCOME_FAILED);
	assert_int_equal(record_of(e).outcome->limit, OUTCOME_LIMIT_MEMORY);
	expect_state(session, SESSION_FAILED);
}

static void program_that_is_never_started_fails_the_session(void **state)
{
	struct fixture *f = *state;
	struct session *session;
	struct run_record *e;

	session_service_free(f->service);
	run_service_free(f->runs);
	make_services(f, 30 * USEC_PER_MS);
	session = ready(f);
	e = execute(f, session);
	pass(f, 60 * USEC_PER_MS);
	expect_state(session, SESSION_FAILED);
	expect_status(e, OUTCOME_CRASHED);
	/* The same limit applies to the box. */
	session = create(f);
	e = execute(f, session);
	pass(f, 60 * USEC_PER_MS);
	expect_state(session, SESSION_FAILED);
	assert_int_equal(record_of(e).failure->code, ERR_BOX_FAILED);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(runner_is_started_once_and_code_handed_to_it),
		TEST(language_without_a_runner_runs_as_a_program),
		TEST(outcome_has_output_report_and_growth_of_counters),
		TEST(stdin_is_passed_and_closed),
		TEST(stdin_may_stay_open),
		TEST(executions_run_in_order_and_the_queue_is_bounded),
		TEST(places_are_shared_with_all_executions),
		TEST(run_that_heeds_the_interrupt_saves_the_session),
		TEST(runner_that_does_not_is_killed_and_replaced),
		TEST(answer_that_crosses_the_kill_costs_the_runner),
		TEST(agent_that_does_not_report_the_kill_costs_the_box),
		TEST(a_separate_program_is_killed_at_once),
		TEST(cancelling_interrupts_first),
		TEST(cancelling_before_the_start_is_heeded_too),
		TEST(interrupt_leaves_the_session_as_it_is),
		TEST(runner_that_ends_with_the_run_is_a_reset),
		TEST(runner_killed_for_memory_names_the_limit),
		TEST(a_dead_idle_runner_is_reported_by_the_next_run),
		TEST(a_run_that_crosses_its_runners_death_goes_to_another),
		TEST(runner_that_cannot_be_started_fails_the_run_with_its_reason),
		TEST(lost_box_is_a_crash),
		TEST(a_box_lost_to_memory_is_reported_as_such),
		TEST(program_that_is_never_started_fails_the_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
