/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "engine/cgroup_tenant.h"
#include "engine/internal.h"

/* Ordinary directories: one like /sys/block, the others like trees. */
struct fixture {
	char path[32];
	int top;
	struct host host;
	struct tenant_groups tenants;
};

static void make_file(int dir, const char *path, const char *text)
{
	assert_int_equal(file_create_at(dir, path, 0644, text, strlen(text)), 0);
}

static void add_disk(int block, const char *name, const char *dev, const char *size)
{
	char path[64];

	assert_int_equal(mkdirat(block, name, 0755), 0);
	assert_int_equal(str_format(path, sizeof(path), "%s/dev", name), 0);
	make_file(block, path, dev);
	assert_int_equal(str_format(path, sizeof(path), "%s/size", name), 0);
	make_file(block, path, size);
}

static int open_dir(struct fixture *f, const char *name)
{
	int dir;

	assert_int_equal(mkdirat(f->top, name, 0755), 0);
	dir = fd_open_at(f->top, name, O_RDONLY | O_DIRECTORY, 0);
	assert_true(dir >= 0);
	return dir;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(str_format(f->path, sizeof(f->path), "/tmp/mbx-io-XXXXXX"), 0);
	assert_non_null(mkdtemp(f->path));
	f->top = fd_open(f->path, O_RDONLY | O_DIRECTORY, 0);
	assert_true(f->top >= 0);
	*state = f;
	return 0;
}

static int remove_one(const char *path, const struct stat *st attr_unused, int type attr_unused,
                      struct FTW *at attr_unused)
{
	return remove(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < f->host.groups.count; i++)
		(void)fd_close(f->host.groups.trees[i].dir);
	(void)fd_close(f->top);
	assert_int_equal(nftw(f->path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	free(f);
	return 0;
}

static void disks_that_hold_something_are_found(void **state)
{
	struct fixture *f = *state;
	cleanup_close int block = open_dir(f, "block");
	struct io_limits io = {.bytes = 1};

	add_disk(block, "vda", "254:0\n", "8192\n");
	add_disk(block, "loop0", "7:0\n", "0\n");
	add_disk(block, "bad", "254\n", "8192\n");
	io_limits_find_disks(&io, block);
	assert_int_equal(io.disk_count, 1);
	assert_int_equal(io.disks[0].major, 254);
	assert_int_equal(io.disks[0].minor, 0);
	assert_true(io_limits_are_set(&io));
	io.bytes = 0;
	assert_false(io_limits_are_set(&io));
	io.ops = 1;
	assert_true(io_limits_are_set(&io));
	io.disk_count = 0;
	assert_false(io_limits_are_set(&io));
}

static void more_disks_than_fit_are_left_out(void **state)
{
	struct fixture *f = *state;
	cleanup_close int block = open_dir(f, "block");
	struct io_limits io = {.ops = 1};
	char name[16], dev[16];

	for (int i = 0; i < IO_DISKS_MAX + 1; i++) {
		assert_int_equal(str_format(name, sizeof(name), "sd%d", i), 0);
		assert_int_equal(str_format(dev, sizeof(dev), "8:%d\n", i), 0);
		add_disk(block, name, dev, "1\n");
	}
	io_limits_find_disks(&io, block);
	assert_int_equal(io.disk_count, IO_DISKS_MAX);
}

static void assert_text(int dir, const char *file, const char *want)
{
	char text[128];

	assert_int_equal(file_read_text_at(dir, file, text, sizeof(text)), 0);
	assert_string_equal(text, want);
}

static void v2_gets_one_line_for_a_disk(void **state)
{
	struct fixture *f = *state;
	const struct cgroup_tree tree = {.v2 = true, .kinds = CGROUP_BIT(CGROUP_IO)};
	struct io_limits io = {.bytes = 1000, .ops = 20, .disk_count = 1};
	struct error err = {0};

	io.disks[0].major = 254;
	io.disks[0].minor = 16;
	make_file(f->top, "io.max", "");
	assert_int_equal(io_limits_write(&io, &tree, f->top, &err), 0);
	assert_text(f->top, "io.max", "254:16 rbps=1000 wbps=1000 riops=20 wiops=20");
}

static void a_limit_of_zero_is_not_written(void **state)
{
	struct fixture *f = *state;
	const struct cgroup_tree tree = {.kinds = CGROUP_BIT(CGROUP_IO)};
	const struct cgroup_tree other = {.kinds = CGROUP_BIT(CGROUP_CPU)};
	struct io_limits io = {.bytes = 1000, .disk_count = 1};
	struct error err = {0};

	assert_int_equal(io_limits_write(&io, &other, f->top, &err), 0); /* another controller */
	assert_int_equal(io_limits_write(&io, &tree, f->top, &err), -1);
	assert_non_null(strstr(err.msg, "limit I/O of the disk 0:0"));
	make_file(f->top, "blkio.throttle.read_bps_device", "");
	make_file(f->top, "blkio.throttle.write_bps_device", "");
	assert_int_equal(io_limits_write(&io, &tree, f->top, &err), 0);
	assert_text(f->top, "blkio.throttle.read_bps_device", "0:0 1000");
	assert_text(f->top, "blkio.throttle.write_bps_device", "0:0 1000");
}

/* A tree per tenant: the tenant has a group in it, its boxes have none. */
static void a_tenant_has_a_group_in_both_trees(void **state)
{
	struct fixture *f = *state;
	struct cgroups *groups = &f->host.groups;
	struct tenant_group *group = NULL;
	struct error err = {0};

	groups->count = 2;
	groups->trees[0] = (struct cgroup_tree){
		.per_tenant = true, .kinds = CGROUP_BIT(CGROUP_IO), .dir = open_dir(f, "blkio")};
	groups->trees[1] =
		(struct cgroup_tree){.kinds = CGROUP_BIT(CGROUP_CPU), .dir = open_dir(f, "cpu")};
	tenant_groups_init(&f->tenants, &f->host);
	/* "tasks" does not exist in an ordinary directory. */
	assert_int_equal(tenant_group_get(&f->tenants, "alice", &group, &err), -1);
	assert_non_null(strstr(err.msg, "make the group of tenant 'alice'"));
	assert_int_equal(faccessat(f->top, "cpu/t-alice", F_OK, 0), -1); /* nothing is left */
	assert_int_equal(faccessat(f->top, "blkio/t-alice", F_OK, 0), -1);
	assert_int_equal(mkdirat(f->top, "blkio/t-alice", 0755), 0);
	make_file(f->top, "blkio/t-alice/tasks", "");
	assert_int_equal(tenant_group_get(&f->tenants, "alice", &group, &err), 0);
	assert_true(group->dir >= 0 && group->tasks >= 0);
	assert_int_equal(unlinkat(f->top, "blkio/t-alice/tasks", 0), 0);
	tenant_group_put(group);
	tenant_groups_close(&f->tenants);
	assert_int_equal(faccessat(f->top, "cpu/t-alice", F_OK, 0), -1);
	assert_int_equal(faccessat(f->top, "blkio/t-alice", F_OK, 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(disks_that_hold_something_are_found, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(more_disks_than_fit_are_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(v2_gets_one_line_for_a_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(a_limit_of_zero_is_not_written, setup, teardown),
		cmocka_unit_test_setup_teardown(a_tenant_has_a_group_in_both_trees, setup,
	                                        teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
