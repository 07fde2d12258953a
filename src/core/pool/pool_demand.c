/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pool/pool_demand.h"

#include <math.h>
#include <stdbool.h>

#define FILL_WEIGHT 8 /* a new sample counts an eighth */

double pool_demand_rate(const struct pool_demand *d, uint64_t now_us)
{
	uint64_t since = now_us > d->asked_us ? now_us - d->asked_us : 0;

	return d->per_us * exp(-(double)since / (double)POOL_RATE_US);
}

void pool_demand_asked(struct pool_demand *d, bool hit, uint64_t now_us)
{
	/* An impulse of area 1, spread over the time constant. */
	d->per_us = pool_demand_rate(d, now_us) + 1.0 / (double)POOL_RATE_US;
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

size_t pool_demand_target(struct pool_demand *d, size_t least, size_t max, uint64_t now_us)
{
	double wanted;

	/* A larger reserve would take long to shrink. */
	if (d->reserve > (double)max)
		d->reserve = (double)max;
	while (d->reserve > 0 && now_us >= d->calm_us + POOL_CALM_US) {
		d->calm_us += POOL_CALM_US;
		d->reserve = d->reserve < 0.5 ? 0 : d->reserve * 0.75;
	}
	wanted = ceil(2 * pool_demand_rate(d, now_us) * d->fill_us - 0.5) + floor(d->reserve);
	if (wanted < (double)least)
		wanted = (double)least;
	return wanted > (double)max ? max : (size_t)wanted;
}
