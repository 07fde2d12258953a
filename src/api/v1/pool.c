/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/json.h"
#include "api/reply.h"
#include "base/str.h"
#include "core/pool/pool.h"
#include "core/run/run.h"
#include "http/status.h"

#include <inttypes.h>

static json_t *milliseconds(uint64_t us)
{
	return json_real((double)us / 1e3);
}

static json_t *integer(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* The environment may hold a tenant's secrets. */
static json_t *view_limits(const struct box_limits *limits)
{
	json_t *j = json_object();

	json_set(j, "memory_bytes", integer(limits->memory_bytes));
	json_set(j, "disk_bytes", integer(limits->workspace_bytes));
	json_set(j, "cpu", json_real(limits->cpu_millicores / 1e3));
	json_set(j, "processes", integer(limits->pids));
	return j;
}

static json_t *view_pool(const struct pool_info *info)
{
	json_t *j = json_object();
	char key[24];

	(void)snprintf(key, sizeof(key), "%016" PRIx64, info->key);
	json_set(j, "id", json_string(key));
	json_set(j, "language", info->language ? json_string(info->language) : json_null());
	json_set(j, "root", json_string(info->spec->root[0] ? info->spec->root : "host"));
	json_set(j, "prepared", json_boolean(info->prepared));
	json_set(j, "mode",
	         json_string(info->spec->keep || info->resident ? "persistent" : "ephemeral"));
	json_set(j, "limits", view_limits(&info->spec->limits));
	json_set(j, "ready", integer(info->ready));
	json_set(j, "making", integer(info->making));
	json_set(j, "target", integer(info->target));
	json_set(j, "floor", integer(info->floor));
	json_set(j, "memory_bytes", integer(info->memory_bytes));
	json_set(j, "hits", integer(info->hits));
	json_set(j, "misses", integer(info->misses));
	json_set(j, "failures", integer(info->failures));
	json_set(j, "made", integer(info->made));
	json_set(j, "fill_ms", milliseconds(info->fill_us));
	json_set(j, "per_second", json_real(info->per_second));
	json_set(j, "idle_ms", milliseconds(info->idle_us));
	return j;
}

void v1_pool_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct pools *pools = run_service_pools(r->runs);
	json_t *j = json_object(), *list = json_array();
	struct pools_totals totals;
	struct pool_info info;

	(void)args;
	for (size_t i = 0; pools_at(pools, i, &info); i++)
		json_append(list, view_pool(&info));
	pools_totals(pools, &totals);
	json_set(j, "total", json_integer((json_int_t)json_array_size(list)));
	json_set(j, "pools", list);
	json_set(j, "enabled", json_boolean(totals.max > 0));
	json_set(j, "ready", integer(totals.ready));
	json_set(j, "making", integer(totals.making));
	json_set(j, "max", integer(totals.max));
	json_set(j, "memory_bytes", integer(totals.memory_bytes));
	json_set(j, "max_memory_bytes", integer(totals.memory_max));
	json_set(j, "hits", integer(totals.hits));
	json_set(j, "misses", integer(totals.misses));
	reply_json(req, HTTP_OK, j);
}
