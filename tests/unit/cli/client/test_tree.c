/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/file.h"
#include "cli/client/tree.h"

struct place {
	char dir[32];
	char path[1024];
};

static void place_init(struct place *p)
{
	memcpy(p->dir, "/tmp/mbxunit-XXXXXX", sizeof("/tmp/mbxunit-XXXXXX"));
	assert_non_null(mkdtemp(p->dir));
}

static const char *below(struct place *p, const char *name)
{
	(void)snprintf(p->path, sizeof(p->path), "%s/%s", p->dir, name);
	return p->path;
}

static void touch(struct place *p, const char *name)
{
	assert_int_equal(file_create_at(AT_FDCWD, below(p, name), 0600, "x", 1), 0);
}

static void a_tree_is_removed(void **state)
{
	struct place p;

	(void)state;
	place_init(&p);
	assert_int_equal(file_mkdir_parents(below(&p, "a/b/c"), 0700), 0);
	assert_int_equal(file_mkdir_parents(below(&p, "d"), 0700), 0);
	touch(&p, "a/b/c/f");
	touch(&p, "a/g");
	touch(&p, "h");
	assert_int_equal(mkfifo(below(&p, "a/fifo"), 0600), 0);
	assert_int_equal(tree_remove(p.dir), 0);
	assert_int_equal(access(p.dir, F_OK), -1);
}

static void links_are_removed_and_not_followed(void **state)
{
	struct place p, other;

	(void)state;
	place_init(&p);
	place_init(&other);
	touch(&other, "kept");
	assert_int_equal(symlink(other.dir, below(&p, "link")), 0);
	assert_int_equal(tree_remove(p.dir), 0);
	assert_int_equal(access(p.dir, F_OK), -1);
	assert_int_equal(access(below(&other, "kept"), F_OK), 0);
	assert_int_equal(symlink(other.dir, p.dir), 0);
	assert_true(tree_remove(p.dir) < 0);
	assert_int_equal(access(below(&other, "kept"), F_OK), 0);
	assert_int_equal(unlink(p.dir), 0);
	assert_int_equal(tree_remove(other.dir), 0);
}

static void a_tree_that_is_too_deep_is_left(void **state)
{
	struct place p;
	char deep[64] = "d";

	(void)state;
	place_init(&p);
	for (size_t i = 0; i < 16; i++)
		memcpy(deep + strlen(deep), "/d", 3);
	assert_int_equal(file_mkdir_parents(below(&p, deep), 0700), 0);
	assert_int_equal(tree_remove(p.dir), -ELOOP);
	assert_int_equal(access(below(&p, deep), F_OK), 0);
	while (deep[0]) {
		assert_int_equal(rmdir(below(&p, deep)), 0);
		deep[strlen(deep) > 1 ? strlen(deep) - 2 : 0] = '\0';
	}
	assert_int_equal(rmdir(p.dir), 0);
}

static void a_missing_directory_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(tree_remove("/tmp/mbxunit-nonexistent"), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_is_removed),
		cmocka_unit_test(links_are_removed_and_not_followed),
		cmocka_unit_test(a_tree_that_is_too_deep_is_left),
		cmocka_unit_test(a_missing_directory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
