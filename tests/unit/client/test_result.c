/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "client/handle.h"
#include <string.h>

static struct millibox_result *result_of(const char *json)
{
	return result_new(json_loads(json, 0, NULL));
}

static void the_last_value_of_a_media_type_counts(void **state)
{
	struct millibox_result *r =
		result_of("{\"stdout\": \"out\", \"results\": [{\"text/plain\": \"one\", "
	                  "\"image/png\": \"AAE=\"}, "
	                  "{\"text/plain\": \"two\"}, {\"text/html\": \"<b>\"}]}");
	size_t len = 0;

	(void)state;
	assert_string_equal(millibox_result_text(r), "two");
	assert_memory_equal(millibox_result_data(r, "image/png", &len), "\0\1", 2);
	assert_int_equal(len, 2);
	assert_string_equal(millibox_result_data(r, "text/html", &len), "<b>");
	assert_int_equal(len, 3);
	assert_null(millibox_result_data(r, "image/gif", &len));
	assert_null(millibox_result_data(r, NULL, &len));
	millibox_result_free(r);
}

/* Names of media types and of our own texts must not meet. */
static void texts_that_are_made_do_not_mix(void **state)
{
	struct millibox_result *r =
		result_of("{\"error\": {\"name\": \"E\", \"value\": \"\"}, \"result\": {\"a\": 1}, "
	                  "\"denials\": [{\"what\": \"x\"}], "
	                  "\"results\": [{\"error\": \"media\", \"result\": \"media\", "
	                  "\"image/png\": \"AA\\nE=\"}]}");

	(void)state;
	for (int again = 0; again < 2; again++) {
		assert_string_equal(millibox_result_error(r), "E");
		assert_string_equal(millibox_result_value(r), "{\"a\": 1}");
		assert_string_equal(millibox_result_data(r, "error", NULL), "media");
		assert_string_equal(millibox_result_data(r, "result", NULL), "media");
		assert_string_equal(millibox_result_denial(r, 0), "{\"what\": \"x\"}");
		assert_memory_equal(millibox_result_data(r, "image/png", NULL), "\0\1", 2);
	}
	millibox_result_free(r);
}

/* What a daemon of another version, or none, might send. */
static void missing_and_wrong_members_are_empty(void **state)
{
	static const char *const objects[] = {
		"{}",
		"{\"status\": 1, \"exit_code\": \"x\", \"stdout\": [], \"stderr\": null, "
		"\"results\": {}, \"error\": 1, \"limit\": {}, \"denials\": 1}",
		"{\"results\": [1, null, {\"text/plain\": 5, \"image/png\": \"!\"}], \"error\": "
		"{\"name\": null}, \"result\": null}",
	};
	size_t len = 1;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
		struct millibox_result *r = result_of(objects[i]);

		assert_string_equal(millibox_result_status(r), "");
		assert_false(millibox_result_ok(r));
		assert_int_equal(millibox_result_exit_code(r), -1);
		assert_string_equal(millibox_result_stdout(r, &len), "");
		assert_int_equal(len, 0);
		assert_string_equal(millibox_result_text(r), "");
		assert_null(millibox_result_value(r));
		assert_null(millibox_result_data(r, "image/png", &len));
		assert_null(millibox_result_error(r));
		assert_null(millibox_result_limit(r));
		assert_null(millibox_result_warning(r, 0));
		assert_int_equal(millibox_result_denials(r), 0);
		assert_non_null(millibox_result_json(r));
		millibox_result_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_value_of_a_media_type_counts),
		cmocka_unit_test(texts_that_are_made_do_not_mix),
		cmocka_unit_test(missing_and_wrong_members_are_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
