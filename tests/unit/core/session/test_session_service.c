/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "core/tenant/scheduler.h"
#include "session_agent.h"

static void request_becomes_a_session(void **state)
{
	struct fixture *f = *state;
	char *env[] = {(char *)"A=1", (char *)"B=2", NULL};
	struct session_info info;
	struct session *session;

	session = create(f);
	info = info_of(session);
	assert_true(str_has_prefix(info.id, "sess_"));
	assert_int_equal(strlen(info.id), strlen("sess_") + 16);
	assert_string_equal(info.language, "python");
	assert_null(info.agent_id);
	assert_int_equal(info.mode, SESSION_PERSISTENT);
	assert_string_equal(session_mode_name(info.mode), "persistent");
	assert_string_equal(info.engine, "fake");
	assert_non_null(info.box_id);
	assert_int_equal(info.limits.memory_bytes, f->config->memory_bytes);
	assert_true(info.created_ms > 0 && info.ended_ms == 0);
	assert_null(info.reason);
	f->request = (struct session_request){.id = (char *)"My_id-1",
	                                      .language = (char *)"demo",
	                                      .agent_id = (char *)"agent-7",
	                                      .mode = SESSION_PERSISTENT,
	                                      .env = env,
	                                      .memory_bytes = 64 << 20,
	                                      .disk_bytes = 8 << 20,
	                                      .cpu_millicores = 500,
	                                      .max_processes = 20};
	session = create(f);
	info = info_of(session);
	assert_string_equal(info.id, "My_id-1");
	assert_string_equal(info.language, "demo");
	assert_string_equal(info.agent_id, "agent-7");
	assert_string_equal(info.env[1], "B=2");
	assert_int_equal(info.limits.memory_bytes, 64 << 20);
	assert_int_equal(info.limits.workspace_bytes, 8 << 20);
	assert_int_equal(info.limits.cpu_millicores, 500);
	assert_int_equal(info.limits.pids, 20);
	assert_int_equal(fake_spec(box_of(f, session))->limits.pids, 20);
	assert_ptr_equal(session_find(f->service, TENANT_DEFAULT, "My_id-1"), session);
}

static void limits_of_an_execution_are_the_sessions(void **state)
{
	struct fixture *f = *state;
	struct run_request_file file = {(char *)"big", NULL, 3 << 20};
	cleanup_free char *data = xcalloc(1, file.len);
	struct session *session;

	f->request.memory_bytes = 64 << 20;
	f->request.disk_bytes = 2 << 20;
	session = ready(f);
	file.data = data;
	f->code.files = &file;
	f->code.files_count = 1;
	f->code.disk_bytes = 200 << 20; /* not checked here */
	expect_refused(f, try_execute(f, session), ERR_INVALID);
	file.len = 1 << 20;
	assert_int_equal(try_execute(f, session), 0);
}

