/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: files of any size from a box to a client, with back-pressure: a few hundred KiB are
 * buffered.
 */

#include <stdbool.h>
#include <stdint.h>

struct http_request;
struct session;

/** download_file - with ranges, ETag, Last-Modified, HEAD. @type: media type; NULL: by the name. */
void download_file(struct http_request *req, struct session *session, const char *path,
                   const char *type);
/** download_tar - a directory as an archive. */
void download_tar(struct http_request *req, struct session *session, const char *path);

/* As requested. */
struct download_range {
	bool asked;  /* there is a valid one */
	bool suffix; /* the last @last bytes */
	uint64_t first, last;
};
/** download_parse_range - "bytes=0-99", "bytes=100-", "bytes=-500"; ignores anything else. Pure. */
void download_parse_range(const char *value, struct download_range *ret_range);
