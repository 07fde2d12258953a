/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/breaker.h"

static bool is_closed(const struct breaker *b)
{
	return b->failures < BREAKER_FAILURES_MAX;
}

bool breaker_allows(struct breaker *b, uint64_t now_us)
{
	if (is_closed(b))
		return true;
	if (b->is_trying || now_us < b->next_us)
		return false;
	b->is_trying = true;
	return true;
}

void breaker_succeeded(struct breaker *b)
{
	*b = (struct breaker){0};
}

void breaker_failed(struct breaker *b, uint64_t now_us)
{
	b->is_trying = false;
	if (b->failures < BREAKER_FAILURES_MAX)
		b->failures++;
	if (is_closed(b))
		return;
	/* Calls that began before it opened fail one by one: they are one failure. */
	if (now_us < b->next_us)
		return;
	b->wait_us = b->wait_us == 0 ? BREAKER_WAIT_US : b->wait_us * 2;
	if (b->wait_us > BREAKER_WAIT_MAX_US)
		b->wait_us = BREAKER_WAIT_MAX_US;
	b->next_us = now_us + b->wait_us;
}

void breaker_abandoned(struct breaker *b)
{
	b->is_trying = false;
}

uint64_t breaker_wait_us(const struct breaker *b, uint64_t now_us)
{
	return is_closed(b) || now_us >= b->next_us ? 0 : b->next_us - now_us;
}
