/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth.h"
#include "api/internal.h"

#include "base/log.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/observe/metrics.h"
#include "http/status.h"

/*
 * Theory of operation. Requests are counted by path pattern: ids would make a series per session.
 * Those without a route are counted together, under a fixed list of methods: callers choose the
 * words.
 */

#define NO_ROUTE    "none"
#define CLIENT_LEFT "none" /* instead of a status */
#define LINE_LEN    512

static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};

static const char *method_label(const char *method)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (str_equal(methods[i], method))
			return methods[i];
	return "other";
}

static void count_request(struct metrics *m, const struct http_request *req, const char *route,
                          const struct http_done *done)
{
	static const char *const classes[] = {CLIENT_LEFT, "1xx", "2xx", "3xx", "4xx", "5xx"};
	const char *method = method_label(http_method(req));
	enum error_code error = (enum error_code)http_tag(req, REQUEST_TAG_ERROR);
	unsigned class = (unsigned)done->status / 100;
	const char *status = class < ARRAY_SIZE(classes) ? classes[class] : "other";

	metrics_count_for(m, METRIC_HTTP_REQUESTS, METRIC_LABELS(route, method, status), 1);
	metrics_observe_for(m, METRIC_HTTP_DURATION, METRIC_LABELS(route, method),
	                    (double)done->duration_us / 1e6);
	metrics_count(m, METRIC_HTTP_BYTES, (double)done->body_bytes);
	if (error != ERR_NONE)
		metrics_count_for(m, METRIC_REJECTED, METRIC_LABELS(error_text(error)), 1);
	if (error == ERR_UNAUTHENTICATED)
		metrics_count(m, METRIC_AUTH_FAILURES, 1);
	if (done->status >= HTTP_INTERNAL_SERVER_ERROR && done->status != HTTP_SERVICE_UNAVAILABLE)
		metrics_count(m, METRIC_ERRORS, 1);
}

static void log_request(enum log_level level, const struct http_request *req, const char *route,
                        const struct http_done *done)
{
	char line[LINE_LEN];
	enum error_code error = (enum error_code)http_tag(req, REQUEST_TAG_ERROR);
	const struct principal *who = auth_principal(req);

	(void)snprintf(line, sizeof(line),
	               "request_id=%s method=%s route=%s status=%d duration_ms=%.3f bytes=%llu "
	               "complete=%s tenant=%s%s%s%s%s",
	               http_request_id(req), method_label(http_method(req)), route, done->status,
	               (double)done->duration_us / 1e3, (unsigned long long)done->body_bytes,
	               done->complete ? "true" : "false", who->tenant, who->key_id ? " key=" : "",
	               who->key_id ? who->key_id : "", error ? " error=" : "",
	               error ? error_text(error) : "");
	log_ctx(level, line, "request");
}

void access_log_done(void *ctx, const struct http_request *req, const struct http_done *done)
{
	struct router *r = ctx;
	const struct route *found = (const struct route *)http_tag(req, REQUEST_TAG_ROUTE);
	const char *route = found ? found->path : NO_ROUTE;

	count_request(r->parts.metrics, req, route, done);
	audit_request_done(r, req, done);
	if (log_is_on(r->config->log_requests))
		log_request(r->config->log_requests, req, route, done);
	json_decref((json_t *)http_tag(req, REQUEST_TAG_WARNINGS));
}
