/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a file operation that is small enough to be collected before it is answered: listings,
 * metadata, changes of the tree, the beginning of a file, a file that is in memory already. What is
 * as large as it likes goes through transfer.h.
 */

#include "base/buf.h"
#include "base/error.h"
#include "driver/driver.h"

struct http_request;
struct session;

struct file_item {
	enum box_file_type type;
	char *path;   /* owned; below that of the request */
	char *target; /* owned; of a link */
	uint64_t size, mtime_ns, inode;
	uint32_t mode;
};

/* Borrowed for the call. */
struct file_result {
	const struct error *failure; /* NULL: it is done */
	struct box_file_summary summary;
	const struct file_item *items;
	size_t count;
	const char *data; /* of READ */
	size_t len;
};

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
