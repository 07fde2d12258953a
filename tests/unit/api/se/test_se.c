/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/se/se.h"

static void errors_have_the_dialect_s_words(void **state)
{
	struct error err = {.code = ERR_BUSY, .msg = "full"};
	int status = 429;
	json_t *j;

	(void)state;
	assert_true(se_is_path("/workspace/se/healthy"));
	assert_false(se_is_path("/api/v1/workspace/se/"));
	j = se_error_object(&err, "r", "/workspace/se/v2/execute_code", &status);
	assert_int_equal(status, 503);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(j, "detail"), "error_code")),
		"Sandbox.TooManyRequestsExection");
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_have_the_dialect_s_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
