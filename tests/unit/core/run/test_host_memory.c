/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/file.h"
#include "core/run/host_memory.h"

static void meminfo_is_in_kibibytes(void **state)
{
	const char *text = "MemTotal:       24085784 kB\nMemFree:  1 kB\nMemAvailable:   7 kB\n";
	uint64_t bytes = 0;

	(void)state;
	assert_true(host_memory_find(text, "MemTotal:", &bytes));
	assert_int_equal(bytes, 24085784ULL * 1024);
	assert_true(host_memory_find(text, "MemAvailable:", &bytes));
	assert_int_equal(bytes, 7 * 1024);
	assert_false(host_memory_find(text, "SwapTotal:", &bytes));
	assert_false(host_memory_find("MemTotal: much", "MemTotal:", &bytes));
}

static void put(int dir, const char *name, const char *text)
{
	assert_int_equal(file_create_at(dir, name, 0600, text, strlen(text)), 0);
}

static void limits_of_groups_count(void **state)
{
	char path[] = "/tmp/host_memory.XXXXXX";
	struct host_memory_group group;
	int dir;

	(void)state;
	assert_non_null(mkdtemp(path));
	dir = fd_open(path, O_RDONLY | O_DIRECTORY, 0);
	assert_true(dir >= 0);
	host_memory_group(dir, true, &group); /* nothing to read */
	assert_true(group.limit_bytes == UINT64_MAX && group.available_bytes == UINT64_MAX);
	put(dir, "memory.max", "1000\n");
	put(dir, "memory.current", "700\n");
	host_memory_group(dir, true, &group);
	assert_int_equal(group.limit_bytes, 1000);
	assert_int_equal(group.available_bytes, 300);
	put(dir, "memory.stat", "anon 500\ninactive_file 150\ntotal_inactive_file 900\n");
	host_memory_group(dir, true, &group);
	assert_int_equal(group.available_bytes, 450);
	/* The number that v1 has for "none". */
	put(dir, "memory.limit_in_bytes", "9223372036854771712\n");
	put(dir, "memory.usage_in_bytes", "700\n");
	host_memory_group(dir, false, &group);
	assert_true(group.limit_bytes == UINT64_MAX && group.available_bytes == UINT64_MAX);
	for (const char *const *name =
	             (const char *const[]){"memory.max", "memory.current", "memory.stat",
	                                   "memory.limit_in_bytes", "memory.usage_in_bytes", NULL};
	     *name; name++)
		assert_int_equal(unlinkat(dir, *name, 0), 0);
	fd_close(dir);
	assert_int_equal(rmdir(path), 0);
}

static void this_host_has_memory(void **state)
{
	(void)state;
	assert_true(host_memory_total() > 0);
	assert_true(host_memory_available() > 0);
	assert_true(host_memory_available() <= host_memory_total());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(meminfo_is_in_kibibytes),
		cmocka_unit_test(limits_of_groups_count),
		cmocka_unit_test(this_host_has_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
