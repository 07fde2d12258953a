/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: token bucket: an average rate per second, and a burst. Pure. */

#include <stdbool.h>
#include <stdint.h>

/* All zero: full. */
struct bucket {
	uint64_t spent;   /* millionths of a token */
	uint64_t seen_us; /* time of @spent */
};

struct bucket_rate {
	uint64_t per_second; /* at most a billion */
	uint64_t burst;      /* at least 1, at most a billion */
};

/** bucket_take - take a token. Return: 0, or microseconds until there is one. */
uint64_t bucket_take(struct bucket *b, const struct bucket_rate *rate, uint64_t now_us);
/** bucket_is_full - the bucket can be dropped. */
bool bucket_is_full(const struct bucket *b, const struct bucket_rate *rate, uint64_t now_us);