static void bad_requests_make_nothing(void **state)
{
	char *bad_env[] = {(char *)"LD_PRELOAD=x", NULL};
	const struct {
		struct session_request request;
		const char *field;
	} rows[] = {
		{{.id = (char *)"a/b"}, "session_id"},
		{{.id = (char *)""}, "session_id"},
		{{.agent_id = (char *)"a b"}, "agent_id"},
		{{.language = (char *)"klingon"}, "language"},
		{{.env = bad_env}, "env_vars"},
		{{.memory_bytes = 1}, "resources.memory"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err;

		f->request = rows[i].request;
		assert_int_equal(try_create(f), -1);
		err = f->err;
		assert_int_equal(err.code, ERR_INVALID);
		assert_string_equal(err.field, rows[i].field);
	}
	assert_int_equal(session_count(f->service, TENANT_DEFAULT), 0);
	assert_int_equal(fake_box_count(f->driver), 0);
}

static void ids_are_unique_until_deleted(void **state)
{
	struct fixture *f = *state;
	struct session *session;

	f->request.id = (char *)"one";
	session = create(f);
	expect_refused(f, try_create(f), ERR_CONFLICT);
	session_terminate(session, "over");
	expect_refused(f, try_create(f), ERR_CONFLICT); /* it can still be read */
	session_delete(session);
	assert_int_equal(try_create(f), 0);
}

static void living_sessions_are_bounded(void **state)
{
	struct fixture *f = *state; /* four */
	struct session *s[4];

	for (size_t i = 0; i < 4; i++)
		s[i] = create(f);
	expect_refused(f, try_create(f), ERR_BUSY);
	session_terminate(s[0], "over");
	assert_int_equal(try_create(f), 0);
	expect_refused(f, try_create(f), ERR_BUSY);
}

static void boxes_are_left_for_executions_without_a_session(void **state)
{
	struct fixture *f = *state;

	f->config->sessions_max = 10;
	run_service_scheduler(f->runs)->config.boxes_max = 4; /* a quarter is left */
	for (int i = 0; i < 3; i++)
		(void)create(f);
	expect_refused(f, try_create(f), ERR_BUSY);
	f->request.mode = SESSION_EPHEMERAL; /* has none of its own */
	assert_int_equal(try_create(f), 0);
}

static void first_to_end_is_the_first_to_be_forgotten(void **state)
{
	struct fixture *f = *state; /* four are remembered */
	char *ids[6];

	for (size_t i = 0; i < 6; i++) {
		struct session *session = ready(f);

		ids[i] = xstrdup(info_of(session).id);
		(void)run(f, session);
		session_terminate(session, "over");
		settle(f);
	}
	for (size_t i = 0; i < 6; i++) {
		bool known = session_find(f->service, TENANT_DEFAULT, ids[i]) != NULL;

		assert_int_equal(known, i >= 2);
		assert_int_equal(run_records_count_of(f->executions, TENANT_DEFAULT, ids[i]),
		                 known);
		free(ids[i]);
	}
	assert_int_equal(session_count(f->service, TENANT_DEFAULT), 4);
}

static void listing_begins_with_the_newest(void **state)
{
	struct fixture *f = *state;
	struct session *s[3];

	assert_null(session_at(f->service, TENANT_DEFAULT, 0));
	for (size_t i = 0; i < 3; i++)
		s[i] = create(f);
	session_terminate(s[1], "over");
	for (size_t i = 0; i < 3; i++)
		assert_ptr_equal(session_at(f->service, TENANT_DEFAULT, i), s[2 - i]);
	assert_null(session_at(f->service, TENANT_DEFAULT, 3));
	session_delete(s[1]);
	assert_ptr_equal(session_at(f->service, TENANT_DEFAULT, 1), s[0]);
	assert_int_equal(session_count(f->service, TENANT_DEFAULT), 2);
}

/* Agents. */

static void an_agents_idle_session_is_reused(void **state)
{
	struct fixture *f = *state;
	struct session *session;

	f->request.agent_id = (char *)"a";
	session = create(f);
	fake_ready(box_of(f, session));
	(void)run(f, session);
	f->request.idle_timeout_us = 5 * USEC_PER_SEC;
	f->request.language = (char *)"demo";
	assert_ptr_equal(again(f, true), session);
	assert_int_equal(info_of(session).idle_timeout_us, 5 * USEC_PER_SEC);
	assert_string_equal(info_of(session).language, "demo");
	assert_int_equal(session_count(f->service, TENANT_DEFAULT), 1);
	f->request.agent_id = (char *)"b";
	assert_ptr_not_equal(again(f, false), session);
}

static void session_in_use_or_of_another_kind_is_not(void **state)
{
	char *env[] = {(char *)"A=1", NULL};
	struct fixture *f = *state;
	struct session *session, *other;

	f->request.agent_id = (char *)"a";
	session = create(f);
	other = again(f, false); /* the first is not ready */
	session_delete(session);
	session = other;
	fake_ready(box_of(f, session));
	(void)execute(f, session);
	other = again(f, false); /* it runs something */
	session_delete(session);
	session = other;
	fake_ready(box_of(f, session));
	f->request.memory_bytes = 32 << 20;
	session_delete(again(f, false));
	f->request.memory_bytes = 0;
	session_delete(session);
	settle(f);
	session = create(f);
	fake_ready(box_of(f, session));
	f->request.env = env;
	session_delete(again(f, false));
	f->request.env = NULL;
	f->request.id = (char *)"other";
	session_delete(again(f, false));
	f->request.id = NULL;
	f->request.mode = SESSION_EPHEMERAL;
	session_delete(again(f, false));
}

static void an_ended_session_is_not_reused(void **state)
{
	struct fixture *f = *state;
	struct session *session;

	f->request.agent_id = (char *)"a";
	session = create(f);
	fake_ready(box_of(f, session));
	session_terminate(session, "over");
	assert_ptr_not_equal(again(f, false), session);
}

/* Ephemeral sessions. */

static struct session *ephemeral(struct fixture *f)
{
	struct session *session;

	f->request.mode = SESSION_EPHEMERAL;
	session = create(f);
	expect_state(session, SESSION_READY);
	return session;
}

/* The program of the only box that is not going down. */
static struct box *start_once(struct fixture *f)
{
	struct box *box = box_at(f, 0);

	assert_non_null(fake_exec_last(box));
	fake_started(box, 1);
	return box;
}

static void ephemeral_executions_have_a_box_each(void **state)
{
	struct fixture *f = *state;
	char *session_env[] = {(char *)"A=session", (char *)"B=session", NULL};
	char *env[] = {(char *)"B=own", NULL};
	const struct exec_facts facts = {.stdout_bytes = 2};
	const struct fake_exec *received;
	struct session *session;
	struct run_record *e, *second;
	struct box *box;
	size_t last;

	f->request.env = session_env;
	f->request.memory_bytes = 64 << 20;
	session = ephemeral(f);
	assert_null(info_of(session).box_id);
	f->code.env = env;
	e = execute(f, session);
	second = execute(f, session);
	expect_state(session, SESSION_RUNNING);
	assert_int_equal(fake_box_count(f->driver), 1); /* one after the other */
	box = start_once(f);
	received = fake_exec_last(box);
	assert_string_equal(received->argv[1], "/run/millibox/main.py");
	assert_string_equal(received->files[0].data, "x = 1");
	last = str_list_count(received->env) - 1;
	assert_string_equal(received->env[last - 1], "A=session");
	assert_string_equal(received->env[last], "B=own");
	assert_int_equal(fake_spec(box)->limits.memory_bytes, 64 << 20);
	assert_int_equal(record_of(e).state, RUN_RECORD_RUNNING);
	fake_output(box, 1, OUTPUT_STDOUT, "hi", 2);
	fake_report(box, 1, "{}");
	fake_done(box, 1, &facts);
	expect_status(e, OUTCOME_SUCCESS);
	assert_string_equal(record_of(e).outcome->out.data, "hi");
	assert_string_equal(record_of(e).outcome->report.data, "{}");
	assert_string_equal(record_of(e).outcome->execution_id, record_of(e).id);
	assert_false(record_of(e).session_reset);
	settle(f);
	assert_int_equal(fake_box_count(f->driver), 1);
	fake_done(start_once(f), 1, &facts);
	expect_status(second, OUTCOME_SUCCESS);
	expect_state(session, SESSION_READY);
}

/* In a session that keeps files, and no variables. */
static void workspace_executions_are_processes_of_one_box(void **state)
{
	struct fixture *f = *state;
	const struct exec_facts facts = {.stdout_bytes = 0};
	const struct fake_exec *first, *second;
	struct session *session;
	struct box *box;

	f->request.mode = SESSION_WORKSPACE;
	session = ready(f);
	box = box_of(f, session);
	assert_null(fake_exec_last(box)); /* no runner waits for code */
	(void)execute(f, session);
	first = fake_exec_last(box);
	assert_false(first->keep);
	assert_int_equal(first->runner, 0);
	assert_string_equal(first->argv[1], "/run/millibox/run1.py");
	fake_started(box, first->id);
	fake_done(box, first->id, &facts);
	(void)execute(f, session);
	second = fake_exec_last(box);
	assert_int_equal(second->id, first->id + 1);
	assert_false(second->keep);
	assert_int_equal(second->runner, 0);
	assert_int_equal(fake_box_count(f->driver), 1);
	fake_started(box, second->id);
	fake_done(box, second->id, &facts);
	expect_state(session, SESSION_READY);
	assert_string_equal(session_mode_name(info_of(session).mode), "workspace");
	assert_non_null(session_find_box(f->service, TENANT_DEFAULT, info_of(session).box_id));
}

static void ephemeral_execution_can_be_controlled(void **state)
{
	struct fixture *f = *state;
	struct session *session = ephemeral(f);
	struct run_record *e;
	struct box *box;

	expect_refused(f, session_pause(session, &f->err), ERR_CONFLICT);
	expect_refused(f, session_interrupt(session, &f->err), ERR_CONFLICT);
	f->code.stdin_open = true;
	e = execute(f, session);
	box = start_once(f);
	assert_int_equal(session_interrupt(session, &f->err), 0);
	assert_int_equal(fake_exec_last(box)->signo, SIGINT);
	assert_int_equal(run_record_stdin(e, "in", 2, false, &f->err), 0);
	assert_string_equal(fake_exec_last(box)->stdin_data, "in");
	assert_true(fake_exec_last(box)->stdin_open);
	assert_int_equal(run_record_stdin(e, "", 0, true, &f->err), 0);
	assert_false(fake_exec_last(box)->stdin_open);
	fake_output(box, 1, OUTPUT_STDOUT, "so far", 6);
	assert_int_equal(run_record_cancel(e, &f->err), 0);
	settle(f);
	expect_status(e, OUTCOME_CANCELLED);
	assert_string_equal(record_of(e).outcome->out.data, "so far");
	expect_state(session, SESSION_READY);
	settle(f);
	assert_int_equal(fake_box_count(f->driver), 0);
}

static void ephemeral_failure_is_one_of_the_execution(void **state)
{
	struct fixture *f = *state;
	const struct error no = {.code = ERR_BOX_FAILED, .msg = "no box"};
	struct session *session = ephemeral(f);
	struct run_record *e, *lost;

	fake_refuse_next(f->driver, &no);
	e = execute(f, session);
	settle(f);
	assert_int_equal(record_of(e).failure->code, ERR_BOX_FAILED);
	expect_state(session, SESSION_READY);
	lost = execute(f, session);
	fake_lost(start_once(f), &no);
	expect_status(lost, OUTCOME_CRASHED);
	expect_state(session, SESSION_READY);
}

/* An ephemeral session with one execution that runs and one that waits. */
static struct session *busy_ephemeral(struct fixture *f, struct run_record **ret_running,
                                      struct run_record **ret_queued)
{
	struct session *session = ephemeral(f);

	*ret_running = execute(f, session);
	*ret_queued = execute(f, session);
	(void)start_once(f);
	return session;
}

static void ephemeral_session_ends_with_what_it_runs(void **state)
{
	struct fixture *f = *state;
	struct run_record *e, *queued;
	struct session *session = busy_ephemeral(f, &e, &queued);

	session_terminate(session, "over");
	expect_status(queued, OUTCOME_CANCELLED);
	expect_status(e, OUTCOME_CANCELLED);
	settle(f);
	assert_int_equal(fake_box_count(f->driver), 0);
	assert_int_equal(running(f), 0);
}

static void ephemeral_session_can_be_deleted_at_any_time(void **state)
{
	struct fixture *f = *state;
	struct run_record *e, *queued;
	struct session *session = busy_ephemeral(f, &e, &queued);

	session_delete(session);
	settle(f);
	assert_int_equal(fake_box_count(f->driver), 0);
	session = busy_ephemeral(f, &e, &queued);
	session_terminate(session, "over"); /* the end of the run is on its way */
	session_delete(session);
	settle(f);
	assert_int_equal(fake_box_count(f->driver), 0);
	assert_int_equal(running(f), 0);
	assert_int_equal(session_count(f->service, TENANT_DEFAULT), 0);
}

/* The end. */

static void drain_ends_all_and_waits_for_the_boxes(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct session *deleted = ready(f);
	struct session *once, *creating;
	struct run_record *e = execute(f, session);
	struct run_record *other;
	struct box *box = box_of(f, session);
	struct box *going = box_of(f, deleted);

	(void)begin(box);
	once = ephemeral(f);
	other = execute(f, once);
	f->request.mode = SESSION_PERSISTENT;
	creating = create(f);
	fake_hold_gone(f->driver, true);
	session_delete(deleted);
	session_service_drain(f->service, on_drained, f);
	expect_state(session, SESSION_TERMINATED);
	expect_state(creating, SESSION_TERMINATED);
	expect_status(e, OUTCOME_CANCELLED);
	settle(f);
	expect_status(other, OUTCOME_CANCELLED);
	assert_int_equal(f->drained, 0);
	expect_refused(f, try_create(f), ERR_UNAVAILABLE);
	fake_gone(box);
	fake_gone(going);
	settle(f);
	assert_int_equal(f->drained, 0);
	fake_hold_gone(f->driver, false);
	while (fake_box_count(f->driver) > 0)
		fake_gone(box_at(f, 0));
	settle(f);
	assert_int_equal(f->drained, 1);
	assert_int_equal(running(f), 0);
}

static void draining_nothing_ends_at_once(void **state)
{
	struct fixture *f = *state;

	session_service_drain(f->service, on_drained, f);
	assert_int_equal(f->drained, 0);
	settle(f);
	assert_int_equal(f->drained, 1);
}

static void service_can_be_freed_at_any_time(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct run_record *e;

	e = execute(f, session);
	(void)begin(box_of(f, session));
	(void)execute(f, session);
	session = ephemeral(f);
	(void)execute(f, session);
	(void)execute(f, session);
	session_service_free(TAKE_PTR(f->service));
	settle(f);
	assert_int_equal(fake_box_count(f->driver), 0);
	assert_int_equal(running(f), 0);
	expect_refused(f, run_record_cancel(e, &f->err), ERR_CONFLICT);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request_becomes_a_session),
		TEST(limits_of_an_execution_are_the_sessions),
		TEST(bad_requests_make_nothing),
		TEST(ids_are_unique_until_deleted),
		TEST(living_sessions_are_bounded),
		TEST(boxes_are_left_for_executions_without_a_session),
		TEST(first_to_end_is_the_first_to_be_forgotten),
		TEST(listing_begins_with_the_newest),
		TEST(an_agents_idle_session_is_reused),
		TEST(session_in_use_or_of_another_kind_is_not),
		TEST(an_ended_session_is_not_reused),
		TEST(ephemeral_executions_have_a_box_each),
		TEST(workspace_executions_are_processes_of_one_box),
		TEST(ephemeral_execution_can_be_controlled),
		TEST(ephemeral_failure_is_one_of_the_execution),
		TEST(ephemeral_session_ends_with_what_it_runs),
		TEST(ephemeral_session_can_be_deleted_at_any_time),
		TEST(drain_ends_all_and_waits_for_the_boxes),
		TEST(draining_nothing_ends_at_once),
		TEST(service_can_be_freed_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
