/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json_dump.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Theory of operation. The library writes all reals with one number of digits: 15 lose some, and
 * with 17 0.1 becomes 0.10000000000000001. Times and sizes, which most answers have, need no more
 * than 15; a pass over the value finds that out, for much less than it costs to write it. Otherwise
 * the library writes 17, and then each real in the text is replaced by the shortest form that reads
 * back as the same value. No form is longer than the one of 17 digits, so the text shrinks in
 * place. The text is our own, and ends with NUL.
 */

#define DIGITS_LEAST 15 /* every decimal of so many digits survives */
#define DIGITS_EXACT 17
#define FLAGS(d)     (JSON_ENCODE_ANY | JSON_REAL_PRECISION(d))
#define REAL_MAX     40

/* Nine digits before the point and six after it are 15. */
#define SHORT_MAX   1e9
#define SHORT_SCALE 1e6
#define DEPTH_MAX   64

/* The nearest real to a decimal with at most six places. Division is exact to the last bit. */
static bool is_short(double value)
{
	if (!(value > -SHORT_MAX && value < SHORT_MAX))
		return false;
	return (double)(int64_t)(value * SHORT_SCALE + (value < 0 ? -0.5 : 0.5)) / SHORT_SCALE ==
	       value;
}

// NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX bounds it
static bool all_short(const json_t *value, int depth)
{
	const json_t *item;
	const char *key;
	size_t i;

	if (json_is_real(value))
		return is_short(json_real_value(value));
	if (depth > DEPTH_MAX)
		return false;
	json_array_foreach (value, i, item)
		if (!all_short(item, depth + 1))
			return false;
	json_object_foreach ((json_t *)(uintptr_t)value, key, item)
		if (!all_short(item, depth + 1))
			return false;
	return true;
}

/* Length of the string that begins at @at, with its quotes. */
static size_t string_len(const char *at, const char *end)
{
	const char *p = at + 1;

	while (p < end && *p != '"')
		p += *p == '\\' ? 2 : 1;
	return p < end ? (size_t)(p - at) + 1 : (size_t)(end - at);
}

static size_t number_len(const char *at, bool *ret_real)
{
	size_t len = strspn(at, "0123456789+-.eE");

	*ret_real = strcspn(at, ".eE") < len;
	return len;
}

/* "1e+05" as "1e5", as the library writes it. Return: characters removed. */
static size_t trim_exponent(char *text)
{
	char *to = strchr(text, 'e'), *from;

	if (!to)
		return 0;
	to += to[1] == '-' ? 2 : 1;
	from = to + strspn(to, "+0");
	memmove(to, from, strlen(from) + 1);
	return (size_t)(from - to);
}

/* @ret_text: at most as long as the number at @at, which ends with any other character. */
static size_t shorten_real(const char *at, size_t len, char *ret_text)
{
	double value = strtod(at, NULL);
	size_t n = 0;

	for (int digits = DIGITS_LEAST; digits <= DIGITS_EXACT; digits++) {
		n = (size_t)snprintf(ret_text, REAL_MAX, "%.*g", digits, value);
		if (strtod(ret_text, NULL) == value)
			break;
	}
	/* Readers tell reals from integers by it. */
	if (!strpbrk(ret_text, ".e"))
		n += (size_t)snprintf(ret_text + n, REAL_MAX - n, ".0");
	n -= trim_exponent(ret_text);
	/* 12345678901234560.0 is shorter than with an exponent. */
	if (n > len)
		memcpy(ret_text, at, len);
	return n < len ? n : len;
}

/* Return: the new length. */
static size_t shorten_reals(char *text, size_t len)
{
	const char *in = text, *end = text + len;
	char *out = text;

	while (in < end) {
		char real[REAL_MAX];
		bool is_real = false;
		size_t n = *in == '"'                                 ? string_len(in, end)
		           : *in == '-' || (*in >= '0' && *in <= '9') ? number_len(in, &is_real)
		                                                      : 1;
		size_t shorter = is_real && n < REAL_MAX ? shorten_real(in, n, real) : n;

		memmove(out, shorter < n ? real : in, shorter);
		in += n;
		out += shorter;
	}
	*out = '\0';
	return (size_t)(out - text);
}

char *json_dump_text(const json_t *value, size_t flags)
{
	bool exact = !all_short(value, 0);
	char *text = json_dumps(value, flags | FLAGS(exact ? DIGITS_EXACT : DIGITS_LEAST));

	if (text && exact)
		(void)shorten_reals(text, strlen(text));
	return text;
}

static int add_chunk(const char *text, size_t len, void *b)
{
	return buf_add(b, text, len);
}

int json_dump_to(struct buf *b, const json_t *value)
{
	bool exact = !all_short(value, 0);
	size_t start = b->len;
	int r = json_dump_callback(value, add_chunk, b,
	                           JSON_COMPACT | FLAGS(exact ? DIGITS_EXACT : DIGITS_LEAST));

	if (r == 0 && exact && b->data)
		b->len = start + shorten_reals(b->data + start, b->len - start);
	return r;
}

size_t json_dump_size(const json_t *value)
{
	return json_dumpb(value, NULL, 0, JSON_COMPACT | FLAGS(DIGITS_EXACT));
}
