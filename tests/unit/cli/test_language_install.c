/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "base/alloc.h"
#include "cli/language_install.h"

static json_t *languages(const char *text)
{
	json_t *list = json_loads(text, 0, NULL);

	assert_non_null(list);
	return list;
}

static void names_and_aliases_are_found(void **state)
{
	json_auto_t *list = languages("[{\"name\": \"cpp\", \"aliases\": [\"c++\"]},"
	                              " {\"name\": \"go\", \"available\": true}, 1]");

	(void)state;
	assert_ptr_equal(language_find(list, "c++"), json_array_get(list, 0));
	assert_ptr_equal(language_find(list, "go"), json_array_get(list, 1));
	assert_null(language_find(list, "c"));
	assert_true(language_is_there(json_array_get(list, 1)));
	assert_false(language_is_there(json_array_get(list, 0)));
}

static void packages_are_one_command(void **state)
{
	json_auto_t *list = languages("[{\"debian_packages\": [\"nodejs\", \"g++\"]},"
	                              " {\"debian_packages\": [\"nodejs\", \"node-typescript\"]},"
	                              " {\"debian_packages\": []}, {}]");
	cleanup_language_packages struct language_packages packages = {0};
	cleanup_free char *command = NULL;
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < json_array_size(list); i++)
		assert_int_equal(language_packages_add(&packages, json_array_get(list, i), &err),
		                 0);
	assert_int_equal(packages.count, 3);
	command = language_packages_command(&packages);
	assert_string_equal(command, "apt-get install -y --no-install-recommends nodejs g++ "
	                             "node-typescript");
}

/* Root may run what a daemon of another user says. */
static void words_that_are_no_packages_are_refused(void **state)
{
	static const char *const words[] = {"-o",         "--download-only",
	                                    "./evil.deb", "/evil.deb",
	                                    "bash-",      "a b",
	                                    "a;b",        "x",
	                                    "",           "A1",
	                                    "a=1",        "a*"};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		cleanup_language_packages struct language_packages packages = {0};
		json_auto_t *language = json_pack("{s:s, s:[s, s]}", "name", "c", "debian_packages",
		                                  "gcc", words[i]);
		struct error err = {0};

		assert_int_equal(language_packages_add(&packages, language, &err), -1);
		assert_int_equal(err.code, ERR_PROTOCOL);
	}
}

static void words_that_are_no_text_are_refused(void **state)
{
	cleanup_language_packages struct language_packages packages = {0};
	json_auto_t *language = json_pack("{s:[i]}", "debian_packages", 1);
	struct error err = {0};

	(void)state;
	assert_int_equal(language_packages_add(&packages, language, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_aliases_are_found),
		cmocka_unit_test(packages_are_one_command),
		cmocka_unit_test(words_that_are_no_packages_are_refused),
		cmocka_unit_test(words_that_are_no_text_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
