/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/reply.h"
#include "base/clock.h"
#include "core/observe/metrics.h"
#include "http/status.h"

#define JSON_TYPE "application/json"

static json_t *whole(double value)
{
	return json_integer((json_int_t)value);
}

/* Names of an older server. Without compression the ratio is 1. */
static void reply_summary(struct http_request *req, const struct metrics *m)
{
	double requests = metrics_total(m, METRIC_HTTP_REQUESTS);
	double seconds = metrics_sum(m, METRIC_HTTP_DURATION);
	json_t *j = json_object();

	json_set(j, "requests_total", whole(requests));
	json_set(j, "average_duration_us", json_real(requests > 0 ? seconds * 1e6 / requests : 0));
	json_set(j, "active_connections", whole(metrics_value(m, METRIC_CONNECTIONS, NULL)));
	json_set(j, "websocket_connections", whole(metrics_value(m, METRIC_WEBSOCKETS, NULL)));
	json_set(j, "errors_total", whole(metrics_total(m, METRIC_ERRORS)));
	json_set(j, "bytes_served", whole(metrics_total(m, METRIC_HTTP_BYTES)));
	json_set(j, "compression_ratio", json_real(1));
	json_set(j, "timestamp", encode_moment(clock_real_ms()));
	reply_json(req, HTTP_OK, j);
}

static void reply_all(struct http_request *req, const struct metrics *m)
{
	cleanup_buf struct buf b = BUF_INIT(METRICS_TEXT_MAX);
	struct http_answer answer = {.status = HTTP_OK, .content_type = METRICS_CONTENT_TYPE};
	struct error err = {0};

	if (metrics_print(m, &b) < 0) {
		(void)error_set(&err, ERR_SYSTEM, 0, "the metrics exceed %u bytes",
		                METRICS_TEXT_MAX);
		reply_error(req, &err);
		return;
	}
	answer.body = buf_take(&b, &answer.len);
	http_reply_owned(req, &answer);
}

void v1_metrics(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *accept = http_header(req, "Accept");

	(void)args;
	metrics_collect(r->parts.metrics);
	if (accept && strstr(accept, JSON_TYPE))
		reply_summary(req, r->parts.metrics);
	else
		reply_all(req, r->parts.metrics);
}
