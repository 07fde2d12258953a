/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: file operations whose result fits into memory: listings, metadata, changes, short files. For
 * any size see download.h and upload.h.
 */

#include "api/json/encode_file.h"
#include "base/attr.h"
#include "base/error.h"
#include "driver/driver.h"
#include <stddef.h>
#include <stdint.h>

struct http_request;
struct op_file;
struct session;

/* Borrowed for the call. */
struct op_file_request {
	struct box_file_request request;
	const char *data; /* WRITE: copied */
	size_t len;
	size_t data_max; /* READ: more fails */
	/* From the loop. Not after op_file_cancel. */
	void (*on_end)(void *ctx, const struct file_result *result);
	void *ctx;
};

/** op_file_start - Return: valid until on_end; or NULL with *err. */
struct op_file *op_file_start(struct session *session, const struct op_file_request *request,
                              struct error *err) attr_must_check;
/** op_file_cancel - no callback follows. */
void op_file_cancel(struct op_file *c);

/* Borrowed for the call, except @ctx. */
struct op_file_reply {
	struct box_file_request request;
	const char *data; /* WRITE: copied */
	size_t len;
	size_t data_max; /* READ: more fails */
	/* Not called if the client has left. */
	void (*answer)(void *ctx, struct http_request *req, const struct file_result *result);
	void (*free)(void *ctx); /* once, in any case; NULL: nothing to free */
	void *ctx;
};
void op_file_reply(struct http_request *req, struct session *session,
                   const struct op_file_reply *reply);
