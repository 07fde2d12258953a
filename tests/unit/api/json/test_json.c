/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/json/json.h"
#include "base/alloc.h"
#include "base/buf.h"
#include <errno.h>
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
	refuse("", "", "the body is empty; {} is the least");
	refuse("{", "", "end of file");
	refuse("[]", "", "must be an object");
	refuse("null", "", "expected");
	refuse("{}x", "", "end of file expected");
	refuse("{\"a\":1,}", "", "string or '}' expected");
	refuse("{\"a\":\"b\"", "", "line 1, column 8: '}' expected");
	refuse("{\"r\":{\"a\":1 \"b\":2}}", "", "'}' expected");
	refuse("{\"r\":[1 2]}", "", "']' expected");
	refuse("{\"a\" 1}", "", "':' expected");
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
	       "", "end of file");
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

/* The same text by the library, which is slow and right. */
static void expect_same(const char *text, size_t len)
{
	cleanup_buf struct buf quick = BUF_INIT(1 << 24);
	cleanup_json json_t *j = json_text(text, len);
	cleanup_free char *slow = json_dumps(j, JSON_ENCODE_ANY);

	assert_int_equal(json_add_text(&quick, text, len), 0);
	assert_int_equal(strlen(slow), quick.len);
	assert_string_equal(quick.data, slow);
}

static void text_is_written_as_the_library_writes_it(void **state)
{
	static const char *const awkward[] = {
		"",
		"\"",
		"\\",
		"\x7f",
		"\xc2\x80",
		"\xe2\x82",
		"\xff",
		"\xed\xa0\x80",
		"\xc0\xaf",
		"\xf4\x90\x80",
		"\xe4\xb8\xad",
		"\xf0\x9f\x98",
		"\n",
		"\x1b[0m",
		"a\xe2\x82\xac",
		"\xf5",
		"\xc3(",
		"\x1f\x20",
	};
	char text[64];

	(void)state;
	/* At every place in a word and at every distance from the end. */
	for (size_t i = 0; i < ARRAY_SIZE(awkward); i++)
		for (size_t at = 0; at < 20; at++)
			for (size_t after = 0; after < 10; after++) {
				size_t len = strlen(awkward[i]);

				memset(text, 'x', sizeof(text));
				memcpy(text + at, awkward[i], len);
				expect_same(text, at + len + after);
			}
	for (unsigned c = 0; c < 256; c++) {
		memset(text, (int)c, sizeof(text));
		expect_same(text, sizeof(text));
	}
}

static void text_is_written_whole_across_pieces(void **state)
{
	static const char *const units[] = {"\xe4\xb8\xad", "\xf0\x9f\x98\x80", "ab\n", "\xff"};
	size_t len = 200000;
	cleanup_free char *text = xmalloc(len);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		for (size_t shift = 0; shift < 4; shift++) {
			memset(text, 'x', shift);
			for (size_t at = shift; at < len; at++)
				text[at] = units[i][(at - shift) % strlen(units[i])];
			expect_same(text, len);
		}
}

static void text_that_has_no_room_is_refused(void **state)
{
	static const char zeros[1000];
	cleanup_buf struct buf b = BUF_INIT(5000);

	(void)state;
	assert_int_equal(json_add_text(&b, zeros, sizeof(zeros)), -ENOBUFS);
	assert_true(b.len <= 5000);
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
		cmocka_unit_test(text_is_written_as_the_library_writes_it),
		cmocka_unit_test(text_is_written_whole_across_pieces),
		cmocka_unit_test(text_that_has_no_room_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
