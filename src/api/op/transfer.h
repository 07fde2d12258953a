/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: files on their way between a client and a box, as large as they like: each side is held back
 * by the other, and what is in between is a window of a few hundred KiB.
 */

#include "base/error.h"
#include "driver/driver.h"
#include <stdbool.h>
#include <stdint.h>

struct http_request;
struct session;

/**
 * transfer_get - the content of @path as the answer: ranges, ETag, Last-Modified, HEAD.
 * @type: its media type; NULL: by its name.
 */
void transfer_get(struct http_request *req, struct session *session, const char *path,
                  const char *type);
/** transfer_get_tar - a directory as an archive. */
void transfer_get_tar(struct http_request *req, struct session *session, const char *path);

/* What comes. Texts are borrowed for the call. */
struct transfer_put {
	struct box_file_request request; /* WRITE or UNTAR */
	/* Answers @req: done, with what is there now (NULL: nothing to tell, as of an archive). */
	void (*on_done)(void *ctx, struct http_request *req, const struct box_file_entry *entry,
	                const struct box_file_summary *summary);
	void (*free)(void *ctx); /* of @ctx, in any case, once; NULL: nothing to free */
	void *ctx;
};
/** transfer_put - the body of the request, as it comes. From on_headers. */
void transfer_put(struct http_request *req, struct session *session,
                  const struct transfer_put *put);

/* A range of a file, as a client may ask for it. */
struct transfer_range {
	bool asked;  /* there is one, and it is one that is served */
	bool suffix; /* the last @last bytes */
	uint64_t first, last;
};
/** transfer_parse_range - "bytes=0-99", "bytes=100-", "bytes=-500": one range; anything else is as
 * good as none. Pure. */
void transfer_parse_range(const char *value, struct transfer_range *ret_range);
