/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "cli/api_call.h"
#include <string.h>

#define TOO_LONG "a2345678901234567890123456789012345678901234567890123456789012345"

static void an_id_becomes_a_path(void **state)
{
	struct error err = {0};
	cleanup_free char *path = api_path("my-session_1", "/pause", &err);

	(void)state;
	assert_non_null(path);
	assert_string_equal(path, "/api/v1/sessions/my-session_1/pause");
}

static void what_is_no_id_becomes_no_path(void **state)
{
	static const char *const bad[] = {"",    "a/b", "..",  "a?x=1",    "a#b",
	                                  "a b", "%2e", "a\n", "\xc3\xa9", TOO_LONG};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct error err = {0};

		if (api_path(bad[i], "", &err))
			fail_msg("'%s' is taken", bad[i]);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

static void where_nobody_listens_is_said(void **state)
{
	const struct endpoint endpoint = {.socket = (char[]){"/nonexistent/sock"},
	                                  .url = (char[]){"http://localhost"}};
	const struct api_call call = {"GET", "/api/v1/sessions", NULL};
	struct error err = {0};
	json_t *answer = NULL;
	int status = 0;

	(void)state;
	assert_int_equal(api_call(&endpoint, &call, &answer, &status, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_null(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_becomes_a_path),
		cmocka_unit_test(what_is_no_id_becomes_no_path),
		cmocka_unit_test(where_nobody_listens_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
