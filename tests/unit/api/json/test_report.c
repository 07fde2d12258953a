/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/json/report.h"
#include "base/alloc.h"
#include <errno.h>
#include <string.h>

static void a_report_fills_its_three_fields(void **state)
{
	static const char text[] =
		"{\"result\":[1,{\"a\":null}],\"results\":[{\"text/plain\":\"x\"}],"
		"\"error\":{\"name\":\"E\",\"value\":\"v\",\"traceback\":[\"t\"]}}";
	cleanup_report struct report r = {0};

	(void)state;
	assert_int_equal(report_read(text, strlen(text), &r), 0);
	assert_int_equal(json_array_size(r.result), 2);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(r.results, 0), "text/plain")),
		"x");
	assert_string_equal(json_string_value(json_object_get(r.error, "name")), "E");
}

static void an_empty_report_is_valid(void **state)
{
	static const char *const texts[] = {"", "{}",
	                                    "{\"result\":null,\"results\":null,\"error\":null}"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cleanup_report struct report r = {0};

		assert_int_equal(report_read(texts[i], strlen(texts[i]), &r), 0);
		assert_true(json_is_null(r.result));
		assert_true(json_is_array(r.results));
		assert_int_equal(json_array_size(r.results), 0);
		assert_true(json_is_null(r.error));
	}
}

static void a_malformed_report_is_ignored(void **state)
{
	static const char *const texts[] = {
		"x",
		"[]",
		"null",
		"{\"result\":1",
		"{\"result\":1,\"result\":2}",
		"{\"result\":1,\"status\":\"success\"}",
		"{\"result\":1,\"exit_code\":0}",
		"{\"result\":1,\"results\":{}}",
		"{\"result\":1,\"results\":[1]}",
		"{\"result\":1,\"results\":[{\"a\":1}]}",
		"{\"result\":1,\"error\":\"e\"}",
		"{\"result\":1,\"error\":{}}",
		"{\"result\":1,\"error\":{\"name\":\"E\"}}",
		"{\"result\":1,\"error\":{\"name\":\"E\",\"value\":1,\"traceback\":[]}}",
		"{\"result\":1,\"error\":{\"name\":\"E\",\"value\":\"\",\"traceback\":[1]}}",
		"{\"result\":1,\"error\":{\"name\":\"E\",\"value\":\"\",\"traceback\":[],\"x\":1}}",
		"{\"result\":\"\xff\"}",
		"{\"result\":1e999}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cleanup_report struct report r = {0};

		if (report_read(texts[i], strlen(texts[i]), &r) != -EINVAL)
			fail_msg("'%s' was believed", texts[i]);
		assert_true(json_is_null(r.result));
		assert_int_equal(json_array_size(r.results), 0);
		assert_true(json_is_null(r.error));
	}
}

static void size_is_bounded(void **state)
{
	size_t len = REPORT_MAX_BYTES + 1;
	cleanup_free char *text = xmalloc(len);
	cleanup_report struct report r = {0};

	(void)state;
	memset(text, ' ', len);
	text[0] = '{';
	text[len - 1] = '}';
	assert_int_equal(report_read(text, len, &r), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_report_fills_its_three_fields),
		cmocka_unit_test(an_empty_report_is_valid),
		cmocka_unit_test(a_malformed_report_is_ignored),
		cmocka_unit_test(size_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
