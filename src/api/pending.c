/* SPDX-License-Identifier: Apache-2.0 */
#include "api/pending.h"

#include "http/server.h"
#include <stddef.h>

static void on_gone(void *ctx)
{
	struct pending *p = ctx;

	p->req = NULL;
	if (p->on_left)
		p->on_left(p);
}

void pending_wait(struct pending *p, struct http_request *req, void (*on_left)(struct pending *p))
{
	p->req = req;
	p->on_left = on_left;
	http_set_gone(req, on_gone, p);
}

struct http_request *pending_resume(struct pending *p)
{
	if (p->req)
		http_set_gone(p->req, NULL, NULL);
	return p->req;
}
