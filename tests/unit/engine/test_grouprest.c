/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "engine/grouprest.h"

/*
 * Two trees of directories like any other, with the file that a group for processors has, and one
 * named BUSY in a group that the kernel would not remove yet.
 */
enum tree {
	PIDS,
	CPU,
	TREES
};

#define QUOTA "cpu.cfs_quota_us"
#define BUSY  "busy"

struct fixture {
	char path[TREES][40];
	struct host host;
	struct grouprest rest;
	unsigned named;
};

static const struct engine_limits small = {.cpu_millicores = 500}, large = {.cpu_millicores = 900};

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);

/* As the file system of groups: their files go with them. */
int __wrap_unlinkat(int dir, const char *name, int flags)
{
	int group = flags & AT_REMOVEDIR ? fd_open_at(dir, name, O_RDONLY | O_DIRECTORY, 0) : -1;
	bool busy = group >= 0 && faccessat(group, BUSY, F_OK, 0) == 0;

	if (group >= 0 && !busy)
		(void)__real_unlinkat(group, QUOTA, 0);
	(void)fd_close(group);
	if (busy) {
		errno = EBUSY;
		return -1;
	}
	return __real_unlinkat(dir, name, flags);
}
// NOLINTEND(bugprone-reserved-identifier)

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->host.groups.count = TREES;
	for (int i = 0; i < TREES; i++) {
		assert_int_equal(str_format(f->path[i], sizeof(f->path[i]), "/tmp/mbx-rest-XXXXXX"),
		                 0);
		assert_non_null(mkdtemp(f->path[i]));
		f->host.groups.trees[i] = (struct cgroup_tree){
			.kinds = CGROUP_BIT(i == CPU ? CGROUP_CPU : CGROUP_PIDS),
			.dir = fd_open(f->path[i], O_RDONLY | O_DIRECTORY, 0),
		};
	}
	grouprest_open(&f->rest, &f->host);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	grouprest_close(&f->rest);
	for (int i = 0; i < TREES; i++) {
		(void)fd_close(f->host.groups.trees[i].dir);
		assert_int_equal(rmdir(f->path[i]), 0); /* nothing was left in it */
	}
	free(f);
	return 0;
}

static struct box_groups named(struct fixture *f)
{
	struct box_groups groups;

	groups_init(&groups);
	assert_int_equal(str_format(groups.name, sizeof(groups.name), "box-%u", ++f->named), 0);
	return groups;
}

