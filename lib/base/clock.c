/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <assert.h>
#include <time.h>

#include "base/str.h"

#define MS_PER_SEC 1000U
/* years have four digits */
#define REAL_MS_MAX 253402300799999ULL

static struct timespec read_clock(clockid_t id)
{
	struct timespec ts = {0};
	int r = clock_gettime(id, &ts);

	assert(r == 0); /* fails only for an unknown clock */
	(void)r;
	return ts;
}

uint64_t clock_us(void)
{
	struct timespec ts = read_clock(CLOCK_MONOTONIC);

	return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000U;
}

uint64_t clock_real_ms(void)
{
	struct timespec ts = read_clock(CLOCK_REALTIME);

	return (uint64_t)ts.tv_sec * MS_PER_SEC + (uint64_t)ts.tv_nsec / 1000000U;
}

static struct tm break_down_utc(uint64_t *real_ms)
{
	struct tm tm = {0};
	time_t sec;

	if (*real_ms > REAL_MS_MAX)
		*real_ms = REAL_MS_MAX;
	sec = (time_t)(*real_ms / MS_PER_SEC);
	(void)gmtime_r(&sec, &tm); /* fails only for years that do not fit an int */
	return tm;
}

void clock_format_utc(uint64_t real_ms, char *ret_text, size_t size)
{
	struct tm tm = break_down_utc(&real_ms);
	int r = str_format(ret_text, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", tm.tm_year + 1900,
	                   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
	                   (unsigned)(real_ms % MS_PER_SEC));

	assert(r == 0);
	(void)r;
}

void clock_format_day(uint64_t real_ms, char *ret_text, size_t size)
{
	struct tm tm = break_down_utc(&real_ms);
	int r = str_format(ret_text, size, "%04d%02d%02d", tm.tm_year + 1900, tm.tm_mon + 1,
	                   tm.tm_mday);

	assert(r == 0);
	(void)r;
}
