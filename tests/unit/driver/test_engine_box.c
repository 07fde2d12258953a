/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_rig.h"

/* Deadlines of many seconds become a millisecond; the test sees the requested one. */
static uint64_t last_delay_us;
static bool hurry;

void __real_timer_start(struct timer *t, uint64_t delay_us);
void __wrap_timer_start(struct timer *t, uint64_t delay_us);
void __wrap_timer_start(struct timer *t, uint64_t delay_us)
{
	last_delay_us = delay_us;
	__real_timer_start(t, hurry ? 1000 : delay_us);
}

static void run_until(struct engine_rig *rig, const char *text)
{
	while (!rig->rec.text.data || !strstr(rig->rec.text.data, text))
		loop_run_once(rig->loop, true);
	rig_run(rig);
}

static void the_create_request_matches_the_spec(void **state)
{
	struct engine_rig *rig = *state;
	struct box_spec spec = sample_spec("abc");
	struct engine_request request;
	struct box *box = NULL;

	spec.exec_tmp = true;
	assert_int_equal(box_create(rig->driver, &spec, &rig->events, &box, &rig->err), 0);
	request = rig_hear(rig, ENGINE_CREATE);
	assert_string_equal(request.box_id, "abc");
	assert_int_equal(request.limits.memory_bytes, spec.limits.memory_bytes);
	assert_int_equal(request.limits.workspace_bytes, spec.limits.workspace_bytes);
	assert_int_equal(request.limits.tmp_bytes, spec.limits.tmp_bytes);
	assert_int_equal(request.limits.shm_bytes, spec.limits.shm_bytes);
	assert_int_equal(request.limits.workspace_inodes, spec.limits.workspace_inodes);
	assert_int_equal(request.limits.tmp_inodes, spec.limits.tmp_inodes);
	assert_int_equal(request.limits.pids, spec.limits.pids);
	assert_int_equal(request.limits.cpu_millicores, spec.limits.cpu_millicores);
	assert_int_equal(request.flags, ENGINE_FLAG_REQUIRE_CGROUP | ENGINE_FLAG_EXEC_TMP);
	assert_int_equal(request.frozen, 0);
	assert_string_equal(box_id(box), "abc");
}

static void programs_go_out_before_hello_and_behind_setup(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box = rig_create(rig, "a");
	struct exec_plan plan = sample_plan(1);
	struct engine_request request = rig_hear(rig, ENGINE_CREATE);
	struct msg_setup setup;
	struct frame frame;

	assert_int_equal(box_exec(box, &plan, &rig->err), 0);
	rig_created(rig, &request, RIG_ENGINE_LAYERS);
	frame = rig_agent_hear(rig, MSG_SETUP);
	assert_int_equal(msg_setup_decode(&frame, &setup), 0);
	assert_int_equal(setup.version, WIRE_VERSION);
	assert_int_equal(setup.uid, 1000);
	assert_int_equal(setup.gid, 1001);
	assert_int_equal(setup.nofile, 256);
	assert_int_equal(setup.nproc, 32);
	assert_int_equal(setup.data_limit, 0); /* a cgroup counts */
	/* Above the largest file system: filling it gives ENOSPC, not SIGXFSZ. */
	assert_true(setup.fsize > sample_spec("a").limits.tmp_bytes);
	assert_int_equal(setup.landlock_required, 0);
	(void)rig_agent_hear(rig, MSG_EXEC);
	recorder_expect(&rig->rec, "");
	rig_hello(rig, LINK_AGENT_LAYERS & ~LAYER_BIT(LAYER_LANDLOCK));
	recorder_expect(&rig->rec, "ready ");
	assert_int_equal(box_layers(box), LAYERS_ALL & ~LAYER_BIT(LAYER_LANDLOCK));
}

static void without_a_cgroup_rlimits_stand_in(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_request request;
	struct msg_setup setup;
	struct frame frame;

	rig->driver->caps.required_layers = LAYER_BIT(LAYER_LANDLOCK);
	(void)rig_create(rig, "a");
	request = rig_hear(rig, ENGINE_CREATE);
	assert_int_equal(request.flags, 0);
	rig_created(rig, &request, 0);
	frame = rig_agent_hear(rig, MSG_SETUP);
	assert_int_equal(msg_setup_decode(&frame, &setup), 0);
	assert_int_equal(setup.data_limit, 64 << 20);
	assert_int_equal(setup.landlock_required, 1);
}

