/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a suspended request, answered later. Embed a struct pending in the state of the work. The
 * wait ends once: with pending_resume, or with on_left, when the client has left.
 *
 * The principal is not copied: principals live as long as the identity service.
 */

#include "base/attr.h"

struct http_request;

struct pending {
	struct http_request *req; /* the server's; NULL: the client has left */
	void (*on_left)(struct pending *p);
};

/** pending_wait - @on_left: stop and free the work; NULL: go on without a client. */
void pending_wait(struct pending *p, struct http_request *req, void (*on_left)(struct pending *p));
/** pending_resume - Return: NULL: the client has left. */
struct http_request *pending_resume(struct pending *p);
