/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: query parameters: pages of a list, a status filter, numbers within a range. */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_request;

#define QUERY_LIMIT     50
#define QUERY_LIMIT_MAX 200

struct query_page {
	const char *status; /* borrowed from the request; NULL: all */
	size_t limit, offset;
	/* counted while the list is walked */
	size_t matched;
	json_t *items; /* owned until query_page_object */
};

/** query_page - @words: the @count valid statuses. */
int query_page(const struct http_request *req, const char *const *words, size_t count,
               struct query_page *ret_page, struct error *err) attr_must_check;
/** query_page_begin - index at which to start the walk. */
size_t query_page_begin(struct query_page *page);
/** query_page_is_done - the rest of the list is not needed. */
bool query_page_is_done(const struct query_page *page);
/** query_page_wants - whether the next item, of @status, is on the page. */
bool query_page_wants(struct query_page *page, const char *status);
/** query_page_add - @item is released. */
void query_page_add(struct query_page *page, json_t *item);
/** query_page_object - the items under @name and as `items`, and their place in the whole list of
 * @count. Return: owned. */
json_t *query_page_object(struct query_page *page, const char *name, size_t count) attr_must_check;

/** query_u64 - *ret_value is unchanged if @name is absent. */
int query_u64(const struct http_request *req, const char *name, uint64_t max, uint64_t *ret_value,
              struct error *err) attr_must_check;

struct query_span {
	const char *name;
	uint64_t least_us, most_us;
	const char *range; /* for the error message */
};
/** query_seconds - as query_u64: seconds within the range. */
int query_seconds(const struct http_request *req, const struct query_span *span, uint64_t *ret_us,
                  struct error *err) attr_must_check;
/** query_bool - as query_u64: true, false, 1 or 0. */
int query_bool(const struct http_request *req, const char *name, bool *ret_value,
               struct error *err) attr_must_check;
/** query_mode - "644" or "0644" as permissions. Return: 0 or -1. */
int query_mode(const char *text, uint32_t *ret_mode) attr_must_check;
