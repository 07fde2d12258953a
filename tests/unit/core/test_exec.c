/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/str.h"
#include "core/config.h"
#include "core/exec.h"
#include "core_fixture.h"
#include "driver/fake.h"
#include "io/loop.h"
#include "wire/layer.h"

#define EXEC_ID 1

/* What one caller was told. */
struct heard {
	struct exec *exec;
	int starts, ends, errors;
	char id[40];
	char streamed[64];
	struct outcome outcome; /* buffers are copies below */
	char out[64], err[64], report[64];
	struct error error;
	bool cancel_on_output;
};

struct fixture {
	struct loop *loop;
	struct driver *driver;
	struct runners *runners;
	struct config *config;
	struct exec_service *service;
	struct exec_request request; /* strings are not owned here */
	struct error err;
	int drained;
};

static void on_start(void *ctx, const char *execution_id)
{
	struct heard *h = ctx;

	h->starts++;
	assert_int_equal(str_copy(h->id, sizeof(h->id), execution_id), 0);
}

static void on_output(void *ctx, enum output_stream stream, const char *data, size_t len)
{
	struct heard *h = ctx;
	size_t n = strlen(h->streamed);

	(void)snprintf(h->streamed + n, sizeof(h->streamed) - n, "%d%.*s", (int)stream, (int)len,
	               data);
	if (h->cancel_on_output)
		exec_cancel(h->exec);
}

static void keep(char *place, size_t size, const struct buf *b)
{
	(void)snprintf(place, size, "%s", b->data ? b->data : "");
}

static void on_end(void *ctx, const struct outcome *outcome)
{
	struct heard *h = ctx;

	h->ends++;
	h->outcome = *outcome;
	keep(h->out, sizeof(h->out), &outcome->out);
	keep(h->err, sizeof(h->err), &outcome->err);
	keep(h->report, sizeof(h->report), &outcome->report);
}

static void on_error(void *ctx, const struct error *err)
{
	struct heard *h = ctx;

	h->errors++;
	h->error = *err;
}

static void on_drained(void *ctx)
{
	struct fixture *f = ctx;

	f->drained++;
}

static int setup(void **state)
{
	static const struct config_override settings[] = {
		{"admission.max_running",   "2"   },
		{"admission.max_queued",    "2"   },
		{"admission.drain_timeout", "50ms"},
		{"limits.output",           "8"   }
        };
	struct fixture *f = NEW(struct fixture);

	f->loop = loop_new();
	f->driver = fake_driver_new(f->loop);
	f->runners = fixture_runners();
	f->config = config_load(NULL, settings, ARRAY_SIZE(settings), &f->err);
	if (!f->config)
		return -1;
	f->service = exec_service_new(&(struct exec_service_config){
		.config = f->config, .driver = f->driver, .runners = f->runners, .loop = f->loop});
	f->request = (struct exec_request){
		.language = (char *)"demo", .code = (char *)"print", .code_len = 5};
	*state = f;
	return 0;
}

static void settle(struct fixture *f)
{
	for (int i = 0; i < 5; i++)
		loop_run_once(f->loop, false);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	exec_service_free(f->service);
	settle(f);
	driver_free(f->driver);
	settle(f);
	loop_free(f->loop);
	runners_free(f->runners);
	config_free(f->config);
	free(f);
	return 0;
}

static int try_start(struct fixture *f, struct heard *h)
{
	const struct exec_events events = {h, on_start, on_output, on_end, on_error};

	*h = (struct heard){.cancel_on_output = h->cancel_on_output};
	error_clear(&f->err);
	return exec_start(f->service, &f->request, &events, &h->exec, &f->err);
}

static void start(struct fixture *f, struct heard *h)
{
	if (try_start(f, h) < 0)
		fail_msg("%s", f->err.msg);
	assert_int_equal(h->ends + h->errors + h->starts, 0);
}

static struct box *box_at(struct fixture *f, size_t index)
{
	struct box *box = fake_box_at(f->driver, index);

	assert_non_null(box);
	return box;
}

/* A box whose program runs. */
static struct box *run(struct fixture *f, size_t index)
{
	struct box *box = box_at(f, index);

	(void)fake_exec_last(box);
	fake_ready(box);
	fake_started(box, EXEC_ID);
	return box;
}

