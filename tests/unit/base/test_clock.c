/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <time.h>

#include "base/clock.h"

static void monotonic_time_is_in_microseconds(void **state)
{
	struct timespec ts;
	uint64_t before = clock_us();

	(void)state;
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &ts), 0);
	uint64_t middle = (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
	uint64_t after = clock_us();

	assert_true(before <= middle && middle <= after);
}

static void wall_time_is_in_milliseconds(void **state)
{
	uint64_t expected = (uint64_t)time(NULL) * 1000;
	uint64_t now = clock_real_ms();

	(void)state;
	assert_true(now + 1000 >= expected && now < expected + 60000);
}

static void moments_are_written_in_utc(void **state)
{
	char text[32];

	(void)state;
	clock_format_utc(0, text, sizeof(text));
	assert_string_equal(text, "1970-01-01T00:00:00.000Z");
	clock_format_utc(1794716376123ULL, text, sizeof(text));
	assert_string_equal(text, "2026-11-15T04:19:36.123Z");
	clock_format_utc(951782400000ULL, text, sizeof(text));
	assert_string_equal(text, "2000-02-29T00:00:00.000Z");
	clock_format_day(1794716376123ULL, text, sizeof(text));
	assert_string_equal(text, "20261115");
}

static void no_moment_is_too_late_to_be_written(void **state)
{
	char text[25], day[9];

	(void)state;
	clock_format_utc(UINT64_MAX, text, sizeof(text));
	assert_string_equal(text, "9999-12-31T23:59:59.999Z");
	clock_format_day(UINT64_MAX, day, sizeof(day));
	assert_string_equal(day, "99991231");
}

static void format_into_too_little(void *arg)
{
	clock_format_utc(0, arg, 24);
}

static void format_day_into_too_little(void *arg)
{
	clock_format_day(0, arg, 8);
}

static void too_little_room_is_a_bug(void **state)
{
	char text[32];

	(void)state;
	assert_true(unit_aborts(format_into_too_little, text));
	assert_true(unit_aborts(format_day_into_too_little, text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(monotonic_time_is_in_microseconds),
		cmocka_unit_test(wall_time_is_in_milliseconds),
		cmocka_unit_test(moments_are_written_in_utc),
		cmocka_unit_test(no_moment_is_too_late_to_be_written),
		cmocka_unit_test(too_little_room_is_a_bug),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
