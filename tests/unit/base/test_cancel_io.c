/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cancel_io.h"
#include "base/fd.h"

/* An event that cancels if it is readable, and a pipe. */
struct fixture {
	int event, ends[2];
};

static void set_up(struct fixture *f, bool cancelled)
{
	static const uint64_t one = 1;

	f->event = fd_eventfd();
	assert_true(f->event >= 0);
	assert_int_equal(fd_pipe(f->ends, 0), 0);
	if (cancelled)
		assert_int_equal(write(f->event, &one, sizeof(one)), sizeof(one));
}

static void tear_down(struct fixture *f)
{
	(void)fd_close(f->event);
	(void)fd_close(f->ends[0]);
	(void)fd_close(f->ends[1]);
}

static void bytes_pass_while_nothing_cancels(void **state)
{
	struct fixture f;
	char data[8];

	(void)state;
	set_up(&f, false);
	assert_int_equal(cancel_write(f.event, f.ends[1], "abc", 3), 0);
	assert_int_equal(cancel_read(f.event, f.ends[0], data, sizeof(data)), 3);
	assert_memory_equal(data, "abc", 3);
	f.ends[1] = fd_close(f.ends[1]);
	assert_int_equal(cancel_read(f.event, f.ends[0], data, sizeof(data)), 0);
	tear_down(&f);
}

static void an_event_cancels_both(void **state)
{
	struct fixture f;
	char data[8];

	(void)state;
	set_up(&f, true);
	assert_int_equal(cancel_write(f.event, f.ends[1], "abc", 3), -ECANCELED);
	assert_int_equal(cancel_read(f.event, f.ends[0], data, sizeof(data)), -ECANCELED);
	tear_down(&f);
}

/* More than a pipe takes, in one piece. */
static void a_file_takes_all(void **state)
{
	static char large[1 << 20];
	char path[] = "/tmp/mbxunit-cancel-XXXXXX";
	struct fixture f;
	int fd = mkstemp(path);

	(void)state;
	set_up(&f, false);
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(cancel_write(f.event, fd, large, sizeof(large)), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), sizeof(large));
	(void)fd_close(fd);
	tear_down(&f);
}

static void errors_are_returned(void **state)
{
	struct fixture f;
	char data[8];

	(void)state;
	set_up(&f, false);
	assert_ptr_not_equal(signal(SIGPIPE, SIG_IGN), SIG_ERR);
	f.ends[0] = fd_close(f.ends[0]);
	assert_int_equal(cancel_write(f.event, f.ends[1], "x", 1), -EPIPE);
	assert_int_equal(cancel_read(f.event, f.ends[1], data, sizeof(data)), -EBADF);
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_pass_while_nothing_cancels),
		cmocka_unit_test(an_event_cancels_both),
		cmocka_unit_test(a_file_takes_all),
		cmocka_unit_test(errors_are_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