static void a_box_without_an_engine_layer_is_sent_nothing(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box = rig_create(rig, "a");
	struct exec_plan plan = sample_plan(1);
	struct engine_request request = rig_hear(rig, ENGINE_CREATE);
	char c;

	assert_int_equal(box_exec(box, &plan, &rig->err), 0);
	rig_created(rig, &request, RIG_ENGINE_LAYERS & ~LAYER_BIT(LAYER_CGROUP_PIDS));
	recorder_expect(&rig->rec, "lost(UNAVAILABLE) ");
	assert_non_null(strstr(rig->rec.err.msg, "cgroup.pids"));
	assert_true(rig_was_killed(rig));
	assert_true(recv(rig->agent, &c, 1, MSG_DONTWAIT) <= 0);
}

static void a_box_whose_agent_lacks_a_layer_is_lost(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box = rig_create(rig, "a");
	struct engine_request request = rig_hear(rig, ENGINE_CREATE);

	rig_created(rig, &request, RIG_ENGINE_LAYERS);
	rig_hello(rig, LINK_AGENT_LAYERS & ~LAYER_BIT(LAYER_SECCOMP));
	recorder_expect(&rig->rec, "lost(UNAVAILABLE) ");
	assert_non_null(strstr(rig->rec.err.msg, "seccomp"));
	assert_true(rig_was_killed(rig));
	assert_string_equal(box_id(box), "a"); /* there until it was destroyed */
}

static void a_breach_of_the_protocol_kills_the_box(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box;
	struct engine_request request = rig_ready(rig, "a", &box);

	assert_false(rig_was_killed(rig));
	rig_hello(rig, 0);
	recorder_expect(&rig->rec, "lost(PROTOCOL) ");
	assert_true(rig_was_killed(rig));
	rig_hear_nothing(rig); /* only box_destroy requests the removal */
	box_destroy(box);
	rig_gone(rig, &request, rig_hear(rig, ENGINE_DESTROY).seq);
	recorder_expect(&rig->rec, "gone ");
}

static void destroying_kills_then_sends_destroy_and_waits_for_gone(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_request destroy;
	struct box *box;

	(void)rig_ready(rig, "a", &box);
	box_destroy(box);
	box_destroy(box);
	assert_true(rig_was_killed(rig)); /* the engine's message has not been read yet */
	destroy = rig_hear(rig, ENGINE_DESTROY);
	assert_string_equal(destroy.box_id, "a");
	rig_hear_nothing(rig);
	rig_run(rig);
	recorder_expect(&rig->rec, "");
	rig_gone(rig, &destroy, destroy.seq);
	recorder_expect(&rig->rec, "gone ");
	(void)rig_create(rig, "a"); /* the name is free again */
}

static void a_box_can_be_destroyed_from_every_callback(void **state)
{
	static const char *const callbacks[] = {"ready", "started", "lost", "gone"};
	struct engine_rig *rig = *state;

	for (size_t i = 0; i < ARRAY_SIZE(callbacks); i++) {
		struct exec_plan plan = sample_plan(1);
		struct engine_request request;
		cleanup_buf struct buf b = BUF_INIT(1000);
		struct msg_started started = {.pid = 2};
		struct box *box = rig_create(rig, "a");

		rig->rec.destroy_on = callbacks[i];
		assert_int_equal(box_exec(box, &plan, &rig->err), 0);
		request = rig_hear(rig, ENGINE_CREATE);
		rig_created(rig, &request, RIG_ENGINE_LAYERS);
		rig_hello(rig, LINK_AGENT_LAYERS);
		if (i > 0) {
			assert_int_equal(msg_started_encode(&b, 1, &started), 0);
			assert_int_equal(fd_write_all(rig->agent, b.data, b.len), 0);
			rig_run(rig);
		}
		if (i > 1) {
			rig->agent = fd_close(rig->agent);
			rig_run(rig);
		}
		if (i > 2)
			box_destroy(box);
		rig_gone(rig, &request, rig_hear(rig, ENGINE_DESTROY).seq);
		assert_string_equal(strstr(rig->rec.text.data, "gone"), "gone ");
		buf_reset(&rig->rec.text);
	}
}

