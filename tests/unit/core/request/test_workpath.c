/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "core/request/workpath.h"
#include <string.h>

#define N10  "nnnnnnnnnn"
#define N50  N10 N10 N10 N10 N10
#define N250 N50 N50 N50 N50 N50
#define D8   "d/d/d/d/d/d/d/d/"

/* What each spelling becomes; NULL: refused. */
static const struct {
	const char *path, *relative, *stripped;
} cases[] = {
	{"", "", ""},
	{".", "", ""},
	{"./", "", ""},
	{"./.", "", ""},
	{"a", "a", "a"},
	{"a/b", "a/b", "a/b"},
	{"a/b/c.txt", "a/b/c.txt", "a/b/c.txt"},
	{"./a", "a", "a"},
	{"./a/./b", "a/b", "a/b"},
	{"a/.", "a", "a"},
	{"a/", "a", "a"},
	{"a//b", "a/b", "a/b"},
	{"a///b//", "a/b", "a/b"},
	{"/", NULL, ""},
	{"//", NULL, ""},
	{"/a", NULL, "a"},
	{"//a", NULL, "a"},
	{"///a/b", NULL, "a/b"},
	{"/etc/passwd", NULL, "etc/passwd"},
	{"/workspace", "", ""},
	{"/workspace/", "", ""},
	{"/workspace/x", "x", "x"},
	{"//workspace//x", "x", "x"},
	{"/workspace/workspace/x", "workspace/x", "workspace/x"},
	{"/workspace//etc", "etc", "etc"},
	{"/workspace/../etc", NULL, NULL},
	{"/workspaces/x", NULL, "workspaces/x"},
	{"workspace/x", "workspace/x", "workspace/x"},
	{"/./a", NULL, "a"},
	{"..", NULL, NULL},
	{"../", NULL, NULL},
	{"../a", NULL, NULL},
	{"../../etc/passwd", NULL, NULL},
	{"/..", NULL, NULL},
	{"/../a", NULL, NULL},
	{"a/..", NULL, NULL},
	{"a/../b", NULL, NULL},
	{"a/../../b", NULL, NULL},
	{"a/b/..", NULL, NULL},
	{"./..", NULL, NULL},
	{"./../a", NULL, NULL},
	{"a/./../b", NULL, NULL},
	{"a//../b", NULL, NULL},
	{"...", "...", "..."},
	{"..a", "..a", "..a"},
	{"a..", "a..", "a.."},
	{".hidden", ".hidden", ".hidden"},
	{".hidden/x", ".hidden/x", ".hidden/x"},
	{"a.b.c", "a.b.c", "a.b.c"},
	{"a b", "a b", "a b"},
	{" a", " a", " a"},
	{"\xe6\x97\xa5/\xc3\xbc", "\xe6\x97\xa5/\xc3\xbc", "\xe6\x97\xa5/\xc3\xbc"},
	{"\xff\xfe", "\xff\xfe", "\xff\xfe"},
	{"a\nb", "a\nb", "a\nb"},
	{"-rf", "-rf", "-rf"},
	{"~", "~", "~"},
	{"~/x", "~/x", "~/x"},
	{"$HOME", "$HOME", "$HOME"},
	{"a\\..\\b", "a\\..\\b", "a\\..\\b"},
	{"%2e%2e/a", "%2e%2e/a", "%2e%2e/a"},
	{N250 "12345", N250 "12345", N250 "12345"},
	{N250 "123456", NULL, NULL},
	{"a/" N250 "123456", NULL, NULL},
	{D8 D8 D8 "d/d/d/d/d/d/d/d", D8 D8 D8 "d/d/d/d/d/d/d/d", D8 D8 D8 "d/d/d/d/d/d/d/d"},
	{D8 D8 D8 D8 "d", NULL, NULL},
	{D8 D8 D8 D8 "./", D8 D8 D8 "d/d/d/d/d/d/d/d", D8 D8 D8 "d/d/d/d/d/d/d/d"},
};

static void check(const char *path, enum workpath_rule rule, const char *wanted)
{
	char clean[WORKPATH_MAX + 1];
	struct error err = {0};
	int r = workpath_clean(path, rule, "path", clean, &err);

	if ((r == 0) != (wanted != NULL))
		fail_msg("'%s' with rule %d: %d", path, rule, r);
	if (wanted) {
		assert_string_equal(clean, wanted);
		return;
	}
	assert_int_equal(err.code, ERR_INVALID);
	assert_string_equal(err.field, "path");
	if (workpath_inside(path)[0] == '/' && rule == WORKPATH_RELATIVE)
		assert_non_null(strstr(err.msg, "is not in /workspace"));
}

static void every_case(void **state)
{
	(void)state;
	assert_true(sizeof(cases) / sizeof(cases[0]) >= 44);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check(cases[i].path, WORKPATH_RELATIVE, cases[i].relative);
		check(cases[i].path, WORKPATH_STRIP, cases[i].stripped);
	}
}

static void the_whole_is_bounded(void **state)
{
	static char path[2 * WORKPATH_MAX];

	(void)state;
	for (size_t len = WORKPATH_MAX - 2; len <= WORKPATH_MAX + 1; len += 1) {
		memset(path, 'n', len);
		path[len] = '\0';
		for (size_t i = 200; i < len; i += 200)
			path[i] = '/';
		check(path, WORKPATH_RELATIVE, len <= WORKPATH_MAX ? path : NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_case),
		cmocka_unit_test(the_whole_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
