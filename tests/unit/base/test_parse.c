/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>

#include "base/attr.h"
#include "base/parse.h"

#define UNTOUCHED 777777777ULL

struct row {
	const char *text;
	int result;
	uint64_t value;
};

static void check(int (*parse)(const char *, uint64_t *), const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = UNTOUCHED;

		if (parse(rows[i].text, &value) != rows[i].result)
			fail_msg("'%s' does not give %d", rows[i].text, rows[i].result);
		if (value != (rows[i].result == 0 ? rows[i].value : UNTOUCHED))
			fail_msg("'%s' gives %ju", rows[i].text, (uintmax_t)value);
	}
}

static void unsigned_numbers_are_digits_only(void **state)
{
	static const struct row rows[] = {
		{"0", 0, 0},
		{"42", 0, 42},
		{"007", 0, 7},
		{"18446744073709551615", 0, UINT64_MAX},
		{"18446744073709551616", -ERANGE, 0},
		{"28446744073709551615", -ERANGE, 0},
		{"184467440737095516150", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"1 ", -EINVAL, 0},
		{"1\n", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
		{"\xD9\xA1", -EINVAL, 0},
	};

	(void)state;
	check(parse_u64, rows, ARRAY_SIZE(rows));
}

static void signed_numbers_have_at_most_a_minus(void **state)
{
	static const struct {
		const char *text;
		int result;
		int64_t value;
	} rows[] = {
		{"0", 0, 0},
		{"-0", 0, 0},
		{"-1", 0, -1},
		{"9223372036854775807", 0, INT64_MAX},
		{"9223372036854775808", -ERANGE, 0},
		{"-9223372036854775808", 0, INT64_MIN},
		{"-9223372036854775809", -ERANGE, 0},
		{"99999999999999999999", -ERANGE, 0},
		{"-", -EINVAL, 0},
		{"--1", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{"- 1", -EINVAL, 0},
		{"", -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int64_t value = 7;

		assert_int_equal(parse_i64(rows[i].text, &value), rows[i].result);
		assert_true(value == (rows[i].result == 0 ? rows[i].value : 7));
	}
}

static void sizes_are_powers_of_1024(void **state)
{
	static const struct row rows[] = {
		{"0", 0, 0},
		{"1048576", 0, 1048576},
		{"64Ki", 0, 64 << 10},
		{"512Mi", 0, 512ULL << 20},
		{"1Gi", 0, 1ULL << 30},
		{"2Ti", 0, 2ULL << 40},
		{"10k", 0, 10 << 10},
		{"10K", 0, 10 << 10},
		{"512m", 0, 512ULL << 20},
		{"512M", 0, 512ULL << 20},
		{"1g", 0, 1ULL << 30},
		{"1G", 0, 1ULL << 30},
		{"1t", 0, 1ULL << 40},
		{"1KiB", 0, 1024},
		{"16777215Ti", 0, 16777215ULL << 40},
		{"16777216Ti", -ERANGE, 0},
		{"18446744073709551616", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"Ki", -EINVAL, 0},
		{"1KB", 0, 1024},
		{"512MB", 0, 512ULL << 20},
		{"1GB", 0, 1ULL << 30},
		{"1B", 0, 1},
		{"1BB", -EINVAL, 0},
		{"1iMB", -EINVAL, 0},
		{"1i", -EINVAL, 0},
		{"1iB", -EINVAL, 0},
		{"1Kib", -EINVAL, 0},
		{"0.5Gi", -EINVAL, 0},
		{"1 Gi", -EINVAL, 0},
		{"1GiB ", -EINVAL, 0},
		{"1Pi", -EINVAL, 0},
		{"-1Gi", -EINVAL, 0},
		{"1kk", -EINVAL, 0},
	};

	(void)state;
	check(parse_size, rows, ARRAY_SIZE(rows));
}

static void cpu_is_in_thousandths(void **state)
{
	static const struct row rows[] = {
		{"1", 0, 1000},
		{"0.5", 0, 500},
		{"500m", 0, 500},
		{"0.001", 0, 1},
		{"2.50", 0, 2500},
		{"0", 0, 0},
		{"0.5000", 0, 500},
		{"0.0005", -EINVAL, 0},
		{"0.5m", -EINVAL, 0},
		{"1.", -EINVAL, 0},
		{".5", -EINVAL, 0},
		{"1.m", -EINVAL, 0},
		{"1..5", -EINVAL, 0},
		{"1,5", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
		{"nan", -EINVAL, 0},
		{"", -EINVAL, 0},
		{"1.5000000000", -EINVAL, 0},
		{"18446744073709551.615", 0, UINT64_MAX},
		{"18446744073709551.616", -ERANGE, 0},
		{"18446744073709552", -ERANGE, 0},
	};

	(void)state;
	check(parse_cpu, rows, ARRAY_SIZE(rows));
}

static void durations_are_in_microseconds(void **state)
{
	static const struct row rows[] = {
		{"30", 0, 30000000},
		{"1.5", 0, 1500000},
		{"500ms", 0, 500000},
		{"30s", 0, 30000000},
		{"5m", 0, 300000000},
		{"1h", 0, 3600000000ULL},
		{"0.5h", 0, 1800000000ULL},
		{"1.5ms", 0, 1500},
		{"0.000001", 0, 1},
		{"0.001ms", 0, 1},
		{"0.0000005", -EINVAL, 0},
		{"0.0001ms", -EINVAL, 0},
		{"1us", -EINVAL, 0},
		{"1d", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"1S", -EINVAL, 0},
		{"1s ", -EINVAL, 0},
		{"inf", -EINVAL, 0},
		{"1.99999999999999999999999", -EINVAL, 0},
		{"5124095576h", 0, 18446744073600000000ULL},
		{"5124095577h", -ERANGE, 0},
		{"18446744073709551616", -ERANGE, 0},
	};

	(void)state;
	check(parse_duration, rows, ARRAY_SIZE(rows));
}

static void booleans_are_a_few_words(void **state)
{
	static const char *const yes[] = {"true", "yes", "on", "1"};
	static const char *const no[] = {"false", "no", "off", "0"};
	static const char *const neither[] = {"", "True", "y", "2", "true ", "enabled"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		bool value = false;

		assert_int_equal(parse_bool(yes[i], &value), 0);
		assert_true(value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		bool value = true;

		assert_int_equal(parse_bool(no[i], &value), 0);
		assert_false(value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(neither); i++) {
		bool value = true;

		assert_int_equal(parse_bool(neither[i], &value), -EINVAL);
		assert_true(value);
	}
}

static void canonical_sizes_use_the_largest_unit_that_divides(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {
		{0, "0"},
		{1, "1"},
		{1000, "1000"},
		{1024, "1Ki"},
		{1025, "1025"},
		{512ULL << 20, "512Mi"},
		{1ULL << 30, "1Gi"},
		{1536ULL << 20, "1536Mi"},
		{2ULL << 40, "2048Gi"},
		{UINT64_MAX, "18446744073709551615"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		format_size(rows[i].bytes, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
}

static void canonical_cpu_has_no_useless_digits(void **state)
{
	static const struct {
		uint64_t millicores;
		const char *text;
	} rows[] = {
		{0, "0"},    {1, "0.001"},   {10, "0.01"},  {500, "0.5"},
		{1000, "1"}, {1050, "1.05"}, {2500, "2.5"}, {UINT64_MAX, "18446744073709551.615"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		format_cpu(rows[i].millicores, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
}

static void format_size_into_too_little(void *arg)
{
	format_size(1000, arg, 4);
}

static void format_cpu_into_too_little(void *arg)
{
	format_cpu(1500, arg, 3);
}

static void too_little_room_is_a_bug(void **state)
{
	char text[8];

	(void)state;
	assert_true(unit_aborts(format_size_into_too_little, text));
	assert_true(unit_aborts(format_cpu_into_too_little, text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unsigned_numbers_are_digits_only),
		cmocka_unit_test(signed_numbers_have_at_most_a_minus),
		cmocka_unit_test(sizes_are_powers_of_1024),
		cmocka_unit_test(cpu_is_in_thousandths),
		cmocka_unit_test(durations_are_in_microseconds),
		cmocka_unit_test(booleans_are_a_few_words),
		cmocka_unit_test(canonical_sizes_use_the_largest_unit_that_divides),
		cmocka_unit_test(canonical_cpu_has_no_useless_digits),
		cmocka_unit_test(too_little_room_is_a_bug),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
