/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder.h"

#include "driver/fake.h"
#include "driver/internal.h"
#include "io/loop.h"
#include <signal.h>

struct fixture {
	struct loop *loop;
	struct driver *driver;
	struct recorder rec;
	struct box_events events;
	struct error err;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){.loop = loop_new()};
	f.driver = fake_driver_new(f.loop);
	recorder_init(&f.rec);
	f.events = recorder_events(&f.rec);
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

static struct box *make_box(struct fixture *f)
{
	struct box_spec spec = sample_spec("box");
	struct box *box = NULL;

	assert_int_equal(box_create(f->driver, &spec, &f->events, &box, &f->err), 0);
	return box;
}

static void assert_refused(struct fixture *f, int r, enum error_code code, const char *field)
{
	assert_int_equal(r, -1);
	assert_int_equal(f->err.code, code);
	assert_string_equal(f->err.field, field);
	error_clear(&f->err);
}

static void a_bad_spec_reaches_no_backend(void **state)
{
	struct fixture *f = *state;
	struct box_spec spec = sample_spec("box");
	struct box *box = NULL;

	spec.limits.pids = 0;
	assert_refused(f, box_create(f->driver, &spec, &f->events, &box, &f->err), ERR_INVALID,
	               "limits.pids");
	assert_int_equal(fake_box_count(f->driver), 0);
}

static void a_box_that_would_lack_a_required_layer_is_not_made(void **state)
{
	struct fixture *f = *state;
	struct box_spec spec = sample_spec("box");
	struct box *box = NULL;

	f->driver->caps.layers &= ~(LAYER_BIT(LAYER_LANDLOCK) | LAYER_BIT(LAYER_CGROUP_MEMORY));
	spec.required_layers = LAYER_BIT(LAYER_LANDLOCK) | LAYER_BIT(LAYER_USER);
	f->driver->caps.required_layers = LAYER_BIT(LAYER_CGROUP_MEMORY);
	assert_int_equal(box_create(f->driver, &spec, &f->events, &box, &f->err), -1);
	assert_int_equal(f->err.code, ERR_UNAVAILABLE);
	assert_string_equal(f->err.msg, "required isolation is missing: cgroup.memory, landlock");
	assert_int_equal(fake_box_count(f->driver), 0);
}

static void network_host_does_without_one_layer_and_needs_another(void **state)
{
	struct fixture *f = *state;
	struct box_spec spec = sample_spec("box");

	f->driver->caps.required_layers = LAYERS_STRICT;
	assert_int_equal(driver_required(f->driver, &spec), LAYERS_STRICT);
	spec.network = BOX_NETWORK_HOST;
	assert_int_equal(driver_required(f->driver, &spec),
	                 (LAYERS_STRICT & ~LAYER_BIT(LAYER_NET)) | LAYER_BIT(LAYER_LANDLOCK));
	/* A policy that names the layer gets it or nothing. */
	spec.required_layers = LAYER_BIT(LAYER_NET);
	assert_int_equal(driver_required(f->driver, &spec),
	                 LAYERS_STRICT | LAYER_BIT(LAYER_LANDLOCK));
}

static void all_layers_fit_into_the_message(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(driver_check_layers(0, LAYERS_ALL, &f->err), -1);
	assert_non_null(strstr(f->err.msg, layer_name(LAYER_COUNT - 1)));
}

static void plans_are_checked(void **state)
{
	static const char *const no_argv[] = {NULL};
	static const char *const relative[] = {"python3", NULL};
	struct fixture *f = *state;
	struct box *box = make_box(f);
	struct exec_plan plan = sample_plan(0);

	assert_refused(f, box_exec(box, &plan, &f->err), ERR_INVALID, "id");
	plan = sample_plan(1);
	plan.argv = no_argv;
	assert_refused(f, box_exec(box, &plan, &f->err), ERR_INVALID, "argv");
	plan.argv = relative;
	assert_refused(f, box_exec(box, &plan, &f->err), ERR_INVALID, "argv");
	plan = sample_plan(1);
	plan.cwd = "../etc";
	assert_refused(f, box_exec(box, &plan, &f->err), ERR_INVALID, "cwd");
	plan.cwd = "a/b";
	assert_int_equal(box_exec(box, &plan, &f->err), 0);
}

static void paths_of_files_stay_in_the_workspace(void **state)
{
	static const char *const bad[] = {"",     "/etc/passwd", "..", "../x", "a/../b",
	                                  "a/..", "a//b",        "a/", ".",    "a/./b"};
	static const char *const good[] = {"a", "a/b.txt", "..a", "a/...", ".hidden"};
	struct fixture *f = *state;
	struct box *box = make_box(f);

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct exec_file file = {.path = bad[i], .data = "x", .len = 1, .mode = 0644};
		struct exec_plan plan = sample_plan(100);

		plan.files = &file;
		plan.files_count = 1;
		assert_refused(f, box_exec(box, &plan, &f->err), ERR_INVALID, "files");
	}
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct exec_file file = {.path = good[i], .data = "x", .len = 1, .mode = 0644};
		struct exec_plan plan = sample_plan((uint32_t)i + 1);

		plan.files = &file;
		plan.files_count = 1;
		assert_int_equal(box_exec(box, &plan, &f->err), 0);
	}
}

