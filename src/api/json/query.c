/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/query.h"

#include "api/json/json.h"
#include "base/str.h"
#include "http/server.h"
#include <string.h>

static const char *text_of(const void *query, const char *name)
{
	return http_query(query, name);
}

int query_decode(const struct http_request *req, const struct fields *fields, void *out,
                 struct error *err)
{
	assert(fields); /* the route lacks its column */
	return fields_decode_query(fields, text_of, req, out, err);
}

int query_page(const struct http_request *req, const struct fields *fields, struct query_page *page,
               struct error *err)
{
	if (query_decode(req, fields, page, err) < 0)
		return -1;
	page->items = json_array();
	return 0;
}

/* Without a status filter an index in the list is one among the matches. */
size_t query_page_begin(struct query_page *page)
{
	page->matched = page->status ? 0 : page->offset;
	return page->matched;
}

bool query_page_is_done(const struct query_page *page)
{
	return !page->status && json_array_size(page->items) == page->limit;
}

bool query_page_wants(struct query_page *page, const char *status)
{
	size_t at = page->matched;

	if (page->status && !str_equal(page->status, status))
		return false;
	page->matched++;
	return at >= page->offset && at - page->offset < page->limit;
}

void query_page_add(struct query_page *page, json_t *item)
{
	json_append(page->items, item);
}

json_t *query_page_object(struct query_page *page, const char *name, size_t count)
{
	size_t seen = page->offset + json_array_size(page->items);
	size_t total = page->status ? page->matched : count;
	json_t *j = json_object();

	json_set(j, name, json_incref(page->items));
	json_set(j, "items", TAKE_PTR(page->items));
	json_set(j, "total", json_integer((json_int_t)total));
	json_set(j, "limit", json_integer((json_int_t)page->limit));
	json_set(j, "offset", json_integer((json_int_t)page->offset));
	json_set(j, "has_more", json_boolean(seen < total));
	return j;
}

int query_mode(const char *text, uint32_t *ret_mode)
{
	uint32_t mode = 0;
	size_t len = strlen(text);

	if (len < 3 || len > 4 || (len == 4 && text[0] != '0'))
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '7')
			return -1;
		mode = mode << 3 | (uint32_t)(*text - '0');
	}
	*ret_mode = mode;
	return 0;
}
