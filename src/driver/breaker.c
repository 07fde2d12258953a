/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/breaker.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/str.h"
#include <assert.h>
#include <stdio.h>

#define FIRST_US  (200 * USEC_PER_MS)
#define MOST_US   (30 * USEC_PER_SEC)
#define STABLE_US (60 * USEC_PER_SEC) /* an engine that worked that long starts afresh */

static const char *const names[] = {
	[BREAKER_CLOSED] = "closed",
	[BREAKER_OPEN] = "open",
	[BREAKER_HALF_OPEN] = "half-open",
};
static_assert(ARRAY_SIZE(names) == BREAKER_STATE_COUNT, "every state has a name");

const char *breaker_state_name(enum breaker_state state)
{
	return names[state];
}

static uint64_t delay_after(unsigned failures)
{
	uint64_t delay = FIRST_US;

	while (--failures > 0 && delay < MOST_US)
		delay *= 2;
	return delay < MOST_US ? delay : MOST_US;
}

uint64_t breaker_open(struct breaker *b, uint64_t now_us, const char *why)
{
	uint64_t delay;

	if (b->state == BREAKER_CLOSED) {
		b->trips++;
		if (b->closed_us && now_us - b->closed_us >= STABLE_US)
			b->failures = 0;
	}
	b->state = BREAKER_OPEN;
	delay = delay_after(++b->failures);
	b->next_us = now_us + delay;
	(void)snprintf(b->why, sizeof(b->why), "%s", why); /* its beginning will do */
	return delay;
}

void breaker_give_up(struct breaker *b, const char *why)
{
	(void)breaker_open(b, 0, why);
	b->next_us = 0;
}

void breaker_try(struct breaker *b)
{
	assert(b->state == BREAKER_OPEN);
	b->state = BREAKER_HALF_OPEN;
	b->next_us = 0;
}

void breaker_close(struct breaker *b, uint64_t now_us)
{
	b->state = BREAKER_CLOSED;
	b->closed_us = now_us;
	b->why[0] = '\0';
}

uint64_t breaker_retry_s(const struct breaker *b, uint64_t now_us)
{
	if (b->state == BREAKER_HALF_OPEN)
		return 1;
	if (b->state == BREAKER_CLOSED || b->next_us == 0)
		return 0;
	return b->next_us > now_us ? (b->next_us - now_us + USEC_PER_SEC - 1) / USEC_PER_SEC : 1;
}

int breaker_check(const struct breaker *b, const char *name, uint64_t now_us, struct error *err)
{
	uint64_t retry_s = breaker_retry_s(b, now_us);

	if (b->state == BREAKER_CLOSED)
		return 0;
	if (b->state == BREAKER_HALF_OPEN)
		(void)error_set(err, ERR_UNAVAILABLE, 0,
		                "engine '%s' is being started again: %.160s", name, b->why);
	else if (retry_s)
		(void)error_set(err, ERR_UNAVAILABLE, 0,
		                "engine '%s' is not available: %.160s; next try in %llu s", name,
		                b->why, (unsigned long long)retry_s);
	else
		(void)error_set(err, ERR_UNAVAILABLE, 0,
		                "engine '%s' is not available until the daemon is restarted: "
		                "%.160s",
		                name, b->why);
	return retry_s ? error_retry(err, retry_s * USEC_PER_SEC) : -1;
}
