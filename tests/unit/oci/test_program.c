/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "oci/steps.h"

static void version_follows_the_name(void **state)
{
	static const struct {
		const char *answer, *says, *release;
	} rows[] = {
		{"bubblewrap 0.8.0\n", "bubblewrap ", "0.8.0"},
		{"runc version 1.1.5+ds1\ncommit: x\n", "runc version ", "1.1.5+ds1"},
		{"W1119 could not read\nrunsc version 0.0~20221219.0\nspec: 1.0.2-dev",
	         "runsc version ", "0.0~20221219.0"},
	};
	char release[ENGINE_RELEASE_LEN];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(program_release(rows[i].answer, rows[i].says, release), 0);
		assert_string_equal(release, rows[i].release);
	}
}

static void another_program_is_not_taken_for_the_runtime(void **state)
{
	static const char *const answers[] = {
		"",
		"sleep (GNU coreutils) 9.1\n",
		"not runc version 1.1\n",
		"runc version \n",
		"runc version",
		"runc version \x1b[31m",
	};
	char release[ENGINE_RELEASE_LEN];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		assert_int_equal(program_release(answers[i], "runc version ", release), -ENOENT);
}

static void a_long_version_is_cut_and_ends_with_a_nul(void **state)
{
	char answer[256], release[ENGINE_RELEASE_LEN];

	(void)state;
	memset(answer, '7', sizeof(answer));
	memcpy(answer, "crun version ", strlen("crun version "));
	answer[sizeof(answer) - 1] = '\0';
	assert_int_equal(program_release(answer, "crun version ", release), 0);
	assert_int_equal(strlen(release), ENGINE_RELEASE_LEN - 1);
}

static void only_printable_characters_are_read(void **state)
{
	char release[ENGINE_RELEASE_LEN];

	(void)state;
	assert_int_equal(program_release("crun version 1.8\x07.1 x\n", "crun version ", release),
	                 0);
	assert_string_equal(release, "1.8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_follows_the_name),
		cmocka_unit_test(another_program_is_not_taken_for_the_runtime),
		cmocka_unit_test(a_long_version_is_cut_and_ends_with_a_nul),
		cmocka_unit_test(only_printable_characters_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
