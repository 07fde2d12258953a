/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "core/policy/policies.h"
#include "run_fixture.h"

static void queue_is_bounded_and_served_in_order(void **state)
{
	struct fixture *f = *state;
	struct heard h[5] = {0};

	for (int i = 0; i < 4; i++)
		start(f, &h[i]);
	assert_int_equal(try_start(f, &h[4]), -1);
	assert_int_equal(f->err.code, ERR_BUSY);
	assert_true(f->err.retry_s >= 1);
	assert_int_equal(stats(f).running, 2);
	assert_int_equal(stats(f).queued, 2);
	assert_int_equal(fake_box_count(f->driver), 2);
	f->request.code = NULL; /* a waiting run has a copy */
	done(run(f, 1), 0);
	assert_int_equal(h[1].ends, 1);
	settle(f);
	assert_int_equal(stats(f).running, 2);
	assert_int_equal(stats(f).queued, 1);
	assert_string_equal(fake_exec_last(box_at(f, 1))->files[0].data, "print");
	done(run(f, 1), 0);
	assert_int_equal(h[2].ends, 1);
	done(run(f, 0), 0);
	settle(f);
	done(run(f, 0), 0);
	assert_int_equal(h[0].ends + h[3].ends, 2);
	expect_idle(f);
}

static void queued_request_is_copied_whole(void **state)
{
	struct fixture *f = *state;
	char name[] = "f", data[] = "d", arg[] = "arg", var[] = "V=1", in[] = "in";
	struct run_request_file files[] = {{name, data, 1}};
	char *args[] = {arg, NULL};
	char *env[] = {var, NULL};
	const struct fake_exec *received;
	struct heard h[3] = {0};

	start(f, &h[0]);
	start(f, &h[1]);
	f->request.files = files;
	f->request.files_count = 1;
	f->request.args = args;
	f->request.env = env;
	f->request.stdin_data = in;
	f->request.stdin_len = 2;
	start(f, &h[2]);
	name[0] = data[0] = arg[0] = var[0] = in[0] = '#';
	done(run(f, 0), 0);
	settle(f);
	received = fake_exec_last(box_at(f, 1));
	assert_string_equal(received->files[1].path, "f");
	assert_string_equal(received->files[1].data, "d");
	assert_string_equal(received->argv[3], "arg");
	assert_string_equal(received->stdin_data, "in");
	for (int i = 1; i < 3; i++)
		run_unwatch(h[i].watch);
	expect_idle(f);
}

static void refused_box_of_a_queued_one_passes_the_turn_on(void **state)
{
	const struct error no = {.code = ERR_UNAVAILABLE, .msg = "no more boxes"};
	struct fixture *f = *state;
	struct heard h[4] = {0};

	for (int i = 0; i < 4; i++)
		start(f, &h[i]);
	fake_refuse_next(f->driver, &no);
	done(run(f, 0), 0);
	settle(f);
	assert_int_equal(h[2].errors, 1);
	assert_int_equal(h[3].errors, 0);
	assert_int_equal(stats(f).queued, 0);
	assert_int_equal(stats(f).running, 2);
	run_unwatch(h[1].watch);
	run_unwatch(h[3].watch);
	expect_idle(f);
}

static void cancelled_runs_report_nothing(void **state)
{
	struct fixture *f = *state;
	struct heard h[4] = {0};

	for (int i = 0; i < 4; i++)
		start(f, &h[i]);
	(void)run(f, 0);
	run_unwatch(h[3].watch); /* waiting */
	assert_int_equal(stats(f).queued, 1);
	run_unwatch(h[0].watch); /* running */
	run_unwatch(h[1].watch); /* building */
	assert_int_equal(stats(f).queued, 0);
	run_unwatch(h[2].watch);
	expect_idle(f);
	for (int i = 0; i < 4; i++)
		assert_int_equal(h[i].ends + h[i].errors, 0);
}

static void aborted_runs_end_from_the_loop(void **state)
{
	struct fixture *f = *state;
	struct heard h[3] = {0};
	struct box *box;

	for (int i = 0; i < 3; i++)
		start(f, &h[i]);
	box = run(f, 0);
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "part", 4);
	run_abort(h[2].exec);
	run_abort(h[0].exec);
	run_abort(h[0].exec);
	run_abort(h[1].exec);
	assert_int_equal(h[0].ends + h[1].ends + h[2].ends, 0);
	settle(f);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(h[i].ends, 1);
		assert_int_equal(h[i].outcome.status, OUTCOME_CANCELLED);
	}
	assert_string_equal(h[0].out, "part");
	expect_idle(f);
}

