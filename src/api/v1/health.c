/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/auth.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/op/health.h"
#include "api/op/usage.h"
#include "api/reply.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/config/config.h"
#include "core/observe/audit.h"
#include "core/run/run.h"
#include "core/session/session.h"
#include "driver/driver.h"
#include "http/status.h"
#include "wire/layer.h"

/* Why one is away may name parts of the host: GET /api/v1/runtimes has it. */
static json_t *view_engines(const struct router *r)
{
	const struct driver *d;
	json_t *j = json_object();

	for (size_t i = 0; (d = driver_at(run_service_driver(r->runs), i)); i++)
		json_set(j, d->name, json_string(breaker_state_name(d->breaker.state)));
	return j;
}

/* Checks nothing: a busy daemon must not look dead. */
void v1_healthz(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *body = json_object();

	(void)args;
	json_set(body, "status", json_string("ok"));
	if (http_query(req, "verbose"))
		json_set(body, "engines", view_engines(r));
	reply_json(req, HTTP_OK, body);
}

void v1_readyz(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *body = json_object(), *reasons = json_array();
	struct run_service_stats stats;
	struct usage usage = usage_of(r, auth_ask(r, req));
	bool ready;

	(void)args;
	run_service_stats(r->runs, &stats);
	if (stats.draining)
		json_append(reasons, json_string("draining"));
	if (!health_can_store(r))
		json_append(reasons, json_string("store"));
	if (r->unready)
		json_append(reasons, json_string(r->unready));
	ready = json_array_size(reasons) == 0;
	json_set(body, "status", json_string(ready ? "ready" : "unavailable"));
	json_set(body, "reasons", reasons);
	json_set(body, "running", usage_count(&usage, usage.running));
	json_set(body, "queued", usage_count(&usage, usage.queued));
	reply_json(req, ready ? HTTP_OK : HTTP_SERVICE_UNAVAILABLE, body);
}

void v1_root(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *j = health_view(r);

	(void)args;
	json_set(j, "service", json_string("millibox"));
	json_set(j, "name", json_string("Millibox"));
	json_set(j, "description", json_string("Runs untrusted code in isolated boxes"));
	json_set(j, "api", json_string("/api/v1"));
	json_set(j, "health", json_string("/api/v1/health"));
	reply_json(req, HTTP_OK, j);
}

void v1_health(struct router *r, struct http_request *req, const struct route_args *args)
{
	(void)args;
	health_reply(r, req);
}

static json_t *view_part(bool healthy, const char *kind)
{
	json_t *j = json_object();

	json_set(j, "status", json_string(healthy ? "healthy" : "unhealthy"));
	json_set(j, "type", json_string(kind));
	return j;
}

void v1_health_detailed(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct driver *driver = run_service_driver(r->runs);
	json_t *j = health_view(r), *parts = json_object();

	(void)args;
	json_set(parts, "database", view_part(health_can_store(r), "sqlite"));
	/* Workspaces are tmpfs: available whenever boxes are. */
	json_set(parts, "storage", view_part(health_can_run(r), "tmpfs"));
	json_set(parts, "runtime_nodes", view_part(health_can_run(r), driver->name));
	json_set(j, "dependencies", parts);
	json_set(j, "reason", r->unready ? json_string(r->unready) : json_null());
	reply_json(req, health_is_ready(r) ? HTTP_OK : HTTP_SERVICE_UNAVAILABLE, j);
}

/* Other tenants' boxes are private. */
static json_int_t count_boxes(const struct router *r, const char *tenant)
{
	const struct session *session = session_at(r->parts.sessions, tenant, 0);
	json_int_t count = 0;

	for (; session; session = session_older(session)) {
		struct session_info info = {0};

		session_info(session, &info);
		count += info.box_id ? 1 : 0;
	}
	return count;
}

/* A session learns of its box's end by an event: nothing to repair. */
void v1_health_sync(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_int_t boxes = count_boxes(r, args->principal->tenant);
	json_t *j = json_object();

	json_set(j, "status", json_string("completed"));
	json_set(j, "total", json_integer(boxes));
	json_set(j, "healthy", json_integer(boxes));
	json_set(j, "unhealthy", json_integer(0));
	json_set(j, "recovered", json_integer(0));
	json_set(j, "failed", json_integer(0));
	reply_json(req, HTTP_OK, j);
}

/* Boxes report over the agent's connection; no token works here. */
void v1_internal(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct error err = {0};

	(void)r;
	(void)args;
	(void)error_set(&err, ERR_UNAUTHENTICATED, 0,
	                "no token grants access: boxes report over a connection of their own");
	reply_error(req, &err);
}

/* For "millibox status". Only the operator sees paths of the host. */
void v1_daemon(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct driver *driver = run_service_driver(r->runs);
	const char *log = scope_allows(args->principal->scopes, SCOPE_ADMIN) ? log_place() : NULL;
	uint64_t up_us = clock_us() - r->started_us;
	json_t *j = json_object(), *isolation = json_object();

	json_set(isolation, "mode", json_string(config_isolation_name(r->config->isolation)));
	json_set(isolation, "missing", encode_layers(LAYERS_STRICT & ~driver->caps.layers));
	json_set(j, "version", json_string(MILLIBOX_VERSION));
	json_set(j, "ready", json_boolean(health_is_ready(r)));
	json_set(j, "started_at", encode_moment(clock_real_ms() - up_us / USEC_PER_MS));
	json_set(j, "uptime_seconds", json_real((double)up_us / USEC_PER_SEC));
	json_set(j, "isolation", isolation);
	json_set(j, "log", encode_text(log));
	reply_json(req, HTTP_OK, j);
}

/* Only where it is: the daemon must not vouch for its own log. */
void v1_audit(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *j = json_object();

	(void)args;
	json_set(j, "enabled", json_boolean(r->parts.audit));
	json_set(j, "path", r->parts.audit ? encode_text(audit_path(r->parts.audit)) : json_null());
	reply_json(req, HTTP_OK, j);
}
