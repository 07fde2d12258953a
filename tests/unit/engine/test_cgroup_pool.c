/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "engine/cgroup_pool.h"

/* A tree without limit files can be an ordinary directory. */
struct fixture {
	char path[32];
	struct host host;
	struct cgroup_pool pool;
};

static const struct engine_limits small = {.memory_bytes = 1}, large = {.memory_bytes = 2};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(str_format(f->path, sizeof(f->path), "/tmp/mbx-groups-XXXXXX"), 0);
	assert_non_null(mkdtemp(f->path));
	f->host.groups.count = 1;
	f->host.groups.trees[0] = (struct cgroup_tree){
		.v2 = true,
		.kinds = CGROUP_BIT(CGROUP_UNIFIED),
		.dir = fd_open(f->path, O_RDONLY | O_DIRECTORY, 0),
	};
	assert_true(f->host.groups.trees[0].dir >= 0);
	cgroup_pool_open(&f->pool, &f->host);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	cgroup_pool_close(&f->pool);
	(void)fd_close(f->host.groups.trees[0].dir);
	assert_int_equal(rmdir(f->path), 0); /* nothing was left in it */
	free(f);
	return 0;
}

static unsigned groups_there(const struct fixture *f)
{
	DIR *dir = opendir(f->path);
	unsigned count = 0;

	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		count += e->d_name[0] != '.';
	(void)closedir(dir);
	return count;
}

static struct box_groups take(struct fixture *f, const struct engine_limits *limits)
{
	struct box_groups groups;
	struct error err = {0};

	assert_int_equal(cgroup_pool_take(&f->pool, limits, "", &groups, &err), 0);
	return groups;
}

static void give_up(struct fixture *f, struct box_groups *groups)
{
	assert_int_equal(groups_remove(&f->host, groups), 0);
	groups_close(groups);
}

static void nothing_is_made_before_a_box_was(void **state)
{
	struct fixture *f = *state;

	cgroup_pool_refill(&f->pool);
	assert_int_equal(groups_there(f), 0);
}

static void spares_have_their_limits_and_are_used_once(void **state)
{
	struct fixture *f = *state;
	struct box_groups first = take(f, &small), second, third;

	assert_false(first.limited);
	for (int i = 0; i < CGROUP_POOL_SIZE + 2; i++)
		cgroup_pool_refill(&f->pool);
	assert_int_equal(groups_there(f), 1 + CGROUP_POOL_SIZE);
	second = take(f, &small);
	third = take(f, &small);
	assert_true(second.limited);
	assert_true(third.limited);
	assert_string_not_equal(first.name, second.name);
	assert_string_not_equal(second.name, third.name);
	give_up(f, &first);
	give_up(f, &second);
	give_up(f, &third);
}

static void other_limits_get_groups_of_their_own(void **state)
{
	struct fixture *f = *state;
	struct box_groups first = take(f, &small), second, third;

	cgroup_pool_refill(&f->pool);
	second = take(f, &large);
	assert_false(second.limited);
	for (int i = 0; i < 2 * CGROUP_POOL_SIZE; i++)
		cgroup_pool_refill(&f->pool);
	assert_int_equal(groups_there(f), 2 + CGROUP_POOL_SIZE);
	third = take(f, &large);
	assert_true(third.limited);
	give_up(f, &first);
	give_up(f, &second);
	give_up(f, &third);
}

static void a_failed_spare_is_left_to_the_next_box(void **state)
{
	struct fixture *f = *state;
	struct box_groups groups = take(f, &small);
	struct cgroup_tree *tree = &f->host.groups.trees[0];
	int dir = tree->dir;

	tree->dir = -1;
	cgroup_pool_refill(&f->pool);
	tree->dir = dir;
	assert_int_equal(f->pool.count, 0);
	cgroup_pool_refill(&f->pool);
	assert_int_equal(f->pool.count, 0);
	give_up(f, &groups);
	groups = take(f, &small);
	cgroup_pool_refill(&f->pool);
	assert_int_equal(f->pool.count, 1);
	give_up(f, &groups);
}

/* The tree has the CPU controller, so tenants have groups in it. */
static int setup_cpu(void **state)
{
	struct fixture *f;

	assert_int_equal(setup(state), 0);
	f = *state;
	/* v1, whose files of limits are missing here: groups are made, not limited. */
	f->host.groups.trees[0].kinds |= CGROUP_BIT(CGROUP_CPU);
	f->host.groups.trees[0].v2 = false;
	cgroup_pool_close(&f->pool);
	cgroup_pool_open(&f->pool, &f->host);
	return 0;
}

static bool is_there(const struct fixture *f, const char *tenant, const char *name)
{
	char path[128];

	assert_int_equal(str_format(path, sizeof(path), "%s/t-%s/%s", f->path, tenant, name), 0);
	return access(path, F_OK) == 0;
}

static struct box_groups make_for(struct fixture *f, const char *tenant)
{
	struct box_groups groups;
	struct error err = {0};

	/* "tasks" does not exist in an ordinary directory. */
	assert_int_equal(cgroup_pool_take(&f->pool, &small, tenant, &groups, &err), -1);
	assert_non_null(groups.tenant);
	return groups;
}

static void boxes_are_in_the_group_of_their_tenant(void **state)
{
	struct fixture *f = *state;
	struct box_groups a = make_for(f, "Alice_1"), b = make_for(f, "bob-2"),
			  c = make_for(f, "bob-2");

	assert_int_equal(groups_there(f), 2);
	assert_true(is_there(f, "Alice_1", a.name));
	assert_true(is_there(f, "bob-2", b.name) && is_there(f, "bob-2", c.name));
	assert_ptr_equal(b.tenant, c.tenant);
	assert_int_equal(b.tenant->boxes, 2);
	give_up(f, &a);
	give_up(f, &b);
	give_up(f, &c);
	assert_null(c.tenant);
	assert_int_equal(groups_there(f), 2); /* kept: most tenants come back */
}

static void few_groups_without_boxes_are_kept(void **state)
{
	struct fixture *f = *state;
	struct box_groups groups[100];
	char name[16];

	for (unsigned i = 0; i < ARRAY_SIZE(groups); i++) {
		assert_int_equal(str_format(name, sizeof(name), "tenant%u", i), 0);
		groups[i] = make_for(f, name);
	}
	assert_int_equal(groups_there(f), ARRAY_SIZE(groups));
	for (unsigned i = 0; i < ARRAY_SIZE(groups); i++)
		give_up(f, &groups[i]);
	assert_int_equal(groups_there(f), 32);
	groups[0] = make_for(f, "tenant99"); /* was removed: made again */
	assert_true(is_there(f, "tenant99", groups[0].name));
	give_up(f, &groups[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_made_before_a_box_was, setup, teardown),
		cmocka_unit_test_setup_teardown(spares_have_their_limits_and_are_used_once, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(other_limits_get_groups_of_their_own, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(a_failed_spare_is_left_to_the_next_box, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(boxes_are_in_the_group_of_their_tenant, setup_cpu,
	                                        teardown),
		cmocka_unit_test_setup_teardown(few_groups_without_boxes_are_kept, setup_cpu,
	                                        teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
