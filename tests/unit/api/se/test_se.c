/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/se/se.h"
#include "daemon/dialects.h"

static void errors_have_the_dialect_s_words(void **state)
{
	struct error err = {.code = ERR_BUSY, .msg = "full"};
	int status = 429;
	json_t *j;

	(void)state;
	assert_ptr_equal(route_dialect(dialects, "/workspace/se/healthy"), &se_dialect);
	assert_ptr_equal(route_dialect(dialects, "/workspace/se/v2/execute_code"), &se_v2_dialect);
	assert_null(route_dialect(dialects, "/api/v1/workspace/se/"));
	j = se_v2_dialect.error_body(&err, "r", &status);
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
