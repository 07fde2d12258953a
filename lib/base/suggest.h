/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: "did you mean": the candidate with the smallest edit distance. Pure. */

#include <stddef.h>

struct suggest {
	const char *word;
	const char *best; /* NULL: nothing is close enough */
	size_t distance;
};

/** suggest_distance - insertions, deletions, replacements and swaps of neighbours. */
size_t suggest_distance(const char *a, const char *b);
/** suggest_offer - keep @candidate (borrowed) if it is close and the closest so far. */
void suggest_offer(struct suggest *s, const char *candidate);
