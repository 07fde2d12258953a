/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/scan.h"
#include "unit.h"

#include "base/str.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int scan(const char *text, struct scan_value *ret)
{
	return scan_text(text, strlen(text), ret);
}

static void valid_texts_have_a_kind(void **state)
{
	static const struct {
		const char *text;
		enum scan_kind kind;
	} good[] = {
		{"{}", SCAN_OBJECT},
		{" [ ] ", SCAN_ARRAY},
		{"[1,[2,{\"a\":[]}],null]", SCAN_ARRAY},
		{"\"\\u00e9\\n\\ud83d\\ude00\"", SCAN_STRING},
		{"\"\xc3\xa9\"", SCAN_STRING},
		{"-0.5e+10", SCAN_NUMBER},
		{"0", SCAN_NUMBER},
		{"true", SCAN_BOOL},
		{"false", SCAN_BOOL},
		{"null", SCAN_NULL},
		{"{\"a\":1,\"b\":{\"c\":[true,false]}}", SCAN_OBJECT},
	};
	struct scan_value v;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(scan(good[i].text, &v), 0);
		assert_int_equal(v.kind, good[i].kind);
	}
}

static void other_texts_are_refused(void **state)
{
	static const char *const bad[] = {
		"",         " ",          "{",         "}",           "[1,]",        "{\"a\"}",
		"{\"a\":}", "{\"a\":1,}", "{a:1}",     "[1 2]",       "01",          "1.",
		".5",       "+1",         "1e",        "-",           "nul",         "truth",
		"\"",       "\"\\x\"",    "\"\\u12\"", "\"\\ud83d\"", "\"\\udc00\"", "\"\n\"",
		"\"\xff\"", "\"\xc3\"",   "{} {}",     "[]]",         "{\"a\":1}x",  "'a'",
		"[1}",      "{\"a\":1]",
	};
	struct scan_value v;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(scan(bad[i], &v), -EINVAL);
	assert_int_equal(scan_text("\"a\0b\"", 5, &v), -EINVAL);
}

static void depth_is_bounded_without_a_stack(void **state)
{
	size_t len = 1000000;
	char *text = malloc(len);
	char ok[2 * SCAN_DEPTH_MAX + 1] = "";
	struct scan_value v;

	(void)state;
	memset(text, '[', len);
	assert_int_equal(scan_text(text, len, &v), -E2BIG);
	free(text);
	memset(ok, '[', SCAN_DEPTH_MAX);
	memset(ok + SCAN_DEPTH_MAX, ']', SCAN_DEPTH_MAX);
	assert_int_equal(scan(ok, &v), 0);
}

static void members_are_found_by_what_their_names_mean(void **state)
{
	static const char *const names[] = {"url", "tool", "x"};
	struct scan_value whole, part[3];
	char text[16];

	(void)state;
	assert_int_equal(
		scan("{ \"u\\u0072l\" : \"a\\/b\", \"other\":{\"url\":1}, \"tool\":[1, 2] }",
	             &whole),
		0);
	assert_int_equal(scan_members(&whole, names, 3, part), 0);
	assert_int_equal(scan_string(&part[0], text, sizeof(text)), 3);
	assert_string_equal(text, "a/b");
	assert_int_equal(part[1].kind, SCAN_ARRAY);
	assert_int_equal(part[1].len, strlen("[1, 2]"));
	assert_int_equal(part[2].kind, SCAN_ABSENT);
}

static void a_member_that_is_given_twice_is_refused(void **state)
{
	static const char *const names[] = {"url"};
	struct scan_value whole, part;

	(void)state;
	assert_int_equal(scan("{\"url\":1,\"u\\u0072l\":2}", &whole), 0);
	assert_int_equal(scan_members(&whole, names, 1, &part), -EINVAL);
	assert_int_equal(scan("[1]", &whole), 0);
	assert_int_equal(scan_members(&whole, names, 1, &part), -EINVAL);
}

static void arrays_are_walked(void **state)
{
	struct scan_value whole, item;
	unsigned n, sum = 0;
	size_t pos = 0;

	(void)state;
	assert_int_equal(scan("[ 1 , 22,333 ]", &whole), 0);
	while (scan_next(&whole, &pos, &item)) {
		assert_int_equal(scan_number(&item, &n), 0);
		sum += n;
	}
	assert_int_equal(sum, 356);
	pos = 0;
	assert_int_equal(scan("[ ]", &whole), 0);
	assert_false(scan_next(&whole, &pos, &item));
}

static void strings_are_decoded_within_bounds(void **state)
{
	struct scan_value v;
	char text[8];

	(void)state;
	assert_int_equal(scan("\"\\ud83d\\ude00\"", &v), 0);
	assert_int_equal(scan_string(&v, text, sizeof(text)), 4);
	assert_string_equal(text, "\xf0\x9f\x98\x80");
	assert_int_equal(scan("\"12345678\"", &v), 0);
	assert_int_equal(scan_string(&v, text, sizeof(text)), -E2BIG);
	assert_int_equal(scan("\"a\\u0000b\"", &v), 0);
	assert_int_equal(scan_string(&v, text, sizeof(text)), -EINVAL);
	assert_int_equal(scan("12", &v), 0);
	assert_int_equal(scan_string(&v, text, sizeof(text)), -EINVAL);
}

static void numbers_are_small_and_whole(void **state)
{
	static const char *const bad[] = {"-1", "1.0", "1e3", "1234567890", "\"1\"", "null"};
	struct scan_value v;
	unsigned n;

	(void)state;
	assert_int_equal(scan("999999999", &v), 0);
	assert_int_equal(scan_number(&v, &n), 0);
	assert_int_equal(n, 999999999);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(scan(bad[i], &v), 0);
		assert_int_equal(scan_number(&v, &n), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(valid_texts_have_a_kind),
		cmocka_unit_test(other_texts_are_refused),
		cmocka_unit_test(depth_is_bounded_without_a_stack),
		cmocka_unit_test(members_are_found_by_what_their_names_mean),
		cmocka_unit_test(a_member_that_is_given_twice_is_refused),
		cmocka_unit_test(arrays_are_walked),
		cmocka_unit_test(strings_are_decoded_within_bounds),
		cmocka_unit_test(numbers_are_small_and_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
