/* SPDX-License-Identifier: Apache-2.0 */
#include "http/internal.h"

#include "base/alloc.h"
#include "base/map.h"
#include <errno.h>

/*
 * Theory of operation. Request bodies are collected in memory, with one limit for all. So that no
 * caller blocks others, those with bodies in progress share it, and one below its share is served
 * even if others have used all of it. The total is bounded by the limit plus one share of each
 * later caller: twice the limit for four, nine times for the maximum number of tenants.
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
	/* A single request is always served, up to its route's limit. */
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