static void put(int dir, const char *name)
{
	int fd = fd_open_at(dir, name, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	(void)fd_close(fd);
}

static int dir_of(const struct fixture *f, enum tree tree)
{
	return f->host.groups.trees[tree].dir;
}

static bool is_there(const struct fixture *f, enum tree tree, const char *name)
{
	return faccessat(dir_of(f, tree), name, F_OK, 0) == 0;
}

/* The groups of a box that ran. */
static struct box_groups used(struct fixture *f)
{
	struct box_groups groups = named(f);

	for (int i = 0; i < TREES; i++) {
		assert_int_equal(mkdirat(dir_of(f, (enum tree)i), groups.name, 0700), 0);
		groups.dirs[i] =
			fd_open_at(dir_of(f, (enum tree)i), groups.name, O_RDONLY | O_DIRECTORY, 0);
		groups.made[i] = true;
		groups.limited |= 1u << i;
	}
	put(groups.dirs[CPU], QUOTA);
	return groups;
}

static void give(struct fixture *f, struct box_groups *groups)
{
	assert_int_equal(grouprest_give(&f->rest, &small, groups), 0);
	groups_close(groups);
}

static struct box_groups take(struct fixture *f, const struct engine_limits *limits)
{
	struct box_groups groups = named(f);

	grouprest_take(&f->rest, limits, &groups);
	assert_false(groups.made[PIDS]);
	assert_int_equal(groups.limited, groups.made[CPU] ? 1u << CPU : 0);
	assert_true(groups.made[CPU] == (groups.dirs[CPU] >= 0));
	return groups;
}

static void one_serves_again_under_another_name(void **state)
{
	struct fixture *f = *state;
	struct box_groups first = used(f), second;
	char text[32];

	give(f, &first);
	assert_false(is_there(f, PIDS, "box-1"));
	assert_true(is_there(f, CPU, "box-1"));
	second = take(f, &small);
	assert_true(second.made[CPU]);
	assert_false(is_there(f, CPU, "box-1"));
	assert_true(is_there(f, CPU, "box-2"));
	assert_int_equal(file_read_text_at(second.dirs[CPU], QUOTA, text, sizeof(text)), 0);
	assert_string_equal(text, "50000");
	assert_false(take(f, &small).made[CPU]); /* it is given once */
	assert_int_equal(groups_remove(&f->host, &second, ~0u), 0);
	groups_close(&second);
}

static void other_limits_leave_it_where_it_is(void **state)
{
	struct fixture *f = *state;
	struct box_groups groups = used(f);

	give(f, &groups);
	assert_false(take(f, &large).made[CPU]);
	assert_int_equal(f->rest.count, 1);
}

/* A process may be in it yet. */
static void none_rests_before_the_others_are_gone(void **state)
{
	struct fixture *f = *state;
	struct box_groups groups = used(f);

	put(groups.dirs[PIDS], BUSY);
	assert_int_equal(grouprest_give(&f->rest, &small, &groups), -EBUSY);
	assert_int_equal(f->rest.count, 0);
	assert_true(groups.made[PIDS] && groups.made[CPU]);
	assert_int_equal(unlinkat(groups.dirs[PIDS], BUSY, 0), 0);
	give(f, &groups);
	assert_int_equal(f->rest.count, 1);
}

static void one_alone_goes(void **state)
{
	struct fixture *f = *state;
	struct box_groups groups = used(f);

	assert_int_equal(groups_remove(&f->host, &groups, 1u << PIDS), 0);
	give(f, &groups);
	assert_int_equal(f->rest.count, 0);
	assert_false(is_there(f, CPU, "box-1"));
}

static void one_without_limits_goes(void **state)
{
	struct fixture *f = *state;
	struct box_groups groups = used(f);

	groups.limited = 0;
	give(f, &groups);
	assert_int_equal(f->rest.count, 0);
	assert_false(is_there(f, CPU, "box-1"));
}

static void one_that_takes_no_name_goes(void **state)
{
	struct fixture *f = *state;
	struct box_groups groups = used(f);

	give(f, &groups);
	assert_int_equal(mkdirat(dir_of(f, CPU), "box-2", 0700), 0);
	int taken = fd_open_at(dir_of(f, CPU), "box-2", O_RDONLY | O_DIRECTORY, 0);
	put(taken, "something");
	assert_false(take(f, &small).made[CPU]);
	assert_false(is_there(f, CPU, "box-1"));
	assert_int_equal(f->rest.count, 0);
	assert_int_equal(unlinkat(taken, "something", 0), 0);
	(void)fd_close(taken);
	assert_int_equal(unlinkat(dir_of(f, CPU), "box-2", AT_REMOVEDIR), 0);
}

static void one_that_takes_no_quota_goes(void **state)
{
	struct fixture *f = *state;
	struct box_groups groups = used(f);

	assert_int_equal(unlinkat(groups.dirs[CPU], QUOTA, 0), 0);
	give(f, &groups);
	assert_false(take(f, &small).made[CPU]);
	assert_false(is_there(f, CPU, "box-1"));
}

static void the_longest_rested_makes_room(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < GROUPREST_SIZE + 1; i++) {
		struct box_groups groups = used(f);
		give(f, &groups);
	}
	assert_int_equal(f->rest.count, GROUPREST_SIZE);
	assert_false(is_there(f, CPU, "box-1"));
	assert_true(is_there(f, CPU, "box-2"));
}

static void hosts_without_such_a_tree_let_none_rest(void **state)
{
	struct fixture *f = *state;
	struct box_groups groups;

	f->host.groups.trees[CPU].v2 = true;
	grouprest_open(&f->rest, &f->host);
	groups = used(f);
	give(f, &groups);
	assert_int_equal(f->rest.count, 0);
	assert_false(is_there(f, CPU, "box-1"));
	assert_false(take(f, &small).made[CPU]);
}

#define rest_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		rest_test(one_serves_again_under_another_name),
		rest_test(other_limits_leave_it_where_it_is),
		rest_test(none_rests_before_the_others_are_gone),
		rest_test(one_alone_goes),
		rest_test(one_without_limits_goes),
		rest_test(one_that_takes_no_name_goes),
		rest_test(one_that_takes_no_quota_goes),
		rest_test(the_longest_rested_makes_room),
		rest_test(hosts_without_such_a_tree_let_none_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
