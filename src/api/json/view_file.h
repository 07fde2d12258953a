/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: files as JSON. Names are bytes of a payload's choice: what is no UTF-8 in them is replaced,
 * and `url` has them as they are. */

#include "base/attr.h"
#include <jansson.h>

struct box_file_summary;
struct file_item;
struct file_result;

/** view_file_url - the path of a file in this API, escaped. Return: owned. */
char *view_file_url(const char *session_id, const char *path) attr_must_check;
/** view_file_type - "file", "directory", "link", "other". */
const char *view_file_type(int type);
/** view_file - @path is that of the request, the item's own is below it. Return: owned. */
json_t *view_file(const char *session_id, const char *path,
                  const struct file_item *item) attr_must_check;
json_t *view_file_list(const char *session_id, const char *path,
                       const struct file_result *result) attr_must_check;
json_t *view_file_unpacked(const char *session_id, const char *path,
                           const struct box_file_summary *summary) attr_must_check;
