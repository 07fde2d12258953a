/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/fd.h"
#include "base/file.h"
#include "driver/counters.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A directory that looks like one of the cgroup file system. */
struct fixture {
	char path[64];
	int dir;
};

static int setup(void **state)
{
	static struct fixture f;

	memcpy(f.path, "/tmp/test_counters.XXXXXX", sizeof("/tmp/test_counters.XXXXXX"));
	assert_non_null(mkdtemp(f.path));
	f.dir = fd_open(f.path, O_DIRECTORY | O_RDONLY, 0);
	assert_true(f.dir >= 0);
	*state = &f;
	return 0;
}

static const char *const names[] = {
	"memory.peak",        "memory.current",        "memory.events", "memory.max_usage_in_bytes",
	"memory.oom_control", "memory.usage_in_bytes", "cpu.stat",      "cpuacct.usage",
	"pids.peak",          "pids.events",
};

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)unlinkat(f->dir, names[i], 0);
	(void)fd_close(f->dir);
	return rmdir(f->path);
}

static void put(struct fixture *f, const char *name, const char *text)
{
	assert_int_equal(file_create_at(f->dir, name, 0600, text, strlen(text)), 0);
}

static void look(int dir, struct counters_files *files, struct counters_absent *absent,
                 struct box_counters *ret_counters)
{
	const int dirs[COUNTERS_DIRS] = {dir, dir, dir};

	counters_read(dirs, files, COUNTERS_FOR_VIEW, absent, ret_counters);
}

static void version_2_is_understood(void **state)
{
	struct fixture *f = *state;
	struct counters_absent absent = {0};
	struct box_counters c;

	put(f, "memory.peak", "5000\n");
	put(f, "memory.current", "4000\n");
	put(f, "memory.events", "low 9\nhigh 8\nmax 7\noom 6\noom_kill 2\noom_group_kill 5\n");
	put(f, "cpu.stat", "usage_usec 1234\nuser_usec 1000\nsystem_usec 234\n");
	put(f, "pids.peak", "12\n");
	put(f, "pids.events", "max 3\n");
	look(f->dir, NULL, &absent, &c);
	assert_int_equal(c.memory_peak_bytes, 5000);
	assert_int_equal(c.memory_bytes, 4000);
	assert_int_equal(c.oom_kills, 2);
	assert_int_equal(c.cpu_us, 1234);
	assert_int_equal(c.pids_peak, 12);
	assert_int_equal(c.pids_denied, 3);
}

