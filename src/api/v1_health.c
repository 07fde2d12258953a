/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include "api/json.h"
#include "api/reply.h"
#include "core/exec.h"

/* Alive: the loop turns. Nothing else is asked, so that a busy daemon is not taken for a dead one.
 */
void v1_healthz(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *body = json_object();

	(void)r;
	(void)args;
	json_set(body, "status", json_string("ok"));
	reply_json(req, 200, body);
}

static void add_reason(json_t *reasons, const char *text)
{
	int r = json_array_append_new(reasons, json_string(text));

	assert(r == 0);
	(void)r;
}

void v1_readyz(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *body = json_object(), *reasons = json_array();
	struct exec_service_stats stats;
	bool ready;

	(void)args;
	exec_service_stats(r->execs, &stats);
	if (stats.draining)
		add_reason(reasons, "draining");
	if (r->unready)
		add_reason(reasons, r->unready);
	ready = json_array_size(reasons) == 0;
	json_set(body, "status", json_string(ready ? "ready" : "unavailable"));
	json_set(body, "reasons", reasons);
	json_set(body, "running", json_integer((json_int_t)stats.running));
	json_set(body, "queued", json_integer((json_int_t)stats.queued));
	reply_json(req, ready ? 200 : 503, body);
}