static void a_box_destroyed_before_created_is_killed_on_arrival(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box = rig_create(rig, "a");
	struct engine_request create = rig_hear(rig, ENGINE_CREATE);
	struct engine_request destroy;

	box_destroy(box);
	destroy = rig_hear(rig, ENGINE_DESTROY);
	rig_created(rig, &create, RIG_ENGINE_LAYERS);
	assert_true(rig_was_killed(rig));
	recorder_expect(&rig->rec, "");
	rig_gone(rig, &destroy, destroy.seq);
	recorder_expect(&rig->rec, "gone ");
}

static void a_refused_box_is_lost_and_then_destroyed(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box = rig_create(rig, "a");
	struct engine_request create = rig_hear(rig, ENGINE_CREATE);

	rig_failed(rig, &create, create.seq, "no");
	recorder_expect(&rig->rec, "lost(BOX_FAILED) ");
	assert_string_equal(rig->rec.err.msg, "no");
	assert_int_equal(rig->rec.err.sys, EPERM);
	/* The engine may still be removing what it had started. */
	box_destroy(box);
	rig_gone(rig, &create, rig_hear(rig, ENGINE_DESTROY).seq);
	recorder_expect(&rig->rec, "gone ");
}

static void a_refusal_that_crosses_destroy_is_not_yet_the_end(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box = rig_create(rig, "a");
	struct engine_request create = rig_hear(rig, ENGINE_CREATE);

	box_destroy(box);
	rig_failed(rig, &create, create.seq, "no");
	recorder_expect(&rig->rec, "");
	rig_gone(rig, &create, rig_hear(rig, ENGINE_DESTROY).seq);
	recorder_expect(&rig->rec, "gone ");
}

static void answers_about_a_box_that_is_gone_are_in_order(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_request create;
	struct box *box;

	create = rig_ready(rig, "a", &box);
	box_destroy(box);
	rig_gone(rig, &create, 0); /* by itself, while DESTROY was on its way */
	recorder_expect(&rig->rec, "gone ");
	rig_gone(rig, &create, rig_hear(rig, ENGINE_DESTROY).seq);
	rig_failed(rig, &create, 0, "late");
	recorder_expect(&rig->rec, "");
	assert_int_equal(rig->engine_losses, 0);
}

static void an_engine_that_cannot_destroy_is_given_up(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_request destroy;
	struct box *box;

	(void)rig_ready(rig, "a", &box);
	box_destroy(box);
	destroy = rig_hear(rig, ENGINE_DESTROY);
	rig_failed(rig, &destroy, destroy.seq, "busy");
	recorder_expect(&rig->rec, "engine_lost(BOX_FAILED) gone ");
	assert_non_null(strstr(rig->engine_err.msg, "cannot remove box a: busy"));
}

static void the_engines_reason_is_waited_for(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box = rig_create(rig, "a");
	struct engine_request create = rig_hear(rig, ENGINE_CREATE);

	rig_created(rig, &create, RIG_ENGINE_LAYERS);
	rig->agent = fd_close(rig->agent);
	rig_run(rig);
	recorder_expect(&rig->rec, "");
	assert_int_equal(last_delay_us, ENGINE_REASON_TIMEOUT_US);
	rig_failed(rig, &create, 0, "mount /proc");
	recorder_expect(&rig->rec, "lost(BOX_FAILED) ");
	assert_string_equal(rig->rec.err.msg, "mount /proc");
	box_destroy(box); /* before the engine's own GONE came: they cross */
	(void)rig_hear(rig, ENGINE_DESTROY);
	rig_gone(rig, &create, 0);
	recorder_expect(&rig->rec, "gone ");
}

static void waiting_for_the_engines_reason_times_out(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_request create;

	hurry = true;
	(void)rig_create(rig, "a");
	create = rig_hear(rig, ENGINE_CREATE);
	rig_created(rig, &create, RIG_ENGINE_LAYERS);
	rig->agent = fd_close(rig->agent);
	run_until(rig, "lost");
	recorder_expect(&rig->rec, "lost(AGENT_LOST) ");
	hurry = false;
}

static void gone_while_being_built_is_a_loss(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box = rig_create(rig, "a");
	struct engine_request create = rig_hear(rig, ENGINE_CREATE);

	rig_created(rig, &create, RIG_ENGINE_LAYERS);
	rig->agent = fd_close(rig->agent);
	rig_gone(rig, &create, 0);
	recorder_expect(&rig->rec, "lost(AGENT_LOST) ");
	box_destroy(box);
	rig_hear_nothing(rig);
	rig_run(rig);
	recorder_expect(&rig->rec, "gone ");
}

