/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder.h"

#include "driver/fake.h"
#include "io/loop.h"
#include <sys/syscall.h>

struct fixture {
	struct loop *loop;
	struct driver *driver;
	struct recorder rec;
	struct box *box;
	struct error err;
};

static int setup(void **state)
{
	static struct fixture f;
	struct box_spec spec = sample_spec("box");
	struct box_events events;

	f = (struct fixture){.loop = loop_new()};
	f.driver = fake_driver_new(f.loop);
	recorder_init(&f.rec);
	events = recorder_events(&f.rec);
	assert_int_equal(box_create(f.driver, &spec, &events, &f.box, &f.err), 0);
	f.rec.box = f.box;
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	driver_free(f->driver);
	loop_free(f->loop);
	buf_done(&f->rec.text);
	return 0;
}

static void the_test_sees_what_was_handed_over(void **state)
{
	struct fixture *f = *state;
	const struct exec_file files[] = {
		{.path = "main.py", .data = "print()", .len = 7, .mode = 0444, .source = true},
		{.path = "d/empty", .data = "", .len = 0, .mode = 0644},
	};
	struct exec_plan plan = sample_plan(3);
	const struct fake_exec *e;

	assert_null(fake_exec_last(f->box));
	plan.files = files;
	plan.files_count = 2;
	plan.cwd = "d";
	plan.stdin_open = true;
	assert_int_equal(box_exec(f->box, &plan, &f->err), 0);
	assert_int_equal(box_stdin(f->box, 3, "in", 2, &f->err), 0);
	e = fake_exec_last(f->box);
	assert_int_equal(e->id, 3);
	assert_string_equal(e->argv[0], "/usr/bin/python3");
	assert_string_equal(e->argv[2], "pass");
	assert_null(e->argv[3]);
	assert_string_equal(e->env[0], "PATH=/usr/bin");
	assert_string_equal(e->cwd, "d");
	assert_int_equal(e->files_count, 2);
	assert_string_equal(e->files[0].path, "main.py");
	assert_string_equal(e->files[0].data, "print()");
	assert_true(e->files[0].source);
	assert_int_equal(e->files[0].mode, 0444);
	assert_int_equal(e->files[1].len, 0);
	assert_false(e->files[1].source);
	assert_string_equal(e->stdin_data, "in");
	assert_true(e->stdin_open);
	assert_int_equal(box_stdin_end(f->box, 3, &f->err), 0);
	assert_false(fake_exec_last(f->box)->stdin_open);
	assert_int_equal(e->stdout_max, 100);
	assert_int_equal(e->stderr_max, 10);
	assert_int_equal(e->report_max, 50);
}

static void the_test_plays_a_whole_run(void **state)
{
	struct fixture *f = *state;
	struct exec_plan plan = sample_plan(1);
	struct exec_facts facts = {.status = 3, .stdout_bytes = 500, .stderr_bytes = 1};

	assert_int_equal(box_exec(f->box, &plan, &f->err), 0);
	fake_started(f->box, 1);
	fake_output(f->box, 1, OUTPUT_STDOUT, "hi", 2);
	fake_output(f->box, 1, OUTPUT_STDERR, "!", 1);
	fake_report(f->box, 1, "{}");
	fake_denial(f->box, 1, SYS_mount, 2);
	fake_done(f->box, 1, &facts);
	recorder_expect(&f->rec, "ready started(1) out(1,hi) err(1,!) report(1,{}) "
	                         "denial(1,mount,2) done(1,exit 3) ");
	assert_int_equal(f->rec.facts.stdout_bytes, 500);
}

static void failures_are_played_too(void **state)
{
	struct fixture *f = *state;
	struct exec_plan plan = sample_plan(1);
	struct error err = {.code = ERR_NOT_FOUND, .msg = "no such program"};

	assert_int_equal(box_exec(f->box, &plan, &f->err), 0);
	fake_exec_failed(f->box, 1, &err);
	recorder_expect(&f->rec, "ready failed(1,NOT_FOUND) ");
	err.code = ERR_AGENT_LOST;
	fake_lost(f->box, &err);
	fake_lost(f->box, &err);
	recorder_expect(&f->rec, "lost(AGENT_LOST) ");
	assert_int_equal(box_exec(f->box, &plan, &f->err), -1);
}

