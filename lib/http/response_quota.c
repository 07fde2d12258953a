/* SPDX-License-Identifier: Apache-2.0 */
#include "http/internal.h"

#include "base/clock.h"
#include "base/log.h"

/*
 * Theory of operation. An answer is in memory until its client has taken it, and how fast that is
 * the client decides. Each has its time (WAIT_REQUEST), but many slow readers at the same time
 * could still fill the memory, so all answers together have a limit. Where it is passed somebody
 * who does not read is cut off, not the one who comes next: to refuse new answers would give the
 * slow readers the server for as long as they like.
 *
 * Who is cut: the answer that has cost most so far, in bytes times time. One that is taken as it
 * comes is soon gone and has cost little, however large it is. The answer that is being added is
 * never the one: a single answer is always served, its size is the handler's to bound.
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

/* Its memory is given back with the connection, at the next turn of the loop. */
static void cut_off(struct http_request *req)
{
	log_warn("request %s: %zu bytes of its answer were not taken in %llu ms and others need "
	         "the room, cut off",
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
