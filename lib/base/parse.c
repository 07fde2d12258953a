/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/str.h"

/* Times the largest unit (an hour) this still fits 64 bits. */
#define FRACTION_DIGITS_MAX 9

struct unit {
	const char *suffix;
	uint64_t factor;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* At least one digit; *text is left at the first other byte. */
static int scan_u64(const char **text, uint64_t *ret_value)
{
	const char *p = *text;
	uint64_t value = 0;

	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p); p++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return -ERANGE;
	}
	*text = p;
	*ret_value = value;
	return 0;
}

int parse_u64(const char *text, uint64_t *ret_value)
{
	uint64_t value;
	int r = scan_u64(&text, &value);

	if (r < 0)
		return r;
	if (*text != '\0')
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int parse_i64(const char *text, int64_t *ret_value)
{
	bool negative = *text == '-';
	uint64_t value;
	int r = parse_u64(text + negative, &value);

	if (r < 0)
		return r;
	if (value > (uint64_t)INT64_MAX + negative)
		return -ERANGE;
	/* Unsigned, because -INT64_MIN does not exist. */
	*ret_value = (int64_t)(negative ? 0 - value : value);
	return 0;
}

static const struct unit *find_unit(const struct unit *units, const char *suffix)
{
	while (units->suffix && !str_equal(units->suffix, suffix))
		units++;
	return units->suffix ? units : NULL;
}

/* ".25" is 25 and 100. Without a point nothing is written. */
static int scan_fraction(const char **text, uint64_t *ret_value, uint64_t *ret_scale)
{
	const char *start = *text + 1;
	int r;

	if (**text != '.')
		return 0;
	*text = start;
	r = scan_u64(text, ret_value);
	if (r < 0 || *text - start > FRACTION_DIGITS_MAX)
		return -EINVAL;
	for (const char *p = start; p < *text; p++)
		*ret_scale *= 10;
	return 0;
}

/* Rejects a value that would need rounding. */
static int parse_scaled(const char *text, const struct unit *units, uint64_t *ret_value)
{
	uint64_t whole, fraction = 0, scale = 1, value;
	const struct unit *unit;
	int r = scan_u64(&text, &whole);

	if (r == 0)
		r = scan_fraction(&text, &fraction, &scale);
	if (r < 0)
		return r;
	unit = find_unit(units, text);
	if (!unit || fraction * unit->factor % scale != 0)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, unit->factor, &value) ||
	    __builtin_add_overflow(value, fraction * unit->factor / scale, &value))
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int parse_size(const char *text, uint64_t *ret_bytes)
{
	static const struct {
		char letter;
		unsigned shift;
	} powers[] = {
		{'k', 10},
		{'m', 20},
		{'g', 30},
		{'t', 40},
	};
	uint64_t value;
	unsigned shift = 0;
	int r = scan_u64(&text, &value);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(powers) && !shift; i++)
		if (*text == powers[i].letter || *text == powers[i].letter - 'a' + 'A')
			shift = powers[i].shift;
	if (shift)
		text++;
	/* "512M", "512Mi", "512MiB" and "512MB" are the same. */
	if (shift && *text == 'i')
		text++;
	if (*text != '\0' && !str_equal(text, "B"))
		return -EINVAL;
	if (value > UINT64_MAX >> shift)
		return -ERANGE;
	*ret_bytes = value << shift;
	return 0;
}

int parse_cpu(const char *text, uint64_t *ret_millicores)
{
	static const struct unit units[] = {
		{"", 1000},
		{"m", 1},
		{NULL, 0},
	};

	return parse_scaled(text, units, ret_millicores);
}

int parse_duration(const char *text, uint64_t *ret_us)
{
	static const struct unit units[] = {
		{"", USEC_PER_SEC}, /* a bare number: seconds */
		{"ms", USEC_PER_MS},        {"s", USEC_PER_SEC}, {"m", 60 * USEC_PER_SEC},
		{"h", 3600 * USEC_PER_SEC}, {NULL, 0},
	};

	return parse_scaled(text, units, ret_us);
}

int parse_bool(const char *text, bool *ret_value)
{
	/* Even positions are true. */
	static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "1", "0"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (str_equal(text, words[i])) {
			*ret_value = i % 2 == 0;
			return 0;
		}
	}
	return -EINVAL;
}

void format_size(uint64_t bytes, char *ret_text, size_t size)
{
	static const struct unit units[] = {
		{"Gi", 1ULL << 30},
		{"Mi", 1ULL << 20},
		{"Ki", 1ULL << 10},
		{"", 1},
	};
	const struct unit *unit = units;
	int r;

	while (bytes == 0 ? unit->factor != 1 : bytes % unit->factor != 0)
		unit++;
	r = str_format(ret_text, size, "%" PRIu64 "%s", bytes / unit->factor, unit->suffix);
	assert(r == 0);
	(void)r;
}

void format_cpu(uint64_t millicores, char *ret_text, size_t size)
{
	unsigned fraction = (unsigned)(millicores % 1000);
	int digits = 3;
	int r;

	for (; digits > 0 && fraction % 10 == 0; digits--)
		fraction /= 10;
	if (digits == 0)
		r = str_format(ret_text, size, "%" PRIu64, millicores / 1000);
	else
		r = str_format(ret_text, size, "%" PRIu64 ".%0*u", millicores / 1000, digits,
		               fraction);
	assert(r == 0);
	(void)r;
}
