/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: files as JSON. Invalid UTF-8 in names is replaced; `url` has the exact bytes.
 */

#include "base/attr.h"
#include "base/error.h"
#include "driver/driver.h"
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct file_item {
	enum box_file_type type;
	char *path;   /* owned; relative to the request's */
	char *target; /* owned; of a link */
	uint64_t size, mtime_ns, inode;
	uint32_t mode;
};

/* Borrowed for the call. */
struct file_result {
	const struct error *failure; /* NULL: success */
	struct box_file_summary summary;
	const struct file_item *items;
	size_t count;
	const char *data; /* of READ */
	size_t len;
};

#define VIEW_FILE_ETAG_LEN 64
/** encode_file_etag - quoted; one per version of a file. */
void encode_file_etag(uint64_t inode, uint64_t mtime_ns, uint64_t size,
                      char ret_etag[VIEW_FILE_ETAG_LEN]);
/** encode_file_url - path in this API, escaped. Return: owned. */
char *encode_file_url(const char *session_id, const char *path) attr_must_check;
const char *encode_file_type(int type);
/** encode_file - @path is the request's; the item's is below it. Return: owned. */
json_t *encode_file(const char *session_id, const char *path,
                    const struct file_item *item) attr_must_check;
json_t *encode_file_list(const char *session_id, const char *path,
                         const struct file_result *result) attr_must_check;
json_t *encode_file_unpacked(const char *session_id, const char *path,
                             const struct box_file_summary *summary) attr_must_check;
