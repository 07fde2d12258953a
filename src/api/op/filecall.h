/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a request of HTTP that is answered with the result of one small file operation (collect.h).
 * What is as large as it likes goes through transfer.h.
 */

#include "api/op/collect.h"

struct http_request;

struct file_call {
	struct box_file_request request;
	const char *data; /* WRITE: copied */
	size_t len;
	size_t data_max; /* READ: bytes at most; more are a failure */
	/* Answers @req. Not called when the client has left. */
	void (*on_over)(void *ctx, struct http_request *req, const struct file_result *result);
	void (*free)(void *ctx); /* of @ctx, in any case, once; NULL: nothing to free */
	void *ctx;
};

/** file_call - the answer is given by @call's function, or here: a refusal. */
void file_call(struct http_request *req, struct session *session, const struct file_call *call);
