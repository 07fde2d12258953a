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

void http_set_payer(struct http_request *req, const char *name)
{
	struct http_server *s = req->conn->server;
	struct http_payer *payer = map_get(s->payers, name);
	int r = 0;

	assert(!req->payer && req->body.len == 0);
	if (!payer) {
		payer = NEW(struct http_payer);
		payer->key = xstrdup(name);
		r = map_put(s->payers, name, payer);
	}
	assert(r == 0);
	(void)r;
	payer->requests++;
	req->payer = payer;
}

void payer_release(struct http_request *req)
{
	struct http_payer *payer = TAKE_PTR(req->payer);

	if (!payer || --payer->requests > 0)
		return;
	(void)map_remove(req->conn->server->payers, payer->key);
	free(payer->key);
	free(payer);
}

int payer_add(struct http_request *req, size_t bytes)
{
	struct http_server *s = req->conn->server;
	struct http_payer *payer = req->payer;
	size_t max = s->config.max_bodies_bytes;

	s->bodies_bytes += bytes;
	if (payer) {
		s->payers_busy += payer->bytes == 0 && bytes > 0;
		payer->bytes += bytes;
	}
	/* One request alone is always served, whatever its route allows. */
	if (s->bodies_bytes <= max || s->bodies_bytes <= req->body.max)
		return 0;
	if (payer && s->payers_busy > 1 && payer->bytes <= max / s->payers_busy)
		return 0;
	return -EBUSY;
}

void payer_drop(struct http_request *req, size_t bytes)
{
	struct http_server *s = req->conn->server;

	s->bodies_bytes -= bytes;
	if (!req->payer || bytes == 0)
		return;
	req->payer->bytes -= bytes;
	s->payers_busy -= req->payer->bytes == 0;
}
