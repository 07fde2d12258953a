/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <math.h>

#include "base/alloc.h"
#include "client/handle.h"
#include "json/json_dump.h"

static void assert_body(const struct millibox_request *request, const char *expected)
{
	cleanup_free char *text = json_dump_text(request->body, JSON_COMPACT | JSON_SORT_KEYS);

	assert_string_equal(text, expected);
}

static void fields_become_the_body(void **state)
{
	struct millibox_request *request = millibox_request_new("1");

	(void)state;
	assert_int_equal(millibox_request_set(request, "resources.memory", "64Mi"), 0);
	assert_int_equal(millibox_request_set_number(request, "resources.cpu", 0.5), 0);
	assert_int_equal(millibox_request_set_number(request, "timeout", 2), 0);
	assert_int_equal(millibox_request_set_json(request, "wait", "true"), 0);
	assert_int_equal(millibox_request_add(request, "args", "a"), 0);
	assert_int_equal(millibox_request_add(request, "args", "b"), 0);
	assert_body(request, "{\"args\":[\"a\",\"b\"],\"code\":\"1\",\"resources\":{\"cpu\":0.5,"
	                     "\"memory\":\"64Mi\"},"
	                     "\"timeout\":2,\"wait\":true}");
	assert_false(error_is_set(&request->error));
	millibox_request_free(request);
}

static void names_may_have_dots_and_bytes_are_encoded(void **state)
{
	struct millibox_request *request = millibox_request_new(NULL);

	(void)state;
	assert_int_equal(millibox_request_put(request, "files", "a.b", "t"), 0);
	assert_int_equal(millibox_request_put_bytes(request, "files", "c", "\0\xff", 2), 0);
	assert_int_equal(millibox_request_set_bytes(request, "stdin", NULL, 0), 0);
	assert_body(request,
	            "{\"files\":{\"a.b\":\"t\",\"c\":{\"base64\":\"AP8=\"}},\"stdin\":\"\"}");
	millibox_request_free(request);
}

static void a_field_is_replaced(void **state)
{
	struct millibox_request *request = millibox_request_new("1");

	(void)state;
	assert_int_equal(millibox_request_set(request, "code", "2"), 0);
	assert_body(request, "{\"code\":\"2\"}");
	millibox_request_free(request);
}

static void the_first_error_is_kept_and_changes_nothing(void **state)
{
	struct millibox_request *request = millibox_request_new("1");

	(void)state;
	assert_int_equal(millibox_request_set_number(request, "timeout", NAN), -1);
	assert_int_equal(millibox_request_set(request, "language", "\xff"), -1);
	assert_int_equal(millibox_request_set(request, "code.x", "y"), -1);
	assert_int_equal(millibox_request_add(request, "code", "y"), -1);
	assert_int_equal(millibox_request_put(request, "code", "x", "y"), -1);
	assert_int_equal(millibox_request_set_json(request, "event", "{]"), -1);
	assert_body(request, "{\"code\":\"1\"}");
	assert_string_equal(request->error.field, "timeout");
	assert_int_equal(request->error.code, ERR_INVALID);
	millibox_request_free(request);
}

static void only_seconds_that_make_sense_are_a_deadline(void **state)
{
	static const double bad[] = {-1, NAN, INFINITY, 1e12};
	struct millibox_request *request = millibox_request_new(NULL);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(millibox_request_deadline(request, bad[i]), -1);
	assert_int_equal(request->deadline_us, 0);
	assert_int_equal(millibox_request_deadline(request, 1.5), 0);
	assert_int_equal(request->deadline_us, 1500000);
	millibox_request_free(request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_become_the_body),
		cmocka_unit_test(names_may_have_dots_and_bytes_are_encoded),
		cmocka_unit_test(a_field_is_replaced),
		cmocka_unit_test(the_first_error_is_kept_and_changes_nothing),
		cmocka_unit_test(only_seconds_that_make_sense_are_a_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