static void files_have_ordinary_modes_and_a_total(void **state)
{
	struct fixture *f = *state;
	struct box *box = make_box(f);
	struct exec_file files[] = {
		{.path = "a", .data = "x", .len = 1, .mode = 04755},
		{.path = "b", .data = "", .len = BOX_FILES_MAX, .mode = 0644},
	};
	struct exec_plan plan = sample_plan(1);

	plan.files = files;
	plan.files_count = 2;
	assert_refused(f, box_exec(box, &plan, &f->err), ERR_INVALID, "files");
	files[0].mode = 0755;
	assert_refused(f, box_exec(box, &plan, &f->err), ERR_TOO_LARGE, "");
}

static void runs_are_checked(void **state)
{
	static const char *const args[] = {NULL};
	struct fixture *f = *state;
	struct box *box = make_box(f);
	struct exec_plan runner = sample_plan(1);
	struct exec_file files[] = {
		{.path = "run2.py", .data = "", .len = 0, .mode = 0444, .source = true},
		{.path = "../x", .data = "", .len = 0, .mode = 0644},
	};
	struct run_plan run = {
		.runner = 1, .source = "run2.py", .args = args, .files = files, .files_count = 2};

	runner.keep = true;
	assert_int_equal(box_exec(box, &runner, &f->err), 0);
	assert_refused(f, box_run(box, &run, &f->err), ERR_INVALID, "id");
	run.id = 2;
	assert_refused(f, box_run(box, &run, &f->err), ERR_INVALID, "files");
	files[1].path = "x";
	files[0].source = false; /* the payload could change it */
	assert_refused(f, box_run(box, &run, &f->err), ERR_INVALID, "source");
	files[0].source = true;
	run.source = "run3.py";
	assert_refused(f, box_run(box, &run, &f->err), ERR_INVALID, "source");
	run.source = "run2.py";
	run.runner = 2;
	assert_refused(f, box_run(box, &run, &f->err), ERR_CONFLICT, "");
	run.runner = 1;
	assert_int_equal(box_run(box, &run, &f->err), 0);
	assert_string_equal(fake_exec_last(box)->source, "run2.py");
}

static void signals_are_signals(void **state)
{
	struct fixture *f = *state;
	struct box *box = make_box(f);
	struct exec_plan plan = sample_plan(1);

	assert_int_equal(box_exec(box, &plan, &f->err), 0);
	assert_refused(f, box_signal(box, 1, 0, &f->err), ERR_INVALID, "signal");
	assert_refused(f, box_signal(box, 1, 65, &f->err), ERR_INVALID, "signal");
	assert_int_equal(box_signal(box, 1, SIGINT, &f->err), 0);
	assert_int_equal(fake_exec_last(box)->signo, SIGINT);
}

static void a_backend_that_cannot_freeze_reports_it(void **state)
{
	struct fixture *f = *state;
	struct box *box = make_box(f);

	assert_int_equal(box_freeze(box, true, &f->err), 0);
	assert_true(fake_is_frozen(box));
	f->driver->caps.can_freeze = false;
	assert_refused(f, box_freeze(box, false, &f->err), ERR_UNAVAILABLE, "");
	assert_true(fake_is_frozen(box));
}

static void a_box_reports_its_id_layers_and_counters(void **state)
{
	struct fixture *f = *state;
	struct box *box = make_box(f);
	struct box_counters counters = {.oom_kills = 7}, got;

	assert_string_equal(box_id(box), "box");
	fake_set_layers(box, LAYER_BIT(LAYER_NET));
	assert_int_equal(box_layers(box), LAYER_BIT(LAYER_NET));
	fake_set_counters(box, &counters);
	box_counters(box, COUNTERS_FOR_VIEW, &got);
	assert_int_equal(got.oom_kills, 7);
	driver_free(NULL);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_bad_spec_reaches_no_backend),
		TEST(a_box_that_would_lack_a_required_layer_is_not_made),
		TEST(network_host_does_without_one_layer_and_needs_another),
		TEST(all_layers_fit_into_the_message),
		TEST(plans_are_checked),
		TEST(paths_of_files_stay_in_the_workspace),
		TEST(files_have_ordinary_modes_and_a_total),
		TEST(runs_are_checked),
		TEST(signals_are_signals),
		TEST(a_backend_that_cannot_freeze_reports_it),
		TEST(a_box_reports_its_id_layers_and_counters),
	};

	return cmocka_run_group_tests_name("driver/driver", tests, NULL, NULL);
}