static void done(struct box *box, int status)
{
	const struct exec_facts facts = {
		.status = status, .duration_us = 1500, .cpu_user_us = 300, .cpu_system_us = 40};

	fake_done(box, EXEC_ID, &facts);
}

static void wait_for(struct fixture *f, const int *count)
{
	uint64_t deadline = clock_us() + 5 * USEC_PER_SEC;

	/* Not blocking: a timer may be all there is, and it fires before a round would wait. */
	while (*count == 0 && clock_us() < deadline)
		loop_run_once(f->loop, false);
	assert_int_equal(*count, 1);
}

static struct exec_service_stats stats(struct fixture *f)
{
	struct exec_service_stats s;

	exec_service_stats(f->service, &s);
	return s;
}

static void expect_idle(struct fixture *f)
{
	settle(f);
	assert_int_equal(stats(f).running, 0);
	assert_int_equal(stats(f).queued, 0);
	assert_int_equal(stats(f).boxes, 0);
	assert_int_equal(fake_box_count(f->driver), 0);
}

static void everything_is_handed_over_at_once(void **state)
{
	struct fixture *f = *state;
	struct exec_request_file files[] = {
		{(char *)"a/b.txt", (char *)"data", 4}
        };
	char *args[] = {(char *)"-v", NULL};
	char *env[] = {(char *)"MINE=1", NULL};
	const struct fake_exec *told;
	struct heard h = {0};
	struct box *box;

	f->request.files = files;
	f->request.files_count = 1;
	f->request.args = args;
	f->request.env = env;
	f->request.stdin_data = (char *)"in\0put";
	f->request.stdin_len = 6;
	start(f, &h);
	box = box_at(f, 0);
	told = fake_exec_last(box);
	assert_non_null(told);
	assert_int_equal(told->id, EXEC_ID);
	assert_string_equal(told->argv[0], "/bin/sh");
	assert_string_equal(told->argv[3], "-v");
	assert_string_equal(told->env[str_list_count(told->env) - 1], "MINE=1");
	assert_string_equal(told->cwd, "");
	assert_int_equal(told->files_count, 2);
	assert_string_equal(told->files[0].path, "main.x");
	assert_string_equal(told->files[0].data, "print");
	assert_true(told->files[0].source);
	assert_int_equal(told->files[0].mode, 0444);
	assert_string_equal(told->files[1].path, "a/b.txt");
	assert_string_equal(told->files[1].data, "data");
	assert_false(told->files[1].source);
	assert_int_equal(told->stdin_len, 6);
	assert_memory_equal(told->stdin_data, "in\0put", 6);
	assert_false(told->stdin_open); /* its end came, too */
	assert_int_equal(told->stdout_max, 9);
	assert_int_equal(told->report_max, 4 * 1024 * 1024);
	assert_int_equal(fake_spec(box)->limits.memory_bytes, f->config->memory_bytes);
	assert_true(strlen(box_id(box)) == 26);
	exec_cancel(h.exec);
	expect_idle(f);
}

