/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tenant/bucket.h"

/* One token; a rate of one per second yields one unit per microsecond. */
#define TOKEN 1000000ULL

static uint64_t tokens_owed(const struct bucket *b, const struct bucket_rate *rate, uint64_t now_us)
{
	/* The clock may go back. */
	uint64_t passed = now_us > b->seen_us ? now_us - b->seen_us : 0;

	/* Dividing cannot overflow after a long pause. */
	if (b->spent == 0 || passed > b->spent / rate->per_second)
		return 0;
	return b->spent - passed * rate->per_second;
}

uint64_t bucket_take(struct bucket *b, const struct bucket_rate *rate, uint64_t now_us)
{
	uint64_t spent = tokens_owed(b, rate, now_us);
	uint64_t room = rate->burst * TOKEN;

	if (spent + TOKEN > room)
		return (spent + TOKEN - room + rate->per_second - 1) / rate->per_second;
	b->spent = spent + TOKEN;
	b->seen_us = now_us;
	return 0;
}

bool bucket_is_full(const struct bucket *b, const struct bucket_rate *rate, uint64_t now_us)
{
	return tokens_owed(b, rate, now_us) == 0;
}
