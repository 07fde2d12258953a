/* SPDX-License-Identifier: Apache-2.0 */
/* The path of fake_engine is the first argument. */
#include "engine_rig.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "driver/engine_starter.h"
#include <sys/wait.h>

#define SOON_US (20 * USEC_PER_SEC)

static char *engine_path;

struct fixture {
	struct engine_starter *starter;
	pid_t pid;
	int raw; /* the same link, to send what the daemon would not */
	size_t fds_before;
};

/* Two commands: an engine that waits, and a program that is not there. */
static void serve(int link)
{
	char *waits[] = {(char *)"fake_engine", (char *)"--agent", (char *)"mute", NULL};
	char *gone[] = {(char *)"gone", NULL};
	const struct engine_command commands[] = {{engine_path, waits},
	                                          {(char *)"/nonexistent/engine", gone}};

	engine_starter_run(commands, ARRAY_SIZE(commands), link);
}

static int setup(void **state)
{
	static struct fixture f;
	int pair[2];

	f = (struct fixture){.fds_before = count_fds()};
	assert_int_equal(fd_socketpair(SOCK_SEQPACKET, pair), 0);
	f.pid = fork();
	if (f.pid == 0) {
		(void)fd_close(pair[0]);
		serve(pair[1]);
	}
	assert_true(f.pid > 0);
	(void)fd_close(pair[1]);
	f.raw = dup(pair[0]);
	f.starter = engine_starter_new(pair[0]);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int status = 0;

	engine_starter_free(f->starter);
	(void)fd_close(f->raw);
	assert_int_equal(waitpid(f->pid, &status, 0), f->pid); /* it ends with the daemon */
	assert_int_equal(count_fds(), f->fds_before);
	return 0;
}

static struct engine_started start(struct fixture *f, uint32_t number)
{
	struct engine_started started;
	struct error err = {0};

	if (engine_starter_wait(f->starter, number, &started, &err) < 0)
		fail_msg("%s", err.msg);
	return started;
}

static void end(const struct engine_started *started)
{
	(void)fd_close(started->sock);
	assert_int_equal(engine_wait_readable(started->pidfd, clock_us() + SOON_US), 0);
	(void)fd_close(started->pidfd);
}

static void it_starts_a_command_by_its_number(void **state)
{
	struct engine_started one = start(*state, 0);

	assert_int_equal(engine_wait_readable(one.pidfd, clock_us()), -ETIMEDOUT);
	end(&one);
}

static void it_ends_the_process_of_a_number_before_it_starts_another(void **state)
{
	struct engine_started one = start(*state, 0), two = start(*state, 0);

	/* It is over when the answer comes, though its socket is still open. */
	assert_int_equal(engine_wait_readable(one.pidfd, clock_us()), 0);
	assert_int_equal(engine_wait_readable(two.pidfd, clock_us()), -ETIMEDOUT);
	end(&one);
	end(&two);
}

static void a_program_that_is_not_there_says_so(void **state)
{
	struct engine_started one = start(*state, 1);
	struct helper_group group = {0};
	struct engine_probe probe;
	struct error err = {0};

	assert_int_equal(engine_probe(one.sock, &probe, &group, &err), -1);
	assert_non_null(strstr(err.msg, "cannot execute it"));
	end(&one);
}

/* Whoever controls the daemon gets nothing by other messages: the starter ends. */
static void anything_but_a_number_of_the_table_ends_it(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} rows[] = {{"\2\0\0\0", 4}, {"\377\377\377\377", 4}, {"\0", 1}, {"\0\0\0\0\0", 5}};
	struct fixture *f = *state;
	struct engine_started started;
	struct error err = {0};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (i > 0) {
			teardown(state);
			setup(state);
		}
		assert_int_equal(fd_send(f->raw, rows[i].bytes, rows[i].len, NULL, 0), 0);
		assert_int_equal(engine_starter_wait(f->starter, 0, &started, &err), -1);
		assert_non_null(strstr(err.msg, "has ended"));
		error_clear(&err);
	}
}

struct heard {
	int count;
	struct engine_started started;
	struct error err;
};

static void on_started(void *ctx, const struct engine_started *started, const struct error *err)
{
	struct heard *heard = ctx;

	heard->count++;
	heard->started = started ? *started : (struct engine_started){-1, -1};
	heard->err = err ? *err : (struct error){0};
}

static void on_the_loop_each_order_has_one_answer(void **state)
{
	struct fixture *f = *state;
	struct loop *loop = loop_new();
	struct heard heard = {0};

	engine_starter_attach(f->starter, loop);
	engine_starter_ask(f->starter, 0, on_started, &heard);
	while (!heard.count)
		loop_run_once(loop, true);
	assert_int_equal(heard.count, 1);
	assert_false(error_is_set(&heard.err));
	end(&heard.started);
	/* Its end is the answer to an order that it cannot take. */
	assert_int_equal(fd_send(f->raw, "x", 1, NULL, 0), 0);
	engine_starter_ask(f->starter, 0, on_started, &heard);
	while (!engine_starter_is_gone(f->starter))
		loop_run_once(loop, true);
	assert_int_equal(heard.count, 2);
	assert_int_equal(heard.err.code, ERR_UNAVAILABLE);
	engine_starter_free(TAKE_PTR(f->starter));
	loop_free(loop);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(it_starts_a_command_by_its_number),
		TEST(it_ends_the_process_of_a_number_before_it_starts_another),
		TEST(a_program_that_is_not_there_says_so),
		TEST(anything_but_a_number_of_the_table_ends_it),
		TEST(on_the_loop_each_order_has_one_answer),
	};

	if (argc != 2)
		return 2;
	engine_path = argv[1];
	return cmocka_run_group_tests_name("driver/engine_starter", tests, NULL, NULL);
}