static void program_that_ends_is_answered_before_its_box_is_gone(void **state)
{
	const struct exec_facts facts = {.duration_us = 1500, .stdout_bytes = 3, .stderr_bytes = 3};
	const struct box_counters counters = {
		.memory_peak_bytes = 4096, .cpu_us = 777, .pids_peak = 3};
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	fake_hold_gone(f->driver, true);
	start(f, &h);
	box = run(f, 0);
	assert_int_equal(h.starts, 1);
	fake_set_counters(box, &counters);
	fake_set_layers(box, LAYERS_ALL & ~LAYER_BIT(LAYER_LANDLOCK));
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "out", 3);
	fake_output(box, EXEC_ID, OUTPUT_STDERR, "err", 3);
	fake_report(box, EXEC_ID, "{\"result\":1}");
	fake_denial(box, EXEC_ID, SYS_mount, 4);
	fake_done(box, EXEC_ID, &facts);
	assert_int_equal(h.ends, 1);
	assert_int_equal(h.outcome.status, EXEC_SUCCESS);
	assert_int_equal(h.outcome.limit, EXEC_LIMIT_NONE);
	assert_string_equal(h.out, "out");
	assert_string_equal(h.err, "err");
	assert_string_equal(h.report, "{\"result\":1}");
	assert_string_equal(h.streamed, "0out1err");
	assert_string_equal(h.id, h.outcome.execution_id);
	assert_int_equal(strlen(h.id), strlen("exec_20261115_ab12cd34"));
	assert_true(str_has_prefix(h.id, "exec_2"));
	assert_int_equal(h.outcome.duration_us, 1500);
	assert_int_equal(h.outcome.cpu_us, 777);
	assert_int_equal(h.outcome.memory_peak_bytes, 4096);
	assert_int_equal(h.outcome.processes_peak, 3);
	assert_int_equal(h.outcome.layers_missing, LAYER_BIT(LAYER_LANDLOCK));
	assert_string_equal(h.outcome.driver, "fake");
	assert_int_equal(h.outcome.denials_count, 1);
	assert_string_equal(h.outcome.denials[0].what, "mount");
	assert_true(fake_is_destroyed(box));
	assert_int_equal(stats(f).running, 0);
	assert_int_equal(stats(f).boxes, 1);
	fake_gone(box);
	expect_idle(f);
	assert_int_equal(h.ends, 1);
}

static void uncounted_usage_is_the_agents_word(void **state)
{
	struct fixture *f = *state;
	struct box_counters unknown;
	struct heard h = {0};
	struct exec_facts facts = {.status = 2,
	                           .cpu_user_us = 10,
	                           .cpu_system_us = 5,
	                           .max_rss_kib = 100,
	                           .read_bytes = 1,
	                           .write_bytes = 2};
	struct box *box;

	memset(&unknown, 0xff, sizeof(unknown));
	start(f, &h);
	box = run(f, 0);
	fake_set_counters(box, &unknown);
	fake_done(box, EXEC_ID, &facts);
	assert_int_equal(h.outcome.status, EXEC_FAILED);
	assert_int_equal(h.outcome.exit_code, 2);
	assert_int_equal(h.outcome.cpu_us, 15);
	assert_int_equal(h.outcome.memory_peak_bytes, 100 * 1024);
	assert_true(h.outcome.processes_peak == COUNTER_UNKNOWN);
	assert_int_equal(h.outcome.read_bytes, 1);
	assert_int_equal(h.outcome.write_bytes, 2);
	expect_idle(f);
}

static void output_is_capped_here_as_well(void **state)
{
	struct fixture *f = *state;
	struct exec_facts facts = {.stdout_bytes = 5000, .stderr_bytes = 8};
	struct heard h = {0};
	struct box *box;

	start(f, &h);
	box = run(f, 0);
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "12345", 5);
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "6789", 4);
	fake_output(box, EXEC_ID, OUTPUT_STDERR, "12345678", 8);
	fake_done(box, EXEC_ID, &facts);
	assert_string_equal(h.out, "12345678");
	assert_string_equal(h.streamed, "012345067811234567"
	                                "8");
	assert_true(h.outcome.out_truncated);
	assert_false(h.outcome.err_truncated);
	assert_int_equal(h.outcome.limit, EXEC_LIMIT_OUTPUT);
	assert_int_equal(h.outcome.status, EXEC_SUCCESS);
	assert_int_equal(h.outcome.stdout_bytes, 5000);
	expect_idle(f);
}

static void deadline_keeps_the_output_so_far(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	f->request.timeout_us = 20000;
	start(f, &h);
	box = run(f, 0);
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "so far", 6);
	wait_for(f, &h.ends);
	assert_int_equal(h.outcome.status, EXEC_TIMEOUT);
	assert_int_equal(h.outcome.limit, EXEC_LIMIT_TIME);
	assert_false(h.outcome.exited);
	assert_string_equal(h.out, "so far");
	assert_false(h.outcome.out_truncated);
	assert_int_equal(h.outcome.stdout_bytes, 6);
	assert_true(h.outcome.duration_us >= 20000 && h.outcome.duration_us < 2000000);
	expect_idle(f);
}

