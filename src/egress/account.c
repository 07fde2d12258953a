/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/account.h"

#include "base/clock.h"

#define MILLION 1000000ULL
/* A second's worth may be used at once. */
#define BURST_US USEC_PER_SEC
/* Seconds' worth of new connections that may be opened at once. */
#define OPENED_BURST 10ULL
#define ROOM_MAX     (1u << 30)

bool account_has_connection(const struct account *a)
{
	return a->connections < a->limits.connections;
}

bool account_may_open(struct account *a, uint64_t now_us)
{
	uint64_t rate = a->limits.opened, elapsed = now_us - a->opened_us, paid;

	if (rate == 0)
		return true;
	if (elapsed > OPENED_BURST * USEC_PER_SEC)
		elapsed = OPENED_BURST * USEC_PER_SEC;
	paid = rate * elapsed;
	a->opened = a->opened > paid ? a->opened - paid : 0;
	a->opened_us = now_us;
	return a->opened + MILLION <= rate * OPENED_BURST * MILLION;
}

void account_open(struct account *a)
{
	a->connections++;
	if (a->limits.opened > 0)
		a->opened += MILLION;
}

bool account_is_used_up(const struct account *a)
{
	return a->limits.bytes > 0 && a->bytes >= a->limits.bytes;
}

/* Bytes of the rate that are not used yet. */
static uint64_t rate_room(struct account *a, uint64_t now_us)
{
	uint64_t elapsed = now_us - a->seen_us, burst = a->limits.rate * BURST_US, paid;

	if (elapsed > BURST_US)
		elapsed = BURST_US;
	paid = a->limits.rate * elapsed;
	a->debt = a->debt > paid ? a->debt - paid : 0;
	a->seen_us = now_us;
	return a->debt < burst ? (burst - a->debt) / MILLION : 0;
}

size_t account_room(struct account *a, uint64_t now_us)
{
	uint64_t room = a->limits.rate > 0 ? rate_room(a, now_us) : ROOM_MAX;
	uint64_t left = a->limits.bytes;

	if (left > 0) {
		left = a->bytes < left ? left - a->bytes : 0;
		room = room < left ? room : left;
	}
	return room < ROOM_MAX ? (size_t)room : ROOM_MAX;
}

void account_add(struct account *a, size_t bytes)
{
	a->bytes += bytes;
	if (a->limits.rate > 0)
		a->debt += (uint64_t)bytes * MILLION;
}
