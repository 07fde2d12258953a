/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "core/identity/scope.h"

static void names_go_both_ways(void **state)
{
	char text[SCOPES_TEXT_LEN];
	uint32_t scopes = 0;
	struct error err = {0};

	(void)state;
	for (int i = SCOPE_READ; i < SCOPE_COUNT; i++)
		assert_int_equal(scope_find(scope_name((enum scope)i)), i);
	scopes_format(SCOPES_ALL, text);
	assert_string_equal(text,
	                    "read,execute,sessions,files,templates,policy,metrics,secrets,admin");
	assert_int_equal(scopes_parse(text, &scopes, &err), 0);
	assert_int_equal(scopes, SCOPES_ALL);
	assert_int_equal(scopes_parse("read", &scopes, &err), 0);
	assert_int_equal(scopes, SCOPE_BIT(SCOPE_READ));
	scopes_format(0, text);
	assert_string_equal(text, "");
}

static void unknown_scopes_are_refused(void **state)
{
	static const char *const bad[] = {"",     "root",         "read,", ",read", "read,,files",
	                                  "READ", "read execute", "rea"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct error err = {0};
		uint32_t scopes = 77;

		assert_int_equal(scopes_parse(bad[i], &scopes, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_string_equal(err.field, "scopes");
		assert_int_equal(scopes, 77);
	}
	assert_int_equal(scope_find("public"), SCOPE_COUNT);
}

static void each_allows_itself_and_admin_all(void **state)
{
	(void)state;
	for (int has = SCOPE_READ; has < SCOPE_COUNT; has++) {
		assert_true(scope_allows(SCOPE_BIT(has), SCOPE_ANY));
		assert_true(scope_allows(SCOPE_BIT(has), SCOPE_PUBLIC));
		for (int needs = SCOPE_READ; needs < SCOPE_COUNT; needs++)
			assert_int_equal(scope_allows(SCOPE_BIT(has), (enum scope)needs),
			                 has == needs || has == SCOPE_ADMIN);
	}
	assert_false(scope_allows(SCOPES_USER, SCOPE_ADMIN));
	assert_false(scope_allows(SCOPES_USER, SCOPE_UNSET));
	assert_true(scope_allows(SCOPES_ALL, SCOPE_UNSET));
	assert_true(scope_allows(0, SCOPE_PUBLIC));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_go_both_ways),
		cmocka_unit_test(unknown_scopes_are_refused),
		cmocka_unit_test(each_allows_itself_and_admin_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
