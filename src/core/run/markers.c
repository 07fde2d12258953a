/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/markers.h"

#include "base/alloc.h"
#include "base/attr.h"
#include <string.h>

#define COMMON "===SANDBOX_"

static const struct {
	const char *begin, *end;
} pairs[] = {
	{COMMON "RESULT===", COMMON "RESULT_END==="},
	{COMMON "ERROR===", COMMON "ERROR_END==="},
};

static const char *find_word(const char *at, const char *end, const char *word)
{
	return memmem(at, (size_t)(end - at), word, strlen(word));
}

/* After @mark and its line end. */
static const char *skip_line(const char *at, const char *end, const char *mark)
{
	at += strlen(mark);
	return at < end && *at == '\n' ? at + 1 : at;
}

/* @at: COMMON was found. Return: where output continues. */
static const char *skip_section(const char *at, const char *end)
{
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		const char *begin = pairs[i].begin;
		const char *close;

		if (find_word(at, end, begin) != at)
			continue;
		close = find_word(at, end, pairs[i].end);
		return close ? skip_line(close, end, pairs[i].end) : skip_line(at, end, begin);
	}
	return NULL;
}

char *markers_strip(const char *text, size_t len, size_t *ret_len)
{
	const char *end = text + len;
	const char *mark = len ? find_word(text, end, COMMON) : NULL;
	char *out;
	size_t n = 0;

	if (!mark)
		return NULL;
	out = xmemdup0(text, len);
	for (const char *at = text; at < end; mark = find_word(at, end, COMMON)) {
		const char *stop = mark ? mark : end;
		const char *next = mark ? skip_section(mark, end) : end;

		/* The letters alone are not a marker. */
		if (!next)
			next = stop += strlen(COMMON);
		memcpy(out + n, at, (size_t)(stop - at));
		n += (size_t)(stop - at);
		at = next;
	}
	out[n] = '\0';
	*ret_len = n;
	return out;
}
