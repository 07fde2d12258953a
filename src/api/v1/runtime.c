/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/op/usage.h"
#include "api/reply.h"
#include "base/clock.h"
#include "base/size.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/run/run.h"
#include "driver/driver.h"
#include "http/status.h"
#include "wire/layer.h"
#include <unistd.h>

/* The control plane's runtimes, or nodes, are drivers here; there is one. */

static const struct driver *driver_of(const struct router *r)
{
	return run_service_driver(r->runs);
}

static bool is_healthy(const struct router *r)
{
	struct run_service_stats stats;

	run_service_stats(r->runs, &stats);
	return !stats.draining && !r->unready;
}

static json_t *view_runtime(const struct router *r, const struct principal *p)
{
	struct usage usage = usage_of(r, p);
	const struct driver *d = driver_of(r);
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	json_t *j = json_object();

	json_set(j, "id", json_string(d->ops->name));
	json_set(j, "node_id", json_string(d->ops->name));
	json_set(j, "runtime_id", json_string(d->ops->name));
	json_set(j, "runtime_type", json_string(d->ops->name));
	json_set(j, "hostname", json_string("local"));
	json_set(j, "status", json_string(is_healthy(r) ? "online" : "draining"));
	json_set(j, "total_cpu_cores", json_integer(run_service_cores(r->runs)));
	json_set(j, "total_memory_mb",
	         json_integer((json_int_t)((double)pages * (double)size / (double)MIB)));
	json_set(j, "running_containers", usage_count(&usage, usage.boxes));
	json_set(j, "max_containers", json_integer(d->caps.boxes_max));
	json_set(j, "cached_images", json_array());
	json_set(j, "cgroup", json_string(d->caps.cgroup ? d->caps.cgroup : "none"));
	json_set(j, "ids", json_string(d->caps.ids ? d->caps.ids : "none"));
	json_set(j, "can_pause", json_boolean(d->caps.can_freeze));
	json_set(j, "isolation", json_string(config_isolation_name(r->config->isolation)));
	json_set(j, "layers", encode_layers(d->caps.layers));
	json_set(j, "last_heartbeat_at", encode_moment(clock_real_ms()));
	return j;
}

void v1_runtime_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *j = json_object(), *list = json_array();

	json_append(list, view_runtime(r, args->principal));
	json_set(j, "items", json_incref(list));
	json_set(j, "runtimes", list);
	json_set(j, "total", json_integer(1));
	reply_json(req, HTTP_OK, j);
}

static bool is_known(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct error err = {0};

	if (str_equal(args->id, driver_of(r)->ops->name))
		return true;
	(void)error_set(&err, ERR_NOT_FOUND, 0,
	                "no runtime has this id; GET /api/v1/runtimes lists them");
	reply_error(req, &err);
	return false;
}

void v1_runtime_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	if (is_known(r, req, args))
		reply_json(req, HTTP_OK, view_runtime(r, args->principal));
}

void v1_runtime_health(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *j;

	if (!is_known(r, req, args))
		return;
	j = json_object();
	json_set(j, "runtime_id", json_string(args->id));
	json_set(j, "status", json_string(is_healthy(r) ? "healthy" : "unhealthy"));
	json_set(j, "healthy", json_boolean(is_healthy(r)));
	json_set(j, "reason", r->unready ? json_string(r->unready) : json_null());
	json_set(j, "isolation", json_string(config_isolation_name(r->config->isolation)));
	json_set(j, "layers", encode_layers(driver_of(r)->caps.layers));
	json_set(j, "missing_layers", encode_layers(LAYERS_ALL & ~driver_of(r)->caps.layers));
	reply_json(req, HTTP_OK, j);
}

void v1_runtime_metrics(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct usage usage = usage_of(r, args->principal);
	json_t *j;

	if (!is_known(r, req, args))
		return;
	j = json_object();
	json_set(j, "runtime_id", json_string(args->id));
	json_set(j, "running_containers", usage_count(&usage, usage.boxes));
	json_set(j, "max_containers", json_integer(driver_of(r)->caps.boxes_max));
	json_set(j, "sessions", usage_count(&usage, usage.sessions));
	json_set(j, "running_executions", usage_count(&usage, usage.running));
	json_set(j, "queued_executions", usage_count(&usage, usage.queued));
	json_set(j, "uptime_seconds",
	         json_integer((json_int_t)((clock_us() - r->started_us) / USEC_PER_SEC)));
	reply_json(req, HTTP_OK, j);
}