static void clock_starts_with_the_program(void **state)
{
	struct fixture *f = *state;
	uint64_t until = clock_us() + 60000;
	struct heard h = {0};

	f->request.timeout_us = 30000;
	start(f, &h);
	while (clock_us() < until)
		loop_run_once(f->loop, false);
	assert_int_equal(h.ends + h.errors, 0);
	done(run(f, 0), 0);
	assert_int_equal(h.outcome.status, EXEC_SUCCESS);
	assert_true(h.outcome.start_us >= 50000);
	expect_idle(f);
}

static void lost_box_is_an_error_before_the_start_and_a_crash_after(void **state)
{
	const struct error gone = {.code = ERR_AGENT_LOST, .msg = "the agent is gone"};
	const struct box_counters oom = {.oom_kills = 1};
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	start(f, &h);
	fake_lost(box_at(f, 0), &gone);
	assert_int_equal(h.errors, 1);
	assert_int_equal(h.error.code, ERR_AGENT_LOST);
	expect_idle(f);

	start(f, &h);
	box = run(f, 0);
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "x", 1);
	fake_lost(box, &gone);
	assert_int_equal(h.ends, 1);
	assert_int_equal(h.outcome.status, EXEC_CRASHED);
	assert_string_equal(h.out, "x");
	expect_idle(f);

	start(f, &h);
	box = run(f, 0);
	fake_set_counters(box, &oom);
	fake_lost(box, &gone);
	assert_int_equal(h.outcome.status, EXEC_FAILED);
	assert_int_equal(h.outcome.limit, EXEC_LIMIT_MEMORY);
	expect_idle(f);
	assert_int_equal(h.ends + h.errors, 1);
}

static void program_that_cannot_start_is_an_error(void **state)
{
	const struct error no = {.code = ERR_BOX_FAILED, .msg = "no such program"};
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	start(f, &h);
	box = box_at(f, 0);
	(void)fake_exec_last(box);
	fake_ready(box);
	fake_exec_failed(box, EXEC_ID, &no);
	assert_int_equal(h.errors, 1);
	assert_int_equal(h.error.code, ERR_BOX_FAILED);
	assert_int_equal(h.ends + h.starts, 0);
	expect_idle(f);
}

static void refused_box_is_told_from_the_loop(void **state)
{
	const struct error no = {.code = ERR_UNAVAILABLE, .msg = "no more boxes"};
	struct fixture *f = *state;
	struct heard h = {0};

	fake_refuse_next(f->driver, &no);
	start(f, &h);
	settle(f);
	assert_int_equal(h.errors, 1);
	assert_int_equal(h.error.code, ERR_UNAVAILABLE);
	expect_idle(f);

	fake_refuse_next(f->driver, &no);
	start(f, &h);
	exec_cancel(h.exec); /* before it was told */
	settle(f);
	assert_int_equal(h.errors, 0);
	expect_idle(f);
}

static void bad_request_begins_nothing(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};

	f->request.language = (char *)"cobol";
	assert_int_equal(try_start(f, &h), -1);
	assert_string_equal(f->err.field, "language");
	assert_null(h.exec);
	expect_idle(f);
	assert_int_equal(h.errors + h.ends, 0);
}

static void queue_is_bounded_and_served_in_order(void **state)
{
	struct fixture *f = *state;
	struct heard h[5] = {0};

	for (int i = 0; i < 4; i++)
		start(f, &h[i]);
	assert_int_equal(try_start(f, &h[4]), -1);
	assert_int_equal(f->err.code, ERR_BUSY);
	assert_true(exec_service_retry_after(f->service) >= 1);
	assert_int_equal(stats(f).running, 2);
	assert_int_equal(stats(f).queued, 2);
	assert_int_equal(fake_box_count(f->driver), 2);
	f->request.code = NULL; /* what waits has a copy */
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
	struct exec_request_file files[] = {
		{name, data, 1}
        };
	char *args[] = {arg, NULL};
	char *env[] = {var, NULL};
	const struct fake_exec *told;
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
	told = fake_exec_last(box_at(f, 1));
	assert_string_equal(told->files[1].path, "f");
	assert_string_equal(told->files[1].data, "d");
	assert_string_equal(told->argv[3], "arg");
	assert_string_equal(told->stdin_data, "in");
	for (int i = 1; i < 3; i++)
		exec_cancel(h[i].exec);
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
	exec_cancel(h[1].exec);
	exec_cancel(h[3].exec);
	expect_idle(f);
}

