/* SPDX-License-Identifier: Apache-2.0 */
#include "http/internal.h"

#include "base/alloc.h"
#include "base/map.h"
#include <errno.h>

/*
 * Theory of operation. Bodies are collected in memory, and all of them together have one bound. Who
 * fills it must not close the door for others: as many as have bodies under way share the bound,
 * and who has less than its share is served even where the others have taken all. So the whole is
 * bounded by the bound and, beyond it, one share of each who came later: twice the bound for four
 * of them, and nine times for the most tenants that there can be.
 */

void http_set_body_quota(struct http_request *req, const char *name)
{
	struct http_server *s = req->conn->server;
	struct body_quota *quota = map_get(s->body_quotas, name);
	int r = 0;

	assert(!req->quota && req->body.len == 0);
	if (!quota) {
		quota = NEW(struct body_quota);
		quota->key = xstrdup(name);
		r = map_put(s->body_quotas, name, quota);
	}
	assert(r == 0);
	(void)r;
	quota->requests++;
	req->quota = quota;
}

void body_quota_release(struct http_request *req)
{
	struct body_quota *quota = TAKE_PTR(req->quota);

	if (!quota || --quota->requests > 0)
		return;
	(void)map_remove(req->conn->server->body_quotas, quota->key);
	free(quota->key);
	free(quota);
}

int body_quota_add(struct http_request *req, size_t bytes)
{
	struct http_server *s = req->conn->server;
	struct body_quota *quota = req->quota;
	size_t max = s->config.max_bodies_bytes;

	s->bodies_bytes += bytes;
	if (quota) {
		s->body_quotas_busy += quota->bytes == 0 && bytes > 0;
		quota->bytes += bytes;
	}
	/* One request alone is always served, whatever its route allows. */
	if (s->bodies_bytes <= max || s->bodies_bytes <= req->body.max)
		return 0;
	if (quota && s->body_quotas_busy > 1 && quota->bytes <= max / s->body_quotas_busy)
		return 0;
	return -EBUSY;
}

void body_quota_drop(struct http_request *req, size_t bytes)
{
	struct http_server *s = req->conn->server;

	s->bodies_bytes -= bytes;
	if (!req->quota || bytes == 0)
		return;
	req->quota->bytes -= bytes;
	s->body_quotas_busy -= req->quota->bytes == 0;
}
