/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: token bucket: so many per second on average, and a burst at once. The caller brings the
 * clock. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

/* Zero is a full one. */
struct bucket {
	uint64_t spent;   /* millionths of a token that are missing */
	uint64_t seen_us; /* when @spent was true */
};

struct bucket_rate {
	uint64_t per_second; /* at most a billion */
	uint64_t burst;      /* at least 1, at most a billion */
};

/**
 * bucket_take - a token. Return: 0, or in how many microseconds there will be one; then nothing was
 * taken.
 */
uint64_t bucket_take(struct bucket *b, const struct bucket_rate *rate, uint64_t now_us);
/** bucket_is_full - nothing is owed: forgetting it changes nothing. */
bool bucket_is_full(const struct bucket *b, const struct bucket_rate *rate, uint64_t now_us);
