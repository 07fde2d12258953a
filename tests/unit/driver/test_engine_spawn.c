/* SPDX-License-Identifier: Apache-2.0 */
/* The path of fake_engine is the first argument. */
#include "engine_rig.h"

#include "base/clock.h"
#include <sys/wait.h>

static const char *engine_path;
static uint64_t clock_step_us; /* each call finds the clock advanced by this */
static uint64_t clock_ahead_us;

uint64_t __real_clock_us(void);
uint64_t __wrap_clock_us(void);
uint64_t __wrap_clock_us(void)
{
	clock_ahead_us += clock_step_us;
	return __real_clock_us() + clock_ahead_us;
}

static const struct engine_option options[] = {
	{.name = "--agent", .word = "ok"},
	{.name = "--runners", .word = "/run ners"},
	{.name = "--uid-base", .number = 4294901760},
	{.name = "--max-cpu"},
	{.name = "--log-level", .word = "warn", .may_differ = true},
};

struct fixture {
	struct engine_option options[ARRAY_SIZE(options)];
	struct engine_config config;
	struct driver *driver;
	struct error err;
	size_t fds_before;
	int losses;
	struct error loss;
};

static void on_engine_lost(void *ctx, const struct error *err)
{
	struct fixture *f = ctx;

	f->losses++;
	f->loss = *err;
}

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){.fds_before = count_fds()};
	memcpy(f.options, options, sizeof(options));
	f.config = (struct engine_config){.program = engine_path,
	                                  .options = f.options,
	                                  .options_count = ARRAY_SIZE(options),
	                                  .agent_path = "ok",
	                                  .runtime_dir = "/run/time",
	                                  .is_native = true,
	                                  .strict = true,
	                                  .on_engine_lost = on_engine_lost,
	                                  .ctx = &f};
	clock_step_us = 0;
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	driver_free(f->driver);
	assert_int_equal(count_fds(), f->fds_before);
	/* No child is left: neither a zombie nor a running engine. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return 0;
}

static void expect_failure(struct fixture *f, const char *mode, const char *text)
{
	f->options[0].word = mode;
	assert_int_equal(engine_driver_spawn(&f->config, &f->driver, &f->err), -1);
	if (!strstr(f->err.msg, text))
		fail_msg("'%s' does not say '%s'", f->err.msg, text);
}

/* Its own checks are in fake_engine.c: a failing one arrives here as a failure. */
static void an_engine_starts_with_nothing_of_ours(void **state)
{
	struct fixture *f = *state;
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	sigset_t block, mask;
	int leak = dup(STDERR_FILENO); /* without close-on-exec: close_range must take it */

	assert_int_equal(sigaction(SIGPIPE, &ignore, &before), 0);
	(void)sigemptyset(&block);
	(void)sigaddset(&block, SIGUSR1);
	(void)sigprocmask(SIG_BLOCK, &block, &mask);
	assert_int_equal(setenv("LD_LIBRARY_PATH", "/nowhere", 1), 0);
	if (engine_driver_spawn(&f->config, &f->driver, &f->err) < 0)
		fail_msg("%s", f->err.msg);
	assert_int_equal(f->driver->caps.boxes_max, 5);
	assert_int_equal(f->driver->import_group.count, 1);
	assert_string_equal(f->driver->caps.ids, "subid");
	assert_string_equal(f->driver->caps.cgroup, "none");
	assert_false(f->driver->caps.can_freeze);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	(void)sigaction(SIGPIPE, &before, NULL);
	(void)unsetenv("LD_LIBRARY_PATH");
	(void)fd_close(leak);
}

static void the_end_of_an_engine_is_reported_with_its_status(void **state)
{
	struct fixture *f = *state;
	struct loop *loop = loop_new();

	f->options[0].word = "leave";
	assert_int_equal(engine_driver_spawn(&f->config, &f->driver, &f->err), 0);
	assert_int_equal(engine_driver_attach_loop(f->driver, loop, &f->err), 0);
	while (!f->losses)
		loop_run_once(loop, true);
	assert_non_null(strstr(f->loss.msg, "status 6"));
	driver_free(f->driver);
	f->driver = NULL;
	loop_free(loop);
}

static void a_missing_program(void **state)
{
	struct fixture *f = *state;

	f->config.program = "/nonexistent/millibox-engine";
	expect_failure(f, "ok", "cannot execute it");
	assert_int_equal(f->err.sys, ENOENT);
	assert_non_null(strstr(f->err.msg, "/nonexistent/millibox-engine"));
}

static void an_engine_that_dies_at_once(void **state)
{
	expect_failure(*state, "die", "exited at once");
}

static void an_engine_that_reports_why_it_cannot_start(void **state)
{
	struct fixture *f = *state;

	expect_failure(f, "fail", "no user namespaces");
	assert_int_equal(f->err.code, ERR_UNAVAILABLE);
	assert_int_equal(f->err.sys, EPERM);
}

static void an_engine_of_another_version(void **state)
{
	struct fixture *f = *state;

	expect_failure(f, "short", "wrong size");
	assert_int_equal(f->err.code, ERR_PROTOCOL);
}

static void an_engine_that_answers_something_else(void **state)
{
	expect_failure(*state, "other", "unexpected reply");
}

static void a_probe_that_makes_no_sense(void **state)
{
	expect_failure(*state, "nonsense", "is malformed");
}

static void waiting_for_a_silent_engine_times_out(void **state)
{
	struct fixture *f = *state;

	clock_step_us = ENGINE_PROBE_TIMEOUT_US + 1;
	expect_failure(f, "mute", "does not respond");
	assert_int_equal(f->err.sys, ETIMEDOUT);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(an_engine_starts_with_nothing_of_ours),
		TEST(the_end_of_an_engine_is_reported_with_its_status),
		TEST(a_missing_program),
		TEST(an_engine_that_dies_at_once),
		TEST(an_engine_that_reports_why_it_cannot_start),
		TEST(an_engine_of_another_version),
		TEST(an_engine_that_answers_something_else),
		TEST(a_probe_that_makes_no_sense),
		TEST(waiting_for_a_silent_engine_times_out),
	};

	if (argc != 2)
		return 2;
	engine_path = argv[1];
	return cmocka_run_group_tests_name("driver/engine_spawn", tests, NULL, NULL);
}
