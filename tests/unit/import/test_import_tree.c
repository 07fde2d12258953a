/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <errno.h>

static void names_lose_what_is_in_front_and_may_not_lead_up(void **state)
{
	static const char *const rows[][2] = {
		{"a/b", "a/b"},     {"/a", "a"},  {"./a", "a"},   {"././/a", "a"}, {".", ""},
		{"..a/b", "..a/b"}, {"..", NULL}, {"a/..", NULL}, {"/../a", NULL}, {"a/../b", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err = {0};
		const char *got = tree_check(rows[i][0], &err);

		if (rows[i][1])
			assert_string_equal(got, rows[i][1]);
		else
			assert_null(got);
		assert_int_equal(err.code, rows[i][1] ? ERR_NONE : ERR_INVALID);
	}
}

static void names_have_a_bound(void **state)
{
	char path[IMPORT_PATH_MAX + 2];
	struct error err = {0};

	(void)state;
	memset(path, 'a', sizeof(path));
	path[255] = '\0';
	assert_non_null(tree_check(path, &err));
	path[255] = 'a';
	path[256] = '\0';
	assert_null(tree_check(path, &err));
	for (size_t i = 0; i < sizeof(path); i++)
		path[i] = i % 100 == 99 ? '/' : 'a';
	path[IMPORT_PATH_MAX - 1] = '\0';
	err = (struct error){0};
	assert_non_null(tree_check(path, &err));
	path[IMPORT_PATH_MAX - 1] = 'a';
	path[IMPORT_PATH_MAX] = '\0';
	assert_null(tree_check(path, &err));
}

static void parents_are_made_and_links_stay_inside(void **state)
{
	struct rig *r = *state;
	const char *name;
	int fd = tree_parent(r->root, "a/b/c", true, &name, &r->err);

	assert_true(fd >= 0);
	assert_string_equal(name, "c");
	(void)fd_close(fd);
	assert_true(rig_has(r, "a/b"));
	assert_int_equal(symlinkat("../../..", r->root, "up"), 0);
	fd = tree_parent(r->root, "up/made/x", true, &name, &r->err);
	assert_true(fd >= 0);
	(void)fd_close(fd);
	assert_true(rig_has(r, "made"));
	assert_int_equal(tree_parent(r->root, "no/such", false, &name, &r->err), -1);
	r->err = (struct error){0};
	/* A file in place of a directory is an error. */
	rig_put(r->root, "file", "x");
	assert_int_equal(tree_parent(r->root, "file/x", true, &name, &r->err), -1);
}

static void removal_is_complete_and_follows_no_links(void **state)
{
	struct rig *r = *state;

	rig_put(r->outside, "victim", "x");
	assert_int_equal(mkdirat(r->root, "d", 0755), 0);
	assert_int_equal(mkdirat(r->root, "d/e", 0755), 0);
	rig_put(r->root, "d/e/f", "x");
	assert_int_equal(symlinkat("../..", r->root, "d/up"), 0);
	assert_int_equal(tree_remove(r->root, "d"), 0);
	assert_false(rig_has(r, "d"));
	assert_int_equal(tree_remove(r->root, "never there"), 0);
	assert_int_equal(faccessat(r->outside, "victim", F_OK, 0), 0);
}

static bool keeps(void *ctx, const char *path)
{
	return strcmp(path, ctx) == 0;
}

static bool keeps_no_dir(void *ctx, uint64_t inode)
{
	(void)ctx;
	(void)inode;
	return false;
}

static uint64_t kept_inode;

static bool keeps_dir(void *ctx, uint64_t inode)
{
	(void)ctx;
	return inode == kept_inode;
}

static void clearing_does_not_look_into_a_kept_directory(void **state)
{
	struct rig *r = *state;
	const struct tree_kept kept = {keeps, keeps_dir, (char[]){"nothing"}};
	struct stat st;

	assert_int_equal(mkdirat(r->root, "c", 0755), 0);
	rig_put(r->root, "c/inside", "x");
	rig_put(r->root, "old", "x");
	assert_int_equal(fstatat(r->root, "c", &st, 0), 0);
	kept_inode = st.st_ino;
	assert_int_equal(tree_clear(r->root, "", &kept), 0);
	assert_true(rig_has(r, "c/inside"));
	assert_false(rig_has(r, "old"));
}

static void clearing_leaves_what_is_kept_and_the_way_to_it(void **state)
{
	struct rig *r = *state;
	const struct tree_kept kept = {keeps, keeps_no_dir, (char[]){"b/c/new"}};

	assert_int_equal(mkdirat(r->root, "c", 0755), 0);
	rig_put(r->root, "c/new", "x");
	rig_put(r->root, "c/old", "x");
	rig_put(r->root, "old", "x");
	assert_int_equal(tree_clear(r->root, "b", &kept), 0);
	assert_true(rig_has(r, "c/new"));
	assert_false(rig_has(r, "c/old") || rig_has(r, "old"));
}

static void make_deep(int dir, unsigned levels)
{
	int at = fd_open_at(dir, ".", O_RDONLY | O_DIRECTORY, 0);

	for (unsigned i = 0; i < levels; i++) {
		int below;

		assert_int_equal(mkdirat(at, "deep", 0755), 0);
		below = fd_open_at(at, "deep", O_RDONLY | O_DIRECTORY, 0);
		assert_true(below >= 0);
		(void)fd_close(at);
		at = below;
	}
	(void)fd_close(at);
}

static void trees_that_are_too_deep_are_removed_but_not_measured(void **state)
{
	struct rig *r = *state;
	const struct tree_kept kept = {keeps, keeps_no_dir, (char[]){"nothing"}};
	uint64_t bytes = 7;

	make_deep(r->root, 600);
	assert_int_equal(tree_measure(r->root, &bytes), -ELOOP);
	assert_int_equal(bytes, 7);
	assert_int_equal(tree_clear(r->root, "", &kept), -ELOOP);
	assert_int_equal(tree_remove(r->outside, "root"), 0);
	assert_int_equal(mkdirat(r->outside, "root", 0700), 0);
}

static void links_of_a_file_count_once(void **state)
{
	struct rig *r = *state;
	char text[8193];
	uint64_t one, two;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	rig_put(r->root, "a", text);
	assert_int_equal(tree_measure(r->root, &one), 0);
	assert_true(one >= 8192);
	assert_int_equal(linkat(r->root, "a", r->root, "b", 0), 0);
	assert_int_equal(tree_measure(r->root, &two), 0);
	assert_int_equal(one, two);
	assert_true(rig_has(r, "a") && rig_has(r, "b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_lose_what_is_in_front_and_may_not_lead_up),
		cmocka_unit_test(names_have_a_bound),
		RIG_TEST(parents_are_made_and_links_stay_inside),
		RIG_TEST(removal_is_complete_and_follows_no_links),
		RIG_TEST(clearing_leaves_what_is_kept_and_the_way_to_it),
		RIG_TEST(clearing_does_not_look_into_a_kept_directory),
		RIG_TEST(trees_that_are_too_deep_are_removed_but_not_measured),
		RIG_TEST(links_of_a_file_count_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