static void last_messages_count_even_if_the_engine_is_faster(void **state)
{
	struct engine_rig *rig = *state;
	cleanup_buf struct buf b = BUF_INIT(1000);
	struct exec_plan plan = sample_plan(1);
	struct msg_started started = {.pid = 2};
	struct msg_done done = {.status = 4};
	struct engine_request create;
	struct engine_reply gone;
	struct box *box;

	create = rig_ready(rig, "a", &box);
	assert_int_equal(box_exec(box, &plan, &rig->err), 0);
	assert_int_equal(msg_started_encode(&b, 1, &started), 0);
	assert_int_equal(msg_done_encode(&b, 1, &done), 0);
	/* Both are there when the loop looks; the engine's socket may well come first. */
	gone = reply_to(ENGINE_GONE, &create);
	gone.seq = 0;
	assert_int_equal(fd_send(rig->engine, &gone, sizeof(gone), NULL, 0), 0);
	assert_int_equal(fd_write_all(rig->agent, b.data, b.len), 0);
	rig_run(rig);
	recorder_expect(&rig->rec, "started(1) done(1,exit 4) lost(AGENT_LOST) ");
}

static void a_box_that_dies_slowly_delays_no_other(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_request destroy;
	struct box *box, *other;

	(void)rig_ready(rig, "a", &box);
	hurry = true;
	box_destroy(box);
	assert_int_equal(last_delay_us, ENGINE_GONE_TIMEOUT_US);
	destroy = rig_hear(rig, ENGINE_DESTROY);
	/* Well past the shortened deadline. */
	for (int i = 0; i < 20; i++) {
		(void)usleep(1000);
		rig_run(rig);
	}
	hurry = false;
	recorder_expect(&rig->rec, "");
	(void)rig_ready(rig, "b", &other);
	rig_gone(rig, &destroy, destroy.seq);
	recorder_expect(&rig->rec, "gone ");
}

/* What the engine has not confirmed is not done. */
static void one_freeze_request_at_a_time(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_request freeze;
	struct engine_reply reply;
	struct box *box;

	(void)rig_ready(rig, "a", &box);
	assert_int_equal(box_freeze(box, true, &rig->err), 1);
	freeze = rig_hear(rig, ENGINE_FREEZE);
	assert_int_equal(freeze.frozen, 1);
	/* Requests meanwhile wait for the reply, and only the last counts. */
	assert_int_equal(box_freeze(box, false, &rig->err), 1);
	assert_int_equal(box_freeze(box, true, &rig->err), 1);
	recorder_expect(&rig->rec, "");
	reply = reply_to(ENGINE_FROZEN, &freeze);
	rig_reply(rig, &reply);
	recorder_expect(&rig->rec, "frozen ");
	assert_int_equal(box_freeze(box, false, &rig->err), 1);
	freeze = rig_hear(rig, ENGINE_FREEZE);
	assert_int_equal(freeze.frozen, 0);
	assert_int_equal(box_freeze(box, true, &rig->err), 1);
	reply = reply_to(ENGINE_FROZEN, &freeze);
	rig_reply(rig, &reply);
	recorder_expect(&rig->rec, ""); /* it was thawed, and shall be frozen */
	freeze = rig_hear(rig, ENGINE_FREEZE);
	assert_int_equal(freeze.frozen, 1);
	rig_failed(rig, &freeze, freeze.seq, "no");
	recorder_expect(&rig->rec, "lost(BOX_FAILED) "); /* in an unknown state: unusable */
}

