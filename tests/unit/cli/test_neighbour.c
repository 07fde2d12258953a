/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/neighbour.h"

/* A directory with helper.py, tool.js, .secret.py, and the directory pkg, which is also the current
 * one. */
static int setup(void **state)
{
	static char dir[32];
	static const char *const files[] = {"helper.py", "tool.js", ".secret.py"};

	assert_int_equal(str_copy(dir, sizeof(dir), "/tmp/neighbour-XXXXXX"), 0);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		assert_true(fd_close(open(files[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == -1);
	assert_int_equal(mkdir("pkg", 0700), 0);
	*state = dir;
	return 0;
}

static int teardown(void **state attr_unused)
{
	static const char *const files[] = {"helper.py", "tool.js", ".secret.py"};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		assert_int_equal(unlink(files[i]), 0);
	assert_int_equal(rmdir("pkg"), 0);
	assert_int_equal(rmdir(*state), 0);
	return chdir("/");
}

static char *hint(const char *program, bool has_dir, const char *value)
{
	json_t *error = json_pack("{s:s,s:s}", "name", "ModuleNotFoundError", "value", value);
	const struct neighbour_search search = {program, error, has_dir};
	char *text = neighbour_hint(&search);

	json_decref(error);
	return text;
}

#define EXPECT(program, has_dir, value, text)                                                      \
	do {                                                                                       \
		cleanup_free char *said_ = hint(program, has_dir, value);                          \
		assert_non_null(said_);                                                            \
		assert_string_equal(said_, text);                                                  \
	} while (0)

static void names_the_file_and_the_directory(void **state)
{
	cleanup_free char *program = xasprintf("%s/main.py", (char *)*state);
	cleanup_free char *away =
		xasprintf("helper.py is beside main.py, and not in the box: add '-f %s/helper.py', "
	                  "or '--dir %s' for the whole directory",
	                  (char *)*state, (char *)*state);

	EXPECT("main.py", true, "No module named 'helper'",
	       "helper.py is beside main.py, and not in the box: add '-f helper.py', or '--dir .' "
	       "for the whole directory");
	EXPECT("main.py", false, "No module named 'helper'",
	       "helper.py is beside main.py, and not in the box: add '-f helper.py'");
	EXPECT(program, true, "No module named 'helper'", away);
	EXPECT(NULL, true, "No module named 'helper'",
	       "helper.py is in this directory, and not in the box: add '-f helper.py', or '--dir "
	       ".' for the whole directory");
	EXPECT("main.py", true, "No module named 'pkg.part'",
	       "the directory pkg is beside main.py, and not in the box: add '--dir .'");
	EXPECT("main.py", false, "No module named 'pkg'",
	       "the directory pkg is beside main.py, and not in the box: copy it with 'millibox cp "
	       "pkg SESSION:'");
	EXPECT("main.js", true, "Cannot find module './tool'\nRequire stack:\n- /workspace/main.js",
	       "tool.js is beside main.js, and not in the box: add '-f tool.js', or '--dir .' for "
	       "the whole directory");
	EXPECT("main.mjs", true, "Cannot find module '/workspace/tool.js' imported from x",
	       "tool.js is beside main.mjs, and not in the box: add '-f tool.js', or '--dir .' for "
	       "the whole directory");
}

/* The program chooses the text. */
static void says_nothing_else(void **state attr_unused)
{
	static const char *const values[] = {
		"No module named 'numpy'",    "No module named '.secret'", "No module named ''",
		"No module named '../x'",     "Cannot find module 'tool'", "division by zero",
		"No module named 'hel\nper'",
	};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		assert_null(hint("main.py", true, values[i]));
	assert_null(neighbour_hint(&(struct neighbour_search){.program = "main.py"}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_the_file_and_the_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(says_nothing_else, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