static void drain_finishes_what_runs_and_refuses_the_rest(void **state)
{
	struct fixture *f = *state;
	struct heard h[3] = {0};

	start(f, &h[0]);
	run_service_drain(f->service, false, on_drained, f);
	assert_true(stats(f).draining);
	assert_int_equal(try_start(f, &h[1]), -1);
	assert_int_equal(f->err.code, ERR_UNAVAILABLE);
	done(run(f, 0), 0);
	assert_int_equal(h[0].outcome.status, OUTCOME_SUCCESS);
	assert_int_equal(f->drained, 0);
	wait_for(f, &f->drained);
	expect_idle(f);
	assert_int_equal(f->drained, 1);
}

static void draining_nothing_ends_from_the_loop(void **state)
{
	struct fixture *f = *state;

	run_service_drain(f->service, false, on_drained, f);
	assert_int_equal(f->drained, 0);
	wait_for(f, &f->drained);
	settle(f);
	assert_int_equal(f->drained, 1);
}

static void patience_ends(void **state)
{
	struct fixture *f = *state;
	struct heard h[3] = {0};

	for (int i = 0; i < 3; i++)
		start(f, &h[i]);
	(void)run(f, 0);
	run_service_drain(f->service, false, on_drained, f);
	wait_for(f, &f->drained);
	for (int i = 0; i < 3; i++)
		assert_int_equal(h[i].outcome.status, OUTCOME_CANCELLED);
	expect_idle(f);
}

static void a_second_drain_and_an_immediate_drain_do_not_wait(void **state)
{
	struct fixture *f = *state;
	struct heard h[4] = {0};

	f->config->drain_timeout_us = 3600 * USEC_PER_SEC;
	for (int i = 0; i < 4; i++)
		start(f, &h[i]);
	(void)run(f, 0);
	run_service_drain(f->service, false, on_drained, f);
	settle(f);
	assert_int_equal(h[0].ends, 0);
	run_service_drain(f->service, true, on_drained, f);
	assert_int_equal(fake_box_count(f->driver), 2); /* the queue got no box */
	wait_for(f, &f->drained);
	for (int i = 0; i < 4; i++)
		assert_int_equal(h[i].ends, 1);
	expect_idle(f);
}

static void a_remaining_box_delays_the_drain(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	fake_hold_gone(f->driver, true);
	start(f, &h);
	box = run(f, 0);
	run_service_drain(f->service, true, on_drained, f);
	settle(f);
	assert_int_equal(h.ends, 1);
	assert_int_equal(f->drained, 0);
	fake_gone(box);
	wait_for(f, &f->drained);
}

static void late_messages_of_an_ended_box_are_ignored(void **state)
{
	const struct error gone = {.code = ERR_AGENT_LOST, .msg = "gone"};
	struct fixture *f = *state;
	struct heard h = {0};

	start(f, &h);
	fake_lost(box_at(f, 0), &gone);
	assert_int_equal(h.errors, 1);
	run_service_drain(f->service, true, on_drained, f);
	wait_for(f, &f->drained);
	assert_int_equal(h.errors + h.ends, 1);
}

static void service_can_go_before_its_boxes(void **state)
{
	struct fixture *f = *state;
	struct heard h[4] = {0};
	struct box *box;

	fake_hold_gone(f->driver, true);
	for (int i = 0; i < 4; i++)
		start(f, &h[i]);
	(void)run(f, 0);
	run_abort(h[1].exec); /* its response is still to come */
	run_service_free(f->service);
	f->service = NULL;
	settle(f);
	for (int i = 0; i < 4; i++)
		assert_int_equal(h[i].ends + h[i].errors, 0);
	while ((box = fake_box_at(f->driver, 0)))
		fake_gone(box);
}

static void restart_with(struct fixture *f, const struct policies *policies)
{
	run_service_free(f->service);
	settle(f);
	f->service = run_service_new(&(struct run_service_config){.config = f->config,
	                                                          .driver = f->driver,
	                                                          .runners = f->runners,
	                                                          .loop = f->loop,
	                                                          .policies = policies});
}

static void restart(struct fixture *f)
{
	restart_with(f, NULL);
}

/* Only building is bounded: a program that runs leaves its place to the next. */
static void started_programs_do_not_keep_others_waiting(void **state)
{
	struct fixture *f = *state;
	struct heard h[40] = {0};
	struct box *box;

	f->config->max_running = 0;
	f->config->max_queued = 1000;
	f->config->max_starting = 1;
	restart(f);
	for (size_t i = 0; i < ARRAY_SIZE(h); i++)
		start(f, &h[i]);
	assert_int_equal(stats(f).running, 1);
	for (size_t i = 0; i < ARRAY_SIZE(h); i++) {
		box = fake_box_at(f->driver, i);
		assert_non_null(box);
		fake_ready(box);
		fake_started(box, RUN_BOX_EXEC_ID);
	}
	assert_int_equal(stats(f).running, ARRAY_SIZE(h));
	assert_int_equal(stats(f).queued, 0);
	for (size_t i = 0; i < ARRAY_SIZE(h); i++)
		run_unwatch(h[i].watch);
	expect_idle(f);
}

