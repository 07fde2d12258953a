/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */
#define REPLACEMENT_LEN (sizeof(replacement) - 1)

/*
 * Well-formed sequences by their first byte (Unicode standard, table 3-7). The second byte's range
 * excludes overlong forms, surrogates and above U+10FFFF; further bytes are 80..BF.
 */
static const struct {
	uint8_t first_min, first_max, len, second_min, second_max;
} forms[] = {
	{0x00, 0x7F, 1, 0x00, 0x00}, {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
	{0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF},
	{0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

/*
 * Length of the longest valid prefix at @p, at least 1; *ret_whole: that of the complete sequence,
 * 0 if @p cannot start one.
 */
static size_t match_sequence(const uint8_t *p, size_t len, size_t *ret_whole)
{
	size_t row = 0, n = 1;

	*ret_whole = 0;
	while (row < ARRAY_SIZE(forms) &&
	       (p[0] < forms[row].first_min || p[0] > forms[row].first_max))
		row++;
	if (row == ARRAY_SIZE(forms))
		return 1;
	*ret_whole = forms[row].len;
	for (; n < forms[row].len && n < len; n++) {
		uint8_t min = n == 1 ? forms[row].second_min : 0x80;
		uint8_t max = n == 1 ? forms[row].second_max : 0xBF;

		if (p[n] < min || p[n] > max)
			break;
	}
	return n;
}

size_t utf8_next(const char *data, size_t len, bool *ret_valid)
{
	size_t whole;
	size_t n = match_sequence((const uint8_t *)data, len, &whole);

	*ret_valid = n == whole;
	return n;
}

bool utf8_is_valid(const char *data, size_t len)
{
	bool valid = true;

	for (size_t i = 0; i < len && valid;)
		i += utf8_next(data + i, len - i, &valid);
	return valid;
}

static size_t sanitized_len(const char *data, size_t len)
{
	size_t total = 0;

	for (size_t i = 0; i < len;) {
		bool valid;
		size_t n = utf8_next(data + i, len - i, &valid);

		total += valid ? n : REPLACEMENT_LEN;
		i += n;
	}
	return total;
}

char *utf8_sanitize(const char *data, size_t len, size_t *ret_len)
{
	size_t total = sanitized_len(data, len);
	char *copy = xmalloc(total + 1);
	char *out = copy;

	for (size_t i = 0; i < len;) {
		bool valid;
		size_t n = utf8_next(data + i, len - i, &valid);
		size_t add = valid ? n : REPLACEMENT_LEN;

		memcpy(out, valid ? data + i : replacement, add);
		out += add;
		i += n;
	}
	*out = '\0';
	*ret_len = total;
	return copy;
}

size_t utf8_cut(const char *data, size_t len)
{
	/* Only the last three bytes can start an incomplete sequence. */
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		size_t whole;
		size_t n = match_sequence((const uint8_t *)data + len - back, back, &whole);

		if (n == back && whole > back)
			return len - back;
	}
	return len;
}
