/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the body of a request into a box, of any size, with back-pressure. For forms see
 * upload_form.h.
 */

#include "driver/driver.h"

struct http_request;
struct session;

/* Texts are borrowed for the call. */
struct upload_body {
	struct box_file_request request; /* WRITE or UNTAR */
	/* Answers @req after success. @entry: the file; NULL: an archive was unpacked. */
	void (*on_done)(void *ctx, struct http_request *req, const struct box_file_entry *entry,
	                const struct box_file_summary *summary);
	void (*free)(void *ctx); /* in any case, once; NULL: nothing to free */
	void *ctx;
};
/** upload_body - write the body of @req as it arrives. For ROUTE_BODY_STREAM. */
void upload_body(struct http_request *req, struct session *session, const struct upload_body *put);
