/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: query parameters. A route's column `query` has their field table (fields.h). Lists have
 * pages and a status filter.
 */

#include "api/json/fields.h"
#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_request;

/**
 * query_decode - @fields: the route's. *out has the defaults of rows without a fallback. Strings
 * live as long as the request.
 */
int query_decode(const struct http_request *req, const struct fields *fields, void *out,
                 struct error *err) attr_must_check;

/* First where a list has further parameters. */
struct query_page {
	const char *status; /* NULL: all */
	uint64_t limit, offset;
	/* counted while the list is walked */
	size_t matched;
	json_t *items; /* owned until query_page_object */
};

/* Longer than any list. */
#define QUERY_OFFSET_MAX (1u << 30)

/* Clients rely on limits being clamped. @list: the valid statuses, NULL-terminated. */
/* clang-format off */
#define QUERY_STATUS_ROW(list) \
	{"status", FIELD_WORD, AT(struct query_page, status), .words = (list), .description = "Only items with this status."}
#define QUERY_PAGE_ROWS \
	{"limit", FIELD_INTEGER, AT(struct query_page, limit), .min = 1, .max = 200, .clamp = true, .fallback = "50", .description = "Values over 200 count as 200."}, \
	{"offset", FIELD_INTEGER, AT(struct query_page, offset), .max = QUERY_OFFSET_MAX, .fallback = "0"}
/* clang-format on */
/* Only these rows. */
#define QUERY_PAGE_FIELDS(list)                                                                    \
	{                                                                                          \
		.rows = (const struct field[])                                                     \
		{                                                                                  \
			QUERY_STATUS_ROW(list), QUERY_PAGE_ROWS, FIELDS_END                        \
		}                                                                                  \
	}

/**
 * query_page - @fields as for query_decode; the caller zeroes @page or the struct that begins with
 * it.
 */
int query_page(const struct http_request *req, const struct fields *fields, struct query_page *page,
               struct error *err) attr_must_check;
/** query_page_begin - where to start the walk. */
size_t query_page_begin(struct query_page *page);
/** query_page_is_done - skip the rest of the list. */
bool query_page_is_done(const struct query_page *page);
/** query_page_wants - the next item, of @status, is on the page. */
bool query_page_wants(struct query_page *page, const char *status);
/** query_page_add - releases @item. */
void query_page_add(struct query_page *page, json_t *item);
/**
 * query_page_object - the items under @name and as `items`, and their place in the list of @count.
 * Return: owned.
 */
json_t *query_page_object(struct query_page *page, const char *name, size_t count) attr_must_check;

/** query_mode - "644" or "0644". Return: 0 or -1. */
int query_mode(const char *text, uint32_t *ret_mode) attr_must_check;