static void cancelled_ones_hear_nothing(void **state)
{
	struct fixture *f = *state;
	struct heard h[4] = {0};

	for (int i = 0; i < 4; i++)
		start(f, &h[i]);
	(void)run(f, 0);
	exec_cancel(h[3].exec); /* waiting */
	assert_int_equal(stats(f).queued, 1);
	exec_cancel(h[0].exec); /* running */
	exec_cancel(h[1].exec); /* building */
	assert_int_equal(stats(f).queued, 0);
	exec_cancel(h[2].exec);
	expect_idle(f);
	for (int i = 0; i < 4; i++)
		assert_int_equal(h[i].ends + h[i].errors, 0);
}

static void cancel_from_a_callback_is_safe(void **state)
{
	struct fixture *f = *state;
	struct heard h = {.cancel_on_output = true};
	struct box *box;

	start(f, &h);
	box = run(f, 0);
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "x", 1);
	assert_true(fake_is_destroyed(box));
	expect_idle(f);
	assert_int_equal(h.ends + h.errors, 0);
}

static void aborted_ones_hear_of_it_from_the_loop(void **state)
{
	struct fixture *f = *state;
	struct heard h[3] = {0};
	struct box *box;

	for (int i = 0; i < 3; i++)
		start(f, &h[i]);
	box = run(f, 0);
	fake_output(box, EXEC_ID, OUTPUT_STDOUT, "part", 4);
	exec_abort(h[2].exec);
	exec_abort(h[0].exec);
	exec_abort(h[0].exec);
	exec_abort(h[1].exec);
	assert_int_equal(h[0].ends + h[1].ends + h[2].ends, 0);
	settle(f);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(h[i].ends, 1);
		assert_int_equal(h[i].outcome.status, EXEC_CANCELLED);
	}
	assert_string_equal(h[0].out, "part");
	expect_idle(f);
}

static void abort_waits_for_answer_and_box_in_any_order(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	fake_hold_gone(f->driver, true);
	start(f, &h);
	box = run(f, 0);
	exec_abort(h.exec);
	fake_gone(box); /* before the answer */
	assert_int_equal(h.ends, 0);
	settle(f);
	assert_int_equal(h.ends, 1);
	expect_idle(f);
}

static void drain_finishes_what_runs_and_refuses_the_rest(void **state)
{
	struct fixture *f = *state;
	struct heard h[3] = {0};

	start(f, &h[0]);
	exec_service_drain(f->service, false, on_drained, f);
	assert_true(stats(f).draining);
	assert_int_equal(try_start(f, &h[1]), -1);
	assert_int_equal(f->err.code, ERR_UNAVAILABLE);
	done(run(f, 0), 0);
	assert_int_equal(h[0].outcome.status, EXEC_SUCCESS);
	assert_int_equal(f->drained, 0);
	wait_for(f, &f->drained);
	expect_idle(f);
	assert_int_equal(f->drained, 1);
}

static void drain_of_nothing_is_told_from_the_loop(void **state)
{
	struct fixture *f = *state;

	exec_service_drain(f->service, false, on_drained, f);
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
	exec_service_drain(f->service, false, on_drained, f);
	wait_for(f, &f->drained);
	for (int i = 0; i < 3; i++)
		assert_int_equal(h[i].outcome.status, EXEC_CANCELLED);
	expect_idle(f);
}

static void second_drain_and_drain_at_once_wait_for_nobody(void **state)
{
	struct fixture *f = *state;
	struct heard h[4] = {0};

	f->config->drain_timeout_us = 3600 * USEC_PER_SEC;
	for (int i = 0; i < 4; i++)
		start(f, &h[i]);
	(void)run(f, 0);
	exec_service_drain(f->service, false, on_drained, f);
	settle(f);
	assert_int_equal(h[0].ends, 0);
	exec_service_drain(f->service, true, on_drained, f);
	assert_int_equal(fake_box_count(f->driver), 2); /* the queue got no box on its way out */
	wait_for(f, &f->drained);
	for (int i = 0; i < 4; i++)
		assert_int_equal(h[i].ends, 1);
	expect_idle(f);
}

