/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/op/usage.h"
#include "api/reply.h"
#include "base/clock.h"
#include "base/size.h"
#include "core/config/config.h"
#include "core/config/engines.h"
#include "core/run/run.h"
#include "driver/driver.h"
#include "http/status.h"
#include "wire/layer.h"
#include <unistd.h>

/*
 * The control plane's runtimes, or nodes, are the engines of the configuration. What could be
 * configured besides is listed apart, with the command that installs it.
 */

static const struct driver *engine_at(const struct router *r, size_t index)
{
	return driver_at(run_service_driver(r->runs), index);
}

static bool is_healthy(const struct router *r, const struct driver *d)
{
	struct run_service_stats stats;

	run_service_stats(r->runs, &stats);
	return !stats.draining && !r->unready && d->breaker.state == BREAKER_CLOSED;
}

/* In the order of struct driver_caps. */
static json_t *view_features(const struct driver_caps *caps)
{
	const struct {
		const char *name;
		bool has;
	} features[] = {
		{"templates", caps->has_roots},
		{"packages", caps->has_packages},
		{"zygotes", caps->has_zygotes},
		{"allowlist", caps->can_egress},
		{"mcp", caps->can_gateway},
		{"pause", caps->can_freeze},
		{"survival", caps->can_keep},
		{"usage", caps->counts_usage},
		{"bridge", caps->networks & BOX_NETWORK_BIT(BOX_NETWORK_BRIDGE)},
		{"host_network", caps->networks & BOX_NETWORK_BIT(BOX_NETWORK_HOST)},
	};
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(features); i++)
		if (features[i].has)
			json_append(list, json_string(features[i].name));
	return list;
}

static json_t *view_breaker(const struct driver *d)
{
	const struct breaker *b = &d->breaker;
	uint64_t retry_s = breaker_retry_s(b, clock_us());
	json_t *j = json_object();

	json_set(j, "state", json_string(breaker_state_name(b->state)));
	json_set(j, "reason", b->why[0] ? json_string(b->why) : json_null());
	json_set(j, "retry_after", retry_s ? json_integer((json_int_t)retry_s) : json_null());
	json_set(j, "trips", json_integer((json_int_t)b->trips));
	return j;
}

static const char *runtime_of(const struct router *r, const struct driver *d)
{
	const struct config_engine *e = engines_find(r->config, d->name);

	return d->caps.runtime[0] ? d->caps.runtime : e ? e->runtime->name : d->name;
}

/* Shown whenever the engine is away; its reason says whether the program is missing. */
static const char *install_of(const struct router *r, const struct driver *d)
{
	const struct config_engine *e = engines_find(r->config, d->name);

	return d->breaker.state != BREAKER_CLOSED && e && e->runtime->install[0]
	               ? e->runtime->install
	               : NULL;
}

static void set_engine(json_t *j, const struct router *r, const struct driver *d)
{
	bool is_up = d->breaker.state == BREAKER_CLOSED;

	json_set(j, "default", json_boolean(d == run_service_driver(r->runs)));
	json_set(j, "runtime", json_string(runtime_of(r, d)));
	json_set(j, "release", encode_text(d->caps.release[0] ? d->caps.release : NULL));
	json_set(j, "grade", is_up ? json_string(box_grade_name(d->caps.grade)) : json_null());
	json_set(j, "features", view_features(&d->caps));
	json_set(j, "breaker", view_breaker(d));
	json_set(j, "install", encode_text(install_of(r, d)));
}

static json_t *view_runtime(const struct router *r, const struct principal *p,
                            const struct driver *d)
{
	struct usage usage = usage_of(r, p);
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	json_t *j = json_object();

	json_set(j, "id", json_string(d->name));
	json_set(j, "node_id", json_string(d->name));
	json_set(j, "runtime_id", json_string(d->name));
	json_set(j, "runtime_type", json_string(d->name));
	json_set(j, "hostname", json_string("local"));
	json_set(j, "status",
	         json_string(d->breaker.state != BREAKER_CLOSED ? "offline"
	                     : is_healthy(r, d)                 ? "online"
	                                                        : "draining"));
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
	set_engine(j, r, d);
	json_set(j, "last_heartbeat_at", encode_moment(clock_real_ms()));
	return j;
}

