/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "client/api_call.h"
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

static void an_invalid_id_has_no_path(void **state)
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

static void a_file_becomes_a_path(void **state)
{
	static const struct {
		const char *path, *expected;
	} rows[] = {
		{"a/b.txt", "/api/v1/sessions/s/files/./a/b.txt?x"},
		{"mkdir", "/api/v1/sessions/s/files/./mkdir?x"},
		{"", "/api/v1/sessions/s/files/./?x"},
		{"/etc/passwd", "/api/v1/sessions/s/files//etc/passwd?x"},
		{"a/../b", "/api/v1/sessions/s/files/./a/../b?x"},
		{"%2e?&=#+ \"", "/api/v1/sessions/s/files/./%252e%3F%26%3D%23%2B%20%22?x"},
		{"\xff\n", "/api/v1/sessions/s/files/./%FF%0A?x"},
	};
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_free char *path = api_file_path("s", rows[i].path, "?x", &err);

		assert_non_null(path);
		assert_string_equal(path, rows[i].expected);
	}
	assert_null(api_file_path("../x", "a", "", &err));
	assert_int_equal(err.code, ERR_INVALID);
}

static void a_missing_daemon_is_reported_with_its_socket(void **state)
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
		cmocka_unit_test(an_invalid_id_has_no_path),
		cmocka_unit_test(a_file_becomes_a_path),
		cmocka_unit_test(a_missing_daemon_is_reported_with_its_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
