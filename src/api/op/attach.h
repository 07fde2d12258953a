/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a WebSocket to the input and output of a session's execution. */

#include <stdint.h>

struct http_request;
struct principal;
struct router;

struct op_attach {
	const char *execution_id;    /* copied */
	const struct principal *who; /* of the request */
	uint64_t after;              /* number of the last event that the client has */
};

/** op_attach - answer @req with 101, or say how to upgrade. */
void op_attach(struct router *r, struct http_request *req, const struct op_attach *what);
