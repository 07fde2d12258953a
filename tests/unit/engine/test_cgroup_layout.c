/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "engine/cgroup.h"

static const struct cgroup_mount none;

static struct cgroup_layout parse(const char *mountinfo, const char *self)
{
	struct cgroup_layout layout;

	cgroup_layout_parse(mountinfo, self, &layout);
	return layout;
}

/* The mount with a controller, or an empty one. */
static const struct cgroup_mount *find(const struct cgroup_layout *layout, enum cgroup_kind kind)
{
	for (size_t i = 0; i < layout->count; i++)
		if (layout->mounts[i].kinds & CGROUP_BIT(kind))
			return &layout->mounts[i];
	return &none;
}

static const char hybrid_mounts[] =
	"22 27 0:21 / /proc rw,relatime - proc proc rw\n"
	"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup "
	"rw,cpu,cpuacct\n"
	"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	"36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices\n"
	"39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
	"40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

static const char hybrid_self[] = "8:pids:/\n"
				  "4:memory:/user/one\n"
				  "2:cpu,cpuacct:/\n"
				  "1:name=systemd:/\n"
				  "0::/user.slice\n";

static void a_hybrid_host_is_parsed_per_controller(void **state)
{
	struct cgroup_layout layout = parse(hybrid_mounts, hybrid_self);

	(void)state;
	assert_int_equal(layout.count, 4);
	assert_string_equal(find(&layout, CGROUP_MEMORY)->point, "/sys/fs/cgroup/memory");
	assert_string_equal(find(&layout, CGROUP_MEMORY)->own, "/user/one");
	assert_false(find(&layout, CGROUP_MEMORY)->v2);
	assert_string_equal(find(&layout, CGROUP_PIDS)->own, "");
	assert_true(find(&layout, CGROUP_UNIFIED)->v2);
	assert_string_equal(find(&layout, CGROUP_UNIFIED)->own, "/user.slice");
	assert_ptr_equal(find(&layout, CGROUP_FREEZER), &none);
}

static void controllers_mounted_together_are_one_tree(void **state)
{
	struct cgroup_layout layout = parse(hybrid_mounts, hybrid_self);

	(void)state;
	assert_ptr_equal(find(&layout, CGROUP_CPU), find(&layout, CGROUP_CPUACCT));
}

static void a_v2_host_has_one_tree(void **state)
{
	struct cgroup_layout layout = parse(
		"30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 "
		"cgroup2 rw,nsdelegate,memory_recursiveprot\n",
		"0::/system.slice/milliboxd.service\n");

	(void)state;
	assert_int_equal(layout.count, 1);
	assert_true(layout.mounts[0].v2);
	assert_int_equal(layout.mounts[0].kinds, CGROUP_BIT(CGROUP_UNIFIED));
	assert_string_equal(layout.mounts[0].own, "/system.slice/milliboxd.service");
}

static void the_mounted_group_is_stripped_from_our_own_path(void **state)
{
	struct cgroup_layout layout =
		parse("30 23 0:26 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
	              "0::/docker/ab/sub\n");

	(void)state;
	assert_string_equal(layout.mounts[0].root, "/docker/ab");
	assert_string_equal(layout.mounts[0].own, "/sub");
	/* A sibling with a similar name is not below it. */
	layout = parse("30 23 0:26 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
	               "0::/docker/abc\n");
	assert_string_equal(layout.mounts[0].own, "");
}

static void escaped_paths_are_read(void **state)
{
	struct cgroup_layout layout =
		parse("30 23 0:26 / /mnt/a\\040b\\134c rw - cgroup2 cgroup2 rw\n", "0::/\n");

	(void)state;
	assert_string_equal(layout.mounts[0].point, "/mnt/a b\\c");
}

static void the_first_mount_of_a_controller_counts(void **state)
{
	struct cgroup_layout layout = parse("35 31 0:32 / /first rw - cgroup cgroup rw,memory\n"
	                                    "36 31 0:32 / /second rw - cgroup cgroup rw,memory\n",
	                                    "");

	(void)state;
	assert_int_equal(layout.count, 1);
	assert_string_equal(layout.mounts[0].point, "/first");
}

static void lines_that_make_no_sense_are_skipped(void **state)
{
	static const char *const texts[] = {
		"",
		"\n\n\n",
		"35",
		"35 31 0:32 / /x rw",
		"35 31 0:32 / /x rw -",
		"35 31 0:32 / /x rw - cgroup",
		"35 31 0:32 / /x rw - cgroup2",
		"35 31 0:32 / /x rw - cgroup cgroup",
		"- - - - - - - -",
		"cgroup2 cgroup2 cgroup2",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct cgroup_layout layout = parse(texts[i], texts[i]);

		assert_int_equal(layout.count, 0);
	}
}

static void a_path_that_does_not_fit_is_skipped(void **state)
{
	cleanup_buf struct buf text = BUF_INIT(65536);
	struct cgroup_layout layout;

	(void)state;
	assert_int_equal(buf_add_str(&text, "35 31 0:32 / /"), 0);
	for (int i = 0; i < CGROUP_PATH_MAX; i++)
		assert_int_equal(buf_add_str(&text, "x"), 0);
	assert_int_equal(buf_add_str(&text, " rw - cgroup2 cgroup2 rw\n"), 0);
	layout = parse(text.data, "0::/\n");
	assert_int_equal(layout.count, 0);
}

static void membership_is_read_from_the_right_line(void **state)
{
	char path[64];

	(void)state;
	assert_int_equal(
		cgroup_line_path(hybrid_self, false, CGROUP_BIT(CGROUP_CPU), path, sizeof(path)),
		0);
	assert_string_equal(path, "");
	assert_int_equal(
		cgroup_line_path(hybrid_self, false, CGROUP_BIT(CGROUP_MEMORY), path, sizeof(path)),
		0);
	assert_string_equal(path, "/user/one");
	assert_int_equal(cgroup_line_path(hybrid_self, true, 0, path, sizeof(path)), 0);
	assert_string_equal(path, "/user.slice");
	assert_int_equal(cgroup_line_path(hybrid_self, false, CGROUP_BIT(CGROUP_FREEZER), path,
	                                  sizeof(path)),
	                 -ENOENT);
	/* "cpu" must not be found in "cpuset". */
	assert_int_equal(cgroup_line_path("3:cpuset:/a\n", false, CGROUP_BIT(CGROUP_CPU), path,
	                                  sizeof(path)),
	                 -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hybrid_host_is_parsed_per_controller),
		cmocka_unit_test(controllers_mounted_together_are_one_tree),
		cmocka_unit_test(a_v2_host_has_one_tree),
		cmocka_unit_test(the_mounted_group_is_stripped_from_our_own_path),
		cmocka_unit_test(escaped_paths_are_read),
		cmocka_unit_test(the_first_mount_of_a_controller_counts),
		cmocka_unit_test(lines_that_make_no_sense_are_skipped),
		cmocka_unit_test(a_path_that_does_not_fit_is_skipped),
		cmocka_unit_test(membership_is_read_from_the_right_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
