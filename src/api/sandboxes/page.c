/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/json.h"
#include "api/json/query.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "http/status.h"

#define PAGE_SIZE     20
#define PAGE_SIZE_MAX 100
#define OFFSET_MAX    (1u << 30)

int sandboxes_page(const struct http_request *req, struct sandboxes_page *ret_page,
                   struct error *err)
{
	uint64_t size = PAGE_SIZE, offset = 0;

	if (query_u64(req, "page_size", UINT64_MAX, &size, err) < 0 ||
	    query_u64(req, "page_offset", OFFSET_MAX, &offset, err) < 0)
		return -1;
	if (size == 0)
		return error_field(err, "page_size", "must be at least 1");
	/* A larger size is clamped, as clients expect. */
	*ret_page = (struct sandboxes_page){size < PAGE_SIZE_MAX ? size : PAGE_SIZE_MAX, offset};
	return 0;
}

static json_t *view_position(const struct sandboxes_page *page, size_t total)
{
	uint64_t next = page->offset + page->size;
	uint64_t back = page->offset > page->size ? page->offset - page->size : 0;
	json_t *j = json_object();

	json_set(j, "page_size", json_integer((json_int_t)page->size));
	json_set(j, "page_offset", json_integer((json_int_t)page->offset));
	json_set(j, "has_next", json_boolean(next < total));
	json_set(j, "has_prev", json_boolean(page->offset > 0));
	json_set(j, "next_offset", next < total ? json_integer((json_int_t)next) : json_null());
	json_set(j, "prev_offset", page->offset > 0 ? json_integer((json_int_t)back) : json_null());
	return j;
}

json_t *sandboxes_page_object(const struct http_request *req, const struct sandboxes_page *page,
                              json_t *data, size_t total)
{
	json_t *j = json_object();
	struct error err = {0};
	int version = sandboxes_version(http_path(req), http_header(req, "Accept"),
	                                http_header(req, "API-Version"), &err);

	json_set(j, "data", data);
	json_set(j, "pagination", view_position(page, total));
	json_set(j, "total", json_integer((json_int_t)total));
	json_set(j, "timestamp", sandboxes_now());
	/* sandboxes_begin has refused other versions. */
	json_set(j, "version", json_string(version == SANDBOXES_V2 ? "v2" : "v1"));
	return j;
}

void sandboxes_reply_list(struct http_request *req, json_t *items)
{
	struct sandboxes_page page;
	size_t total = json_array_size(items);
	struct error err = {0};
	json_t *data;

	if (sandboxes_page(req, &page, &err) < 0) {
		json_decref(items);
		reply_error(req, &err);
		return;
	}
	data = json_array();
	for (uint64_t i = page.offset; i < total && i - page.offset < page.size; i++)
		(void)!json_array_append(data, json_array_get(items, i));
	json_decref(items);
	reply_json(req, HTTP_OK, sandboxes_page_object(req, &page, data, total));
}