static void boxes_of_the_driver_bound_what_runs(void **state)
{
	struct fixture *f = *state;
	struct heard h[2] = {0};

	f->config->max_running = 0;
	f->driver->caps.boxes_max = 1;
	restart(f);
	start(f, &h[0]);
	start(f, &h[1]);
	assert_int_equal(stats(f).running, 1);
	assert_int_equal(stats(f).queued, 1);
	run_unwatch(h[0].watch);
	run_unwatch(h[1].watch);
	expect_idle(f);
}

/* Replaces the policy default in @dir. */
static void put_policy(const char *dir, const char *text)
{
	cleanup_free char *path = xasprintf("%s/default.yaml", dir);
	cleanup_free char *whole = xasprintf("name: default\n%s\n", text);

	(void)unlink(path);
	if (*text)
		assert_int_equal(file_create_at(AT_FDCWD, path, 0644, whole, strlen(whole)), 0);
}

/* Policies that change meanwhile apply to what has no box yet. */
static void a_queued_run_has_the_network_that_policies_allow_now(void **state)
{
	static const struct {
		const char *before, *after;
		const char *refused; /* NULL: it starts */
		uint16_t ranges;
	} rows[] = {
		{"network: {mode: bridge}", "network: {mode: bridge}", NULL, BOX_RANGES_ALL},
		{"network: {mode: bridge}", "network: {mode: bridge, ranges: []}", NULL, 0},
		{"network: {mode: bridge}", "network: {mode: host}", NULL, BOX_RANGES_ALL},
		{"network: {mode: bridge}", "network: {mode: allowlist}",
	         "policy default: network.mode: network 'bridge' is not allowed", 0},
		{"network: {mode: host}", "network: {mode: host}", NULL, 0},
		{"network: {mode: host}", "network: {mode: bridge}",
	         "policy default: network.mode: network 'host' is not allowed", 0},
		{"network: {mode: host}", "network: {mode: host}\nisolation: {require: [net]}",
	         "policy default: isolation.require: ", 0},
	};
	char dir[] = "/tmp/millibox-run-XXXXXX";
	const struct policies_config config = {.dir = dir, .fallback = "default"};
	struct fixture *f = *state;

	assert_non_null(mkdtemp(dir));
	f->driver->caps.networks =
		BOX_NETWORK_BIT(BOX_NETWORK_BRIDGE) | BOX_NETWORK_BIT(BOX_NETWORK_HOST);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct heard h[3] = {0};
		struct policies *policies;

		put_policy(dir, rows[i].before);
		policies = policies_load(&config, &f->err);
		assert_non_null(policies);
		restart_with(f, policies);
		for (size_t j = 0; j < ARRAY_SIZE(h); j++)
			start(f, &h[j]);
		assert_int_equal(stats(f).queued, 1);
		put_policy(dir, rows[i].after);
		assert_int_equal(policies_reload(policies, &f->err), 0);
		done(run(f, 0), 0);
		settle(f);
		assert_int_equal(h[0].ends, 1);
		assert_int_equal(h[2].errors, rows[i].refused ? 1 : 0);
		if (rows[i].refused) {
			assert_int_equal(h[2].error.code, ERR_DENIED);
			assert_non_null(strstr(h[2].error.msg, rows[i].refused));
			assert_int_equal(fake_box_count(f->driver), 1);
		} else {
			assert_int_equal(fake_spec(box_at(f, 1))->ranges, rows[i].ranges);
			run_unwatch(h[2].watch);
		}
		run_unwatch(h[1].watch);
		expect_idle(f);
		restart(f);
		policies_free(policies);
	}
	put_policy(dir, "");
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(queue_is_bounded_and_served_in_order),
		TEST(queued_request_is_copied_whole),
		TEST(refused_box_of_a_queued_one_passes_the_turn_on),
		TEST(cancelled_runs_report_nothing),
		TEST(aborted_runs_end_from_the_loop),
		TEST(drain_finishes_what_runs_and_refuses_the_rest),
		TEST(draining_nothing_ends_from_the_loop),
		TEST(patience_ends),
		TEST(a_second_drain_and_an_immediate_drain_do_not_wait),
		TEST(a_remaining_box_delays_the_drain),
		TEST(late_messages_of_an_ended_box_are_ignored),
		TEST(service_can_go_before_its_boxes),
		TEST(started_programs_do_not_keep_others_waiting),
		TEST(boxes_of_the_driver_bound_what_runs),
		TEST(a_queued_run_has_the_network_that_policies_allow_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
