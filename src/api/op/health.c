/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/health.h"

#include "api/internal.h"
#include "api/json/json.h"
#include "api/reply.h"
#include "base/clock.h"
#include "core/run/run.h"
#include "core/store/store.h"
#include "http/status.h"

bool health_can_store(const struct router *r)
{
	return !r->parts.store || !store_is_failing(r->parts.store);
}

bool health_can_run(const struct router *r)
{
	struct run_service_stats stats;

	run_service_stats(r->runs, &stats);
	return !stats.draining && !r->unready;
}

bool health_is_ready(const struct router *r)
{
	return health_can_run(r) && health_can_store(r);
}

json_t *health_view(const struct router *r)
{
	json_t *j = json_object();

	json_set(j, "status", json_string(health_is_ready(r) ? "healthy" : "unhealthy"));
	json_set(j, "version", json_string(MILLIBOX_VERSION));
	json_set(j, "uptime", json_real((double)(clock_us() - r->started_us) / USEC_PER_SEC));
	return j;
}

void health_reply(const struct router *r, struct http_request *req)
{
	reply_json(req, health_is_ready(r) ? HTTP_OK : HTTP_SERVICE_UNAVAILABLE, health_view(r));
}
