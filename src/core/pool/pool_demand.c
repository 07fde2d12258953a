/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pool/pool_demand.h"

#include <math.h>
#include <stdbool.h>

#define FILL_WEIGHT 8 /* a new sample counts an eighth */

/* The average now, without a request since. */
static double decayed(const struct pool_demand *d, uint64_t now_us)
{
	uint64_t since = now_us > d->asked_us ? now_us - d->asked_us : 0;

	return d->per_us * exp(-(double)since / (double)POOL_RATE_US);
}

double pool_demand_rate(const struct pool_demand *d, uint64_t now_us)
{
	return decayed(d, now_us);
}

void pool_demand_asked(struct pool_demand *d, bool hit, uint64_t now_us)
{
	/* One impulse of area 1, spread over the time constant. */
	d->per_us = decayed(d, now_us) + 1.0 / (double)POOL_RATE_US;
	d->asked_us = now_us;
	if (hit)
		return;
	d->reserve = d->reserve * 1.5 + 1;
	d->calm_us = now_us;
}

void pool_demand_made(struct pool_demand *d, uint64_t fill_us)
{
	d->fill_us = d->fill_us == 0 ? (double)fill_us
	                             : d->fill_us + ((double)fill_us - d->fill_us) / FILL_WEIGHT;
}

static void calm_down(struct pool_demand *d, uint64_t now_us)
{
	while (d->reserve > 0 && now_us >= d->calm_us + POOL_CALM_US) {
		d->calm_us += POOL_CALM_US;
		d->reserve = d->reserve < 0.5 ? 0 : d->reserve * 0.75;
	}
}

size_t pool_demand_target(struct pool_demand *d, size_t least, size_t max, uint64_t now_us)
{
	double wanted;

	/* More than could ever be had is not remembered: it would take long to calm down. */
	if (d->reserve > (double)max)
		d->reserve = (double)max;
	calm_down(d, now_us);
	wanted = ceil(2 * decayed(d, now_us) * d->fill_us - 0.5) + floor(d->reserve);
	if (wanted < (double)least)
		wanted = (double)least;
	return wanted > (double)max ? max : (size_t)wanted;
}