static void only_a_ready_box_is_frozen(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box = rig_create(rig, "a");

	assert_int_equal(box_freeze(box, true, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_CONFLICT);
}

static void freezing_without_an_engine_is_refused(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box;

	(void)rig_ready(rig, "a", &box);
	rig->engine = fd_close(rig->engine); /* the loop has not seen it yet */
	assert_int_equal(box_freeze(box, true, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_UNAVAILABLE);
}

static void without_cgroup_kill_the_first_process_is_killed(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box = rig_create(rig, "a");
	struct engine_request create = rig_hear(rig, ENGINE_CREATE);
	struct engine_reply reply = reply_to(ENGINE_CREATED, &create);
	pid_t pid = fork();
	int fds[2], pair[2], status = 0;

	if (pid == 0) {
		(void)alarm(10); /* a missing kill fails the test instead of hanging it */
		for (;;)
			(void)pause();
	}
	assert_true(pid > 0);
	assert_int_equal(fd_socketpair(SOCK_STREAM, pair), 0);
	rig->agent = pair[1];
	fds[0] = pair[0];
	fds[1] = fd_pidfd_open(pid);
	reply.created.fds = 1U << ENGINE_FD_AGENT | 1U << ENGINE_FD_PIDFD;
	reply.created.layers = RIG_ENGINE_LAYERS;
	assert_int_equal(fd_send(rig->engine, &reply, sizeof(reply), fds, 2), 0);
	(void)fd_close(fds[0]);
	(void)fd_close(fds[1]);
	rig_run(rig);
	box_destroy(box);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void names_are_unique_and_places_counted(void **state)
{
	struct engine_rig *rig = *state;
	struct box_spec spec = sample_spec("a");
	struct box *box = rig_create(rig, "a");

	assert_int_equal(box_create(rig->driver, &spec, &rig->events, &box, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_CONFLICT);
	error_clear(&rig->err);
	(void)rig_create(rig, "b");
	(void)rig_create(rig, "c");
	spec = sample_spec("d");
	assert_int_equal(box_create(rig->driver, &spec, &rig->events, &box, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_BUSY);
}

static void uncounted_values_are_unknown(void **state)
{
	struct engine_rig *rig = *state;
	struct box_counters counters;
	struct box *box;

	(void)rig_ready(rig, "a", &box);
	box_counters(box, COUNTERS_FOR_VIEW, &counters);
	assert_true(counters.memory_peak_bytes == COUNTER_UNKNOWN);
	assert_true(counters.pids_denied == COUNTER_UNKNOWN);
}

static void what_the_runtime_vouches_for_is_said_apart(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_request request;
	struct box *box = rig_create(rig, "a");

	rig->vouched = LAYER_BIT(LAYER_PID) | LAYER_BIT(LAYER_CAPS);
	request = rig_hear(rig, ENGINE_CREATE);
	rig_created(rig, &request, RIG_ENGINE_LAYERS & ~LAYER_BIT(LAYER_PID));
	assert_int_equal(box_vouched(box), rig->vouched);
	rig_hello(rig, LINK_AGENT_LAYERS);
	recorder_expect(&rig->rec, "ready ");
	assert_int_equal(box_layers(box), LAYERS_ALL);
	/* The agent has measured the other. */
	assert_int_equal(box_vouched(box), LAYER_BIT(LAYER_PID));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_the_runtime_vouches_for_is_said_apart),
		TEST(the_create_request_matches_the_spec),
		TEST(programs_go_out_before_hello_and_behind_setup),
		TEST(without_a_cgroup_rlimits_stand_in),
		TEST(a_box_without_an_engine_layer_is_sent_nothing),
		TEST(a_box_whose_agent_lacks_a_layer_is_lost),
		TEST(a_breach_of_the_protocol_kills_the_box),
		TEST(destroying_kills_then_sends_destroy_and_waits_for_gone),
		TEST(a_box_can_be_destroyed_from_every_callback),
		TEST(a_box_destroyed_before_created_is_killed_on_arrival),
		TEST(a_refused_box_is_lost_and_then_destroyed),
		TEST(a_refusal_that_crosses_destroy_is_not_yet_the_end),
		TEST(answers_about_a_box_that_is_gone_are_in_order),
		TEST(an_engine_that_cannot_destroy_is_given_up),
		TEST(the_engines_reason_is_waited_for),
		TEST(waiting_for_the_engines_reason_times_out),
		TEST(gone_while_being_built_is_a_loss),
		TEST(last_messages_count_even_if_the_engine_is_faster),
		TEST(a_box_that_dies_slowly_delays_no_other),
		TEST(one_freeze_request_at_a_time),
		TEST(only_a_ready_box_is_frozen),
		TEST(freezing_without_an_engine_is_refused),
		TEST(without_cgroup_kill_the_first_process_is_killed),
		TEST(names_are_unique_and_places_counted),
		TEST(uncounted_values_are_unknown),
	};

	return cmocka_run_group_tests_name("driver/engine_box", tests, NULL, NULL);
}
