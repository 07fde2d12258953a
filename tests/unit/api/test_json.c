/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/json.h"
#include "base/alloc.h"
#include "base/buf.h"
#include <string.h>

static void refuse(const char *text, const char *field, const char *words)
{
	struct error err = {0};
	json_t *j = json_read_object(text, strlen(text), &err);

	assert_null(j);
	assert_int_equal(err.code, ERR_BAD_JSON);
	if (!strstr(err.msg, words))
		fail_msg("'%s' is refused with '%s', not '%s'", text, err.msg, words);
	if (strcmp(err.field, field) != 0)
		fail_msg("'%s' names the field '%s', not '%s'", text, err.field, field);
}

static void malformed_text_is_refused_with_its_place(void **state)
{
	(void)state;
	refuse("", "", "end of file");
	refuse("{", "", "end of file");
	refuse("[]", "", "must be an object");
	refuse("null", "", "expected");
	refuse("{}x", "", "end of file expected");
	refuse("{\"a\":1,}", "", "string or '}' expected");
	refuse("{\"a\":tru}", "a", "invalid token");
	refuse("{\"a\":NaN}", "a", "invalid token");
	refuse("{\"a\":{\"b\":[1,2,x]}}", "a.b[2]", "invalid token");
	refuse("{\"a\":{\"b\":1},\"c\":+1}", "c", "invalid token");
	refuse("{\"a\":\"\\ud800\"}", "a", "Unicode");
	refuse("{\"a\":\"\xff\"}", "a", "decode byte");
	refuse("{\"a\":\"\t\"}", "a", "control character");
	refuse("{\"a\":\"\\q\"}", "a", "invalid escape");
	refuse("{'a':1}", "", "expected");
	refuse("\xef\xbb\xbf{}", "", "expected");
}

static void a_number_out_of_range_names_its_field(void **state)
{
	(void)state;
	refuse("{\"timeout\":1e999}", "timeout", "overflow");
	refuse("{\"r\":{\"memory\":99999999999999999999}}", "r.memory", "too big integer");
	refuse("{\"r\":{\"memory\":-99999999999999999999}}", "r.memory",
	       "too big negative integer");
}

static void a_duplicate_key_is_named(void **state)
{
	(void)state;
	refuse("{\"code\":1,\"code\":2}", "code", "duplicate object key");
	refuse("{\"r\":{\"cpu\":1,\"cpu\":1}}", "r.cpu", "duplicate object key");
}

static void nul_in_a_key_is_refused(void **state)
{
	(void)state;
	refuse("{\"files\":{\"a\\u0000b\":1}}", "files.a\\u0000b", "NUL byte in object key");
}

static char *nested(const char *open, const char *close, size_t depth)
{
	struct buf b = BUF_INIT(1 << 20);

	for (size_t i = 0; i < depth; i++)
		assert_int_equal(buf_add_str(&b, open), 0);
	assert_int_equal(buf_add_str(&b, "1"), 0);
	for (size_t i = 0; i < depth; i++)
		assert_int_equal(buf_add_str(&b, close), 0);
	return buf_take(&b, NULL);
}

static void depth_is_bounded_exactly(void **state)
{
	struct error err = {0};
	cleanup_free char *fits = nested("{\"a\":", "}", JSON_DEPTH_MAX);
	cleanup_free char *deep = nested("{\"a\":", "}", JSON_DEPTH_MAX + 1);
	cleanup_free char *arrays = nested("[", "]", 100000);
	json_t *j = json_read_object(fits, strlen(fits), &err);

	(void)state;
	assert_non_null(j);
	json_decref(j);
	refuse(deep, "", "nested deeper");
	refuse(arrays, "", "nested deeper");
	/* Brackets in strings are text. */
	refuse("{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
	       "\\\"[[\"",
	       "a", "end of file");
}

static void the_number_of_values_is_bounded(void **state)
{
	struct buf b = BUF_INIT(1 << 20);

	(void)state;
	assert_int_equal(buf_add_str(&b, "{\"a\":["), 0);
	for (int i = 0; i < JSON_VALUES_MAX; i++)
		assert_int_equal(buf_add_str(&b, "1,"), 0);
	assert_int_equal(buf_add_str(&b, "1]}"), 0);
	refuse(b.data, "", "more than");
	buf_done(&b);
}

static void text_keeps_nul_and_replaces_what_is_no_text(void **state)
{
	static const char text[] = "a\0b\xff";
	json_t *j = json_text(text, 4);

	(void)state;
	assert_int_equal(json_string_length(j), 6);
	assert_memory_equal(json_string_value(j), "a\0b\xef\xbf\xbd", 6);
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(malformed_text_is_refused_with_its_place),
		cmocka_unit_test(a_number_out_of_range_names_its_field),
		cmocka_unit_test(a_duplicate_key_is_named),
		cmocka_unit_test(nul_in_a_key_is_refused),
		cmocka_unit_test(depth_is_bounded_exactly),
		cmocka_unit_test(the_number_of_values_is_bounded),
		cmocka_unit_test(text_keeps_nul_and_replaces_what_is_no_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
