/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include <stdint.h>
#include <string.h>

/* Names of commands, options, fields and settings are short. */
#define WORD_MAX 64

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

size_t suggest_distance(const char *a, const char *b)
{
	/* rows[i % 3][j]: distance between i bytes of @a and j of @b */
	size_t rows[3][WORD_MAX + 1];
	size_t a_len = strlen(a), b_len = strlen(b);

	if (a_len > WORD_MAX || b_len > WORD_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_len; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *now = rows[i % 3], *above = rows[(i - 1) % 3], *twice = rows[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			now[j] = min3(above[j] + 1, now[j - 1] + 1,
			              above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = min3(now[j], twice[j - 2] + 1, SIZE_MAX);
		}
	}
	return rows[a_len % 3][b_len];
}

void suggest_offer(struct suggest *s, const char *candidate)
{
	size_t distance = suggest_distance(s->word, candidate);
	size_t allowed = strlen(candidate) < 5 ? 1 : 2;
	/* A prefix of a name counts as distance 0. */
	size_t len = strlen(s->word);

	if (len >= 3 && strncmp(s->word, candidate, len) == 0)
		distance = distance > 0 ? 1 : 0;
	if (distance > allowed || (s->best && distance >= s->distance))
		return;
	s->best = candidate;
	s->distance = distance;
}
