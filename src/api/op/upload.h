/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a request body of any size into a box, with back-pressure. Forms: upload_form.h. */

#include "driver/driver.h"

struct http_request;
struct session;

/* Texts are borrowed for the call. */
struct upload_body {
	struct box_file_request request; /* WRITE or UNTAR */
	/* After success. @entry: the file; NULL: an archive was unpacked. */
	void (*on_done)(void *ctx, struct http_request *req, const struct box_file_entry *entry,
	                const struct box_file_summary *summary);
	void (*free)(void *ctx); /* once, in any case; NULL: nothing to free */
	void *ctx;
};
/** upload_body - write it as it arrives. For ROUTE_BODY_STREAM. */
void upload_body(struct http_request *req, struct session *session, const struct upload_body *put);