static void box_that_stays_keeps_the_service_from_being_drained(void **state)
{
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	fake_hold_gone(f->driver, true);
	start(f, &h);
	box = run(f, 0);
	exec_service_drain(f->service, true, on_drained, f);
	settle(f);
	assert_int_equal(h.ends, 1);
	assert_int_equal(f->drained, 0);
	fake_gone(box);
	wait_for(f, &f->drained);
}

static void report_may_be_as_large_as_allowed_and_no_larger(void **state)
{
	static char piece[64 * 1024 + 1];
	struct fixture *f = *state;
	struct heard h = {0};
	struct box *box;

	memset(piece, 'j', sizeof(piece) - 1);
	start(f, &h);
	box = run(f, 0);
	for (int i = 0; i < 64; i++)
		fake_report(box, EXEC_ID, piece);
	done(box, 0);
	assert_int_equal(h.outcome.status, EXEC_SUCCESS);
	assert_int_equal(h.outcome.report.len, 4 * 1024 * 1024);
	expect_idle(f);

	start(f, &h);
	box = run(f, 0);
	for (int i = 0; i < 64; i++)
		fake_report(box, EXEC_ID, piece);
	fake_report(box, EXEC_ID, "j"); /* an agent in order cuts it off before */
	assert_int_equal(h.outcome.status, EXEC_CRASHED);
	expect_idle(f);
}

static void late_words_of_an_ended_box_are_ignored(void **state)
{
	const struct error gone = {.code = ERR_AGENT_LOST, .msg = "gone"};
	struct fixture *f = *state;
	struct heard h = {0};

	start(f, &h);
	fake_lost(box_at(f, 0), &gone);
	assert_int_equal(h.errors, 1);
	exec_service_drain(f->service, true, on_drained, f);
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
	exec_abort(h[1].exec); /* its answer is still to come */
	exec_service_free(f->service);
	f->service = NULL;
	settle(f);
	for (int i = 0; i < 4; i++)
		assert_int_equal(h[i].ends + h[i].errors, 0);
	while ((box = fake_box_at(f->driver, 0)))
		fake_gone(box);
}

static void request_can_be_freed(void **state)
{
	struct exec_request r = {0};

	(void)state;
	exec_request_done(&r);
	r.language = xstrdup("x");
	r.code = xstrdup("x");
	r.stdin_data = xstrdup("x");
	r.args = xcalloc(2, sizeof(char *));
	r.args[0] = xstrdup("x");
	r.files = xcalloc(1, sizeof(*r.files));
	r.files[0].name = xstrdup("x");
	r.files[0].data = xstrdup("x");
	r.files_count = 1;
	exec_request_done(&r);
	assert_null(r.files);
	assert_int_equal(r.files_count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(everything_is_handed_over_at_once),
		TEST(program_that_ends_is_answered_before_its_box_is_gone),
		TEST(uncounted_usage_is_the_agents_word),
		TEST(output_is_capped_here_as_well),
		TEST(deadline_keeps_the_output_so_far),
		TEST(clock_starts_with_the_program),
		TEST(lost_box_is_an_error_before_the_start_and_a_crash_after),
		TEST(program_that_cannot_start_is_an_error),
		TEST(refused_box_is_told_from_the_loop),
		TEST(bad_request_begins_nothing),
		TEST(queue_is_bounded_and_served_in_order),
		TEST(queued_request_is_copied_whole),
		TEST(refused_box_of_a_queued_one_passes_the_turn_on),
		TEST(cancelled_ones_hear_nothing),
		TEST(cancel_from_a_callback_is_safe),
		TEST(aborted_ones_hear_of_it_from_the_loop),
		TEST(abort_waits_for_answer_and_box_in_any_order),
		TEST(drain_finishes_what_runs_and_refuses_the_rest),
		TEST(drain_of_nothing_is_told_from_the_loop),
		TEST(patience_ends),
		TEST(second_drain_and_drain_at_once_wait_for_nobody),
		TEST(box_that_stays_keeps_the_service_from_being_drained),
		TEST(report_may_be_as_large_as_allowed_and_no_larger),
		TEST(late_words_of_an_ended_box_are_ignored),
		TEST(service_can_go_before_its_boxes),
		TEST(request_can_be_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