static void version_1_is_understood(void **state)
{
	struct fixture *f = *state;
	struct counters_absent absent = {0};
	struct box_counters c;

	put(f, "memory.max_usage_in_bytes", "6000\n");
	put(f, "memory.usage_in_bytes", "3000\n");
	put(f, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
	put(f, "cpuacct.usage", "9876543\n"); /* nanoseconds */
	put(f, "cpu.stat", "nr_periods 1\nnr_throttled 2\nthrottled_time 3\n");
	put(f, "pids.events", "max 1\n");
	look(f->dir, NULL, &absent, &c);
	assert_int_equal(c.memory_peak_bytes, 6000);
	assert_int_equal(c.memory_bytes, 3000);
	assert_int_equal(c.oom_kills, 4);
	assert_int_equal(c.cpu_us, 9876);
	assert_true(c.pids_peak == COUNTER_UNKNOWN); /* a kernel before 6.11 has none on v1 */
	assert_int_equal(c.pids_denied, 1);
}

static void missing_names_are_not_looked_up_again(void **state)
{
	struct fixture *f = *state;
	struct counters_absent absent = {0};
	struct box_counters c;

	put(f, "memory.max_usage_in_bytes", "6000\n");
	look(f->dir, NULL, &absent, &c);
	assert_int_equal(c.memory_peak_bytes, 6000);
	put(f, "memory.peak", "5000\n");
	put(f, "memory.current", "7\n");
	look(f->dir, NULL, &absent, &c);
	assert_int_equal(c.memory_peak_bytes, 6000);
	assert_int_equal(c.memory_bytes,
	                 7); /* no name had been found: the group may have been gone */
}

static void open_files_read_current_values(void **state)
{
	struct fixture *f = *state;
	struct counters_absent absent = {0};
	struct counters_files files;
	struct box_counters c;
	int kept;

	counters_files_init(&files);
	put(f, "memory.peak", "5000\n");
	put(f, "memory.events", "oom_kill 2\n");
	look(f->dir, &files, &absent, &c);
	assert_int_equal(c.memory_peak_bytes, 5000);
	assert_int_equal(c.oom_kills, 2);
	kept = files.fds[0];
	assert_true(kept >= 0);
	assert_int_equal(file_write_at(f->dir, "memory.peak", "6000\n"), 0);
	assert_int_equal(file_write_at(f->dir, "memory.events", "oom_kill 3\n"), 0);
	look(f->dir, &files, &absent, &c);
	assert_int_equal(c.memory_peak_bytes, 6000);
	assert_int_equal(c.oom_kills, 3);
	assert_int_equal(files.fds[0], kept);
	counters_files_close(&files);
	assert_int_equal(files.fds[0], -1);
	assert_int_equal(fcntl(kept, F_GETFD), -1);
}

static void only_what_is_wanted_is_read(void **state)
{
	struct fixture *f = *state;
	const int dirs[COUNTERS_DIRS] = {f->dir, f->dir, f->dir};
	struct counters_absent absent = {0};
	struct box_counters c;

	put(f, "memory.peak", "5000\n");
	put(f, "memory.current", "4000\n");
	put(f, "pids.events", "max 3\n");
	counters_read(dirs, NULL, COUNTERS_FOR_BASELINE, &absent, &c);
	assert_int_equal(c.pids_denied, 3);
	assert_true(c.memory_peak_bytes == COUNTER_UNKNOWN);
	assert_true(c.memory_bytes == COUNTER_UNKNOWN);
	counters_read(dirs, NULL, COUNTERS_FOR_RESULT, &absent, &c);
	assert_int_equal(c.memory_peak_bytes, 5000);
	assert_true(c.memory_bytes == COUNTER_UNKNOWN);
}

static void missing_counters_are_unknown_and_not_zero(void **state)
{
	struct fixture *f = *state;
	struct counters_absent absent = {0};
	struct box_counters c;

	for (int with_dir = 0; with_dir < 2; with_dir++) {
		int dir = with_dir ? f->dir : -1;

		look(dir, NULL, &absent, &c);
		assert_true(c.memory_peak_bytes == COUNTER_UNKNOWN);
		assert_true(c.memory_bytes == COUNTER_UNKNOWN);
		assert_true(c.oom_kills == COUNTER_UNKNOWN);
		assert_true(c.cpu_us == COUNTER_UNKNOWN);
		assert_true(c.pids_peak == COUNTER_UNKNOWN);
		assert_true(c.pids_denied == COUNTER_UNKNOWN);
	}
}

static void nonsense_is_unknown(void **state)
{
	struct fixture *f = *state;
	struct counters_absent absent = {0};
	struct box_counters c;

	put(f, "memory.peak", "lots\n");
	put(f, "memory.events", "oom_kill -1\n");
	put(f, "pids.events", "");
	look(f->dir, NULL, &absent, &c);
	assert_true(c.memory_peak_bytes == COUNTER_UNKNOWN);
	assert_true(c.oom_kills == COUNTER_UNKNOWN);
	assert_true(c.pids_denied == COUNTER_UNKNOWN);
}

static void each_counter_comes_from_its_own_directory(void **state)
{
	struct fixture *f = *state;
	const int dirs[COUNTERS_DIRS] = {
		[COUNTERS_MEMORY] = -1, [COUNTERS_PIDS] = f->dir, [COUNTERS_CPU] = -1};
	struct counters_absent absent = {0};
	struct box_counters c;

	put(f, "memory.peak", "5000\n");
	put(f, "pids.peak", "12\n");
	put(f, "cpuacct.usage", "2000\n");
	counters_read(dirs, NULL, COUNTERS_FOR_VIEW, &absent, &c);
	assert_true(c.memory_peak_bytes == COUNTER_UNKNOWN);
	assert_true(c.cpu_us == COUNTER_UNKNOWN);
	assert_int_equal(c.pids_peak, 12);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(version_2_is_understood),
		TEST(version_1_is_understood),
		TEST(missing_names_are_not_looked_up_again),
		TEST(missing_counters_are_unknown_and_not_zero),
		TEST(open_files_read_current_values),
		TEST(only_what_is_wanted_is_read),
		TEST(nonsense_is_unknown),
		TEST(each_counter_comes_from_its_own_directory),
	};

	return cmocka_run_group_tests_name("driver/counters", tests, NULL, NULL);
}
