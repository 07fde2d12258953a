/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "guest/file_clock.h"

#define ROUNDS    20
#define SECOND_NS 1000000000ULL

static uint64_t stamp(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_ctim.tv_sec * SECOND_NS + (uint64_t)st.st_ctim.tv_nsec;
}

/* Read the stamp first: where the kernel has two clocks, the next change gets the exact one. */
static void change(int fd, mode_t mode)
{
	(void)stamp(fd);
	assert_int_equal(fchmod(fd, mode), 0);
}

/* A memfd is on the same file system type as workspaces. */
static void changes_before_and_after_have_stamps_on_their_sides(void **state)
{
	int fd = memfd_create("stamped", MFD_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t latest, since;

		change(fd, 0600);
		latest = file_clock_latest();
		assert_true(stamp(fd) <= latest);
		file_clock_wait_past(latest);
		since = file_clock_earliest();
		assert_true(since > latest);
		change(fd, 0644);
		assert_true(stamp(fd) >= since);
	}
	assert_int_equal(close(fd), 0);
}

static void a_clock_that_was_set_back_is_not_waited_for(void **state)
{
	uint64_t begin = clock_us();

	(void)state;
	file_clock_wait_past(file_clock_latest() + 3600 * SECOND_NS);
	assert_true(clock_us() - begin >= FILE_CLOCK_WAIT_MAX_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_before_and_after_have_stamps_on_their_sides),
		cmocka_unit_test(a_clock_that_was_set_back_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
