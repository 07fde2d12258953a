/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel_io.h"
#include "base/fd.h"
#include "cli/client/interrupt.h"

/* The first interrupt_open blocks the signals for the rest of this program. */
static void a_signal_is_read_once(void **state)
{
	int fd = interrupt_open(&(struct error){0});

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(interrupt_taken(fd), 0);
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	assert_int_equal(interrupt_taken(fd), SIGTERM);
	assert_int_equal(interrupt_taken(fd), 0);
	(void)fd_close(fd);
}

static void all_bytes_arrive(void **state)
{
	static char sent[50000], got[50000];
	int fd = interrupt_open(&(struct error){0}), ends[2];
	pid_t pid;
	int status = -1;

	(void)state;
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)(i * 7 % 251);
	assert_true(fd >= 0);
	assert_true(fd_pipe(ends, 0) >= 0);
	pid = fork();
	if (pid == 0)
		_exit(cancel_write(fd, ends[1], sent, sizeof(sent)) != 0);
	ends[1] = fd_close(ends[1]);
	assert_int_equal(fd_read_all(ends[0], got, sizeof(got)), sizeof(got));
	assert_memory_equal(sent, got, sizeof(sent));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)fd_close(ends[0]);
	(void)fd_close(fd);
}

/* Sends SIGINT to the test while it probably waits; both orders must work. */
static pid_t interrupt_soon(void)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid == 0) {
		(void)poll(NULL, 0, 20);
		_exit(kill(parent, SIGINT) < 0);
	}
	assert_true(pid > 0);
	return pid;
}

static void a_signal_interrupts_a_write_to_a_stuck_reader(void **state)
{
	static char data[1 << 20];
	int fd = interrupt_open(&(struct error){0}), ends[2];
	pid_t pid;

	(void)state;
	assert_true(fd >= 0);
	assert_true(fd_pipe(ends, 0) >= 0);
	pid = interrupt_soon();
	/* The pipe accepts a part, and nothing reads it. */
	assert_int_equal(cancel_write(fd, ends[1], data, sizeof(data)), -ECANCELED);
	/* The write did not consume the signal. */
	assert_int_equal(interrupt_taken(fd), SIGINT);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)fd_close(ends[0]);
	(void)fd_close(ends[1]);
	(void)fd_close(fd);
}

static void a_closed_reader_is_an_error_and_no_signal(void **state)
{
	int fd = interrupt_open(&(struct error){0}), ends[2];

	(void)state;
	assert_true(fd >= 0);
	assert_true(fd_pipe(ends, 0) >= 0);
	(void)fd_close(ends[0]);
	assert_int_equal(cancel_write(fd, ends[1], "x", 1), -EPIPE);
	(void)fd_close(ends[1]);
	(void)fd_close(fd);
}

static void a_signal_interrupts_a_read(void **state)
{
	int fd = interrupt_open(&(struct error){0}), ends[2];
	char data[8];
	pid_t pid;

	(void)state;
	assert_true(fd >= 0);
	assert_true(fd_pipe(ends, 0) >= 0);
	assert_int_equal(fd_write_all(ends[1], "abc", 3), 0);
	assert_int_equal(cancel_read(fd, ends[0], data, sizeof(data)), 3);
	assert_memory_equal(data, "abc", 3);
	pid = interrupt_soon();
	assert_int_equal(cancel_read(fd, ends[0], data, sizeof(data)), -ECANCELED);
	assert_int_equal(interrupt_taken(fd), SIGINT);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)fd_close(ends[1]);
	assert_int_equal(cancel_read(fd, ends[0], data, sizeof(data)), 0);
	(void)fd_close(ends[0]);
	(void)fd_close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_is_read_once),
		cmocka_unit_test(all_bytes_arrive),
		cmocka_unit_test(a_signal_interrupts_a_write_to_a_stuck_reader),
		cmocka_unit_test(a_closed_reader_is_an_error_and_no_signal),
		cmocka_unit_test(a_signal_interrupts_a_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
