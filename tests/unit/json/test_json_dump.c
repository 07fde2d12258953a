/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json_dump.h"

#include "base/alloc.h"
#include "unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void expect(const json_t *value, const char *text)
{
	cleanup_free char *whole = json_dump_text(value, JSON_COMPACT);
	cleanup_buf struct buf b = BUF_INIT(1 << 16);

	assert_string_equal(whole, text);
	assert_int_equal(buf_add_str(&b, "x"), 0);
	assert_int_equal(json_dump_to(&b, value), 0);
	assert_string_equal(b.data + 1, text);
	assert_int_equal(b.len, strlen(text) + 1);
	assert_true(json_dump_size(value) >= strlen(text));
}

static void reals_have_as_few_digits_as_they_need(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{0.1, "0.1"},
		{0.1 + 0.2, "0.30000000000000004"},
		{1.0 / 3, "0.3333333333333333"},
		{2, "2.0"},
		{-0.0, "-0.0"},
		{1e20, "1e20"},
		{1e300, "1e300"},
		{5e-324, "4.94065645841247e-324"},
		{1e-5, "1e-5"},
		{123456789012345680.0, "1.2345678901234568e17"},
		{12345678901234560.0, "12345678901234560.0"},
		{0.504, "0.504"},
		{0.000001, "1e-6"},
		{0.0000001, "1e-7"},
		{999999999.999999, "999999999.999999"},
		{-123456.789012, "-123456.789012"},
		{123456.7890123, "123456.7890123"},
		{1e9, "1000000000.0"},
		{3.141592653589793, "3.141592653589793"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *j = json_real(cases[i].value);
		cleanup_free char *text = json_dump_text(j, 0);

		assert_true(strtod(text, NULL) == cases[i].value);
		assert_string_equal(text, cases[i].text);
		json_decref(j);
	}
}

static void every_real_reads_back_as_itself(void **state)
{
	uint64_t bits = 0x9E3779B97F4A7C15ull;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		cleanup_free char *text = NULL;
		double value;
		json_t *j, *again;

		bits = bits * 6364136223846793005ull + 1442695040888963407ull;
		memcpy(&value, &bits, sizeof(value));
		if (!isfinite(value))
			continue;
		j = json_real(value);
		text = json_dump_text(j, 0);
		again = json_loads(text, JSON_DECODE_ANY, NULL);
		assert_non_null(again);
		assert_true(json_is_real(again));
		assert_true(json_real_value(again) == value);
		json_decref(j);
		json_decref(again);
	}
}

/* Times and sizes take a shorter way than other reals: both must write the same. */
static void decimals_of_six_places_are_written_as_they_are(void **state)
{
	uint64_t bits = 0x9E3779B97F4A7C15ull;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char expected[40];
		double value;
		size_t len;
		json_t *j;

		bits = bits * 6364136223846793005ull + 1442695040888963407ull;
		value = (double)(bits >> (14 + i % 40)) / 1e6;
		len = (size_t)snprintf(expected, sizeof(expected), "%.6f", value);
		if (value >= 1e9 || value < 0.0001)
			continue;
		while (expected[len - 1] == '0' && expected[len - 2] != '.')
			expected[--len] = '\0';
		j = json_real(value);
		expect(j, expected);
		json_decref(j);
	}
}

static void strings_integers_and_layout_stay(void **state)
{
	json_t *j = json_pack("{s:s, s:I, s:f, s:[f, s, b, n], s:s}", "a\"0.10000000000000001",
	                      "\\0.10000000000000001\"", "b", (json_int_t)INT64_MAX, "c", 0.1, "d",
	                      2.5, "1e5", 1, "e", "0.30000000000000004");

	(void)state;
	expect(j, "{\"a\\\"0.10000000000000001\":\"\\\\0.10000000000000001\\\"\",\"b\":"
	          "9223372036854775807,\"c\":0.1,"
	          "\"d\":[2.5,\"1e5\",true,null],\"e\":\"0.30000000000000004\"}");
	json_decref(j);
}

static void a_full_buffer_is_an_error(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(4);
	json_t *j = json_string("longer than that");

	(void)state;
	assert_true(json_dump_to(&b, j) < 0);
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reals_have_as_few_digits_as_they_need),
		cmocka_unit_test(every_real_reads_back_as_itself),
		cmocka_unit_test(decimals_of_six_places_are_written_as_they_are),
		cmocka_unit_test(strings_integers_and_layout_stay),
		cmocka_unit_test(a_full_buffer_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
