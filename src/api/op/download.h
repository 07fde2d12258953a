/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: files from a box to a client, of any size, with back-pressure: a few hundred KiB are
 * buffered.
 */

#include <stdbool.h>
#include <stdint.h>

struct http_request;
struct session;

/** download_file - with ranges, ETag, Last-Modified, HEAD. @type: media type; NULL: by the name. */
void download_file(struct http_request *req, struct session *session, const char *path,
                   const char *type);
/** download_tar - answer with a directory as an archive. */
void download_tar(struct http_request *req, struct session *session, const char *path);

/* A range of a file, as a client requests it. */
struct download_range {
	bool asked;  /* there is a valid one */
	bool suffix; /* the last @last bytes */
	uint64_t first, last;
};
/** download_parse_range - "bytes=0-99", "bytes=100-", "bytes=-500"; anything else is ignored. Pure.
 */
void download_parse_range(const char *value, struct download_range *ret_range);