static bool is_configured(const struct router *r, const struct engine_runtime *runtime)
{
	struct config_engine *const *e = r->config->engine_list;

	while (e && *e && (*e)->runtime != runtime)
		e++;
	return e && *e;
}

/* Runtimes that no engine uses. */
static json_t *view_others(const struct router *r)
{
	const struct engine_runtime *runtime;
	json_t *list = json_array();

	for (size_t i = 0; (runtime = engine_runtime_at(i)); i++) {
		json_t *j;

		if (is_configured(r, runtime))
			continue;
		j = json_object();
		json_set(j, "runtime", json_string(runtime->name));
		json_set(j, "install", encode_text(runtime->install[0] ? runtime->install : NULL));
		json_append(list, j);
	}
	return list;
}

void v1_runtime_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *j = json_object(), *list = json_array();
	const struct driver *d;

	for (size_t i = 0; (d = engine_at(r, i)); i++)
		json_append(list, view_runtime(r, args->principal, d));
	json_set(j, "items", json_incref(list));
	json_set(j, "runtimes", list);
	json_set(j, "not_configured", view_others(r));
	json_set(j, "total", json_integer((json_int_t)json_array_size(list)));
	reply_json(req, HTTP_OK, j);
}

/* NULL: answered. */
static const struct driver *find_engine(struct router *r, struct http_request *req,
                                        const struct route_args *args)
{
	const struct driver *d =
		args->id[0] ? driver_find(run_service_driver(r->runs), args->id) : NULL;
	struct error err = {0};

	if (d)
		return d;
	(void)error_set(&err, ERR_NOT_FOUND, 0,
	                "no runtime has this id; GET /api/v1/runtimes lists them");
	reply_error(req, &err);
	return NULL;
}

void v1_runtime_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct driver *d = find_engine(r, req, args);

	if (d)
		reply_json(req, HTTP_OK, view_runtime(r, args->principal, d));
}

void v1_runtime_health(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct driver *d = find_engine(r, req, args);
	json_t *j;

	if (!d)
		return;
	j = json_object();
	json_set(j, "runtime_id", json_string(args->id));
	json_set(j, "status", json_string(is_healthy(r, d) ? "healthy" : "unhealthy"));
	json_set(j, "healthy", json_boolean(is_healthy(r, d)));
	json_set(j, "reason",
	         r->unready          ? json_string(r->unready)
	         : d->breaker.why[0] ? json_string(d->breaker.why)
	                             : json_null());
	json_set(j, "isolation", json_string(config_isolation_name(r->config->isolation)));
	json_set(j, "layers", encode_layers(d->caps.layers));
	json_set(j, "missing_layers", encode_layers(LAYERS_ALL & ~d->caps.layers));
	json_set(j, "breaker", view_breaker(d));
	reply_json(req, HTTP_OK, j);
}

void v1_runtime_metrics(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct usage usage = usage_of(r, args->principal);
	const struct driver *d = find_engine(r, req, args);
	json_t *j;

	if (!d)
		return;
	j = json_object();
	json_set(j, "runtime_id", json_string(args->id));
	json_set(j, "running_containers", usage_count(&usage, usage.boxes));
	json_set(j, "max_containers", json_integer(d->caps.boxes_max));
	json_set(j, "sessions", usage_count(&usage, usage.sessions));
	json_set(j, "running_executions", usage_count(&usage, usage.running));
	json_set(j, "queued_executions", usage_count(&usage, usage.queued));
	json_set(j, "uptime_seconds",
	         json_integer((json_int_t)((clock_us() - r->started_us) / USEC_PER_SEC)));
	reply_json(req, HTTP_OK, j);
}
