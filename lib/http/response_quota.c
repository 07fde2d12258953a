/* SPDX-License-Identifier: Apache-2.0 */
#include "http/internal.h"

#include "base/clock.h"
#include "base/log.h"

/*
 * Theory of operation. A response stays in memory until its client has read it. Each has a timeout
 * (WAIT_REQUEST), but many slow readers could still fill the memory, so all responses together have
 * a limit. Beyond it a slow reader is cut off, not the newcomer: otherwise slow readers could hold
 * the server.
 *
 * The response with the highest cost, bytes times time, is cut; one that is read promptly has cost
 * little. The response being added is never cut: its handler bounds it.
 */

static uint64_t cost_of(const struct http_request *req, uint64_t now)
{
	uint64_t ms = (now - req->answer_since_us) / USEC_PER_MS;

	return req->answer_bytes * (ms + 1);
}

static struct http_request *find_costliest(const struct http_server *s,
                                           const struct http_request *except)
{
	struct http_request *worst = NULL;
	uint64_t now = clock_us();
	struct http_conn *c;

	LIST_FOREACH (c, &s->conns, struct http_conn, node) {
		struct http_request *req = c->req;

		if (!req || req == except || req->answer_bytes == 0)
			continue;
		if (!worst || cost_of(req, now) > cost_of(worst, now))
			worst = req;
	}
	return worst;
}

/* The connection frees its memory in the next round. */
static void cut_off(struct http_request *req)
{
	log_warn("request %s: %zu bytes of its response were not read in %llu ms and others need "
	         "the room, cutting it off",
	         req->id, req->answer_bytes,
	         (unsigned long long)((clock_us() - req->answer_since_us) / USEC_PER_MS));
	response_quota_drop(req);
	req->cut = true;
	conn_cut(req->conn);
}

void response_quota_set(struct http_request *req, size_t bytes)
{
	struct http_server *s = req->conn->server;
	struct http_request *other;

	if (req->cut)
		return;
	if (req->answer_bytes == 0)
		req->answer_since_us = clock_us();
	s->responses_bytes = s->responses_bytes - req->answer_bytes + bytes;
	req->answer_bytes = bytes;
	while (s->responses_bytes > s->config.max_answers_bytes && (other = find_costliest(s, req)))
		cut_off(other);
}

void response_quota_drop(struct http_request *req)
{
	req->conn->server->responses_bytes -= req->answer_bytes;
	req->answer_bytes = 0;
}