static void gone_comes_from_the_loop_and_once(void **state)
{
	struct fixture *f = *state;

	box_destroy(f->box);
	box_destroy(f->box);
	assert_true(fake_is_destroyed(f->box));
	recorder_expect(&f->rec, "");
	loop_run_once(f->loop, false);
	recorder_expect(&f->rec, "gone ");
	assert_int_equal(fake_box_count(f->driver), 0);
}

static void gone_can_be_held_back(void **state)
{
	struct fixture *f = *state;

	fake_hold_gone(f->driver, true);
	box_destroy(f->box);
	loop_run_once(f->loop, false);
	recorder_expect(&f->rec, "");
	assert_ptr_equal(fake_box_at(f->driver, 0), f->box);
	fake_gone(f->box);
	recorder_expect(&f->rec, "gone ");
}

static void a_refusal_is_for_one_box(void **state)
{
	struct fixture *f = *state;
	struct error refusal = {.code = ERR_BUSY, .msg = "full"};
	struct box_spec spec = sample_spec("other");
	struct box_events events = recorder_events(&f->rec);
	struct box *box = NULL;

	fake_refuse_next(f->driver, &refusal);
	assert_int_equal(box_create(f->driver, &spec, &events, &box, &f->err), -1);
	assert_int_equal(f->err.code, ERR_BUSY);
	error_clear(&f->err);
	assert_int_equal(box_create(f->driver, &spec, &events, &box, &f->err), 0);
	assert_string_equal(fake_spec(fake_box_at(f->driver, 1))->id, "other");
}

static void a_driver_with_boxes_can_be_freed(void **state)
{
	struct fixture *f = *state;

	box_destroy(f->box); /* its end is due when the driver goes */
	driver_free(f->driver);
	f->driver = NULL;
	loop_run_once(f->loop, false);
	recorder_expect(&f->rec, "");
}

static void the_test_plays_a_runner(void **state)
{
	static const char *const args[] = {"-v", NULL};
	struct fixture *f = *state;
	const struct exec_file file = {
		.path = "run2.py", .data = "x", .len = 1, .mode = 0444, .source = true};
	struct exec_plan runner = sample_plan(1);
	const struct run_plan run = {.id = 2,
	                             .runner = 1,
	                             .source = "run2.py",
	                             .args = args,
	                             .files = &file,
	                             .files_count = 1};
	const struct exec_facts lost = {.status = 7, .runner_lost = true}, ended = {.status = 7};
	const struct fake_exec *e;

	runner.keep = true;
	assert_int_equal(box_exec(f->box, &runner, &f->err), 0);
	assert_int_equal(box_run(f->box, &run, &f->err), 0);
	e = fake_exec_last(f->box);
	assert_int_equal(e->id, 2);
	assert_int_equal(e->runner, 1);
	assert_string_equal(e->source, "run2.py");
	assert_string_equal(e->argv[0], "-v");
	assert_string_equal(e->files[0].data, "x");
	assert_true(fake_exec_of(f->box, 1)->keep);
	assert_null(fake_exec_of(f->box, 3));
	assert_int_equal(box_signal(f->box, 1, 9, &f->err), 0);
	assert_int_equal(fake_exec_of(f->box, 1)->signo, 9);
	assert_int_equal(fake_exec_of(f->box, 1)->signals, 1);
	assert_int_equal(fake_exec_of(f->box, 2)->signals, 0);
	fake_started(f->box, 1);
	fake_started(f->box, 2);
	fake_done(f->box, 2, &lost);
	assert_true(f->rec.facts.runner_lost);
	fake_done(f->box, 1, &ended);
	recorder_expect(&f->rec, "ready started(1) started(2) done(2,exit 7) done(1,exit 7) ");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_test_sees_what_was_handed_over),
		TEST(the_test_plays_a_whole_run),
		TEST(the_test_plays_a_runner),
		TEST(failures_are_played_too),
		TEST(gone_comes_from_the_loop_and_once),
		TEST(gone_can_be_held_back),
		TEST(a_refusal_is_for_one_box),
		TEST(a_driver_with_boxes_can_be_freed),
	};

	return cmocka_run_group_tests_name("driver/fake", tests, NULL, NULL);
}
