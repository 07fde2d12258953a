/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/json.h"
#include "api/reply.h"
#include "http/status.h"

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

void sandboxes_reply_list(struct http_request *req, const struct sandboxes_page *page,
                          json_t *items)
{
	size_t total = json_array_size(items);
	json_t *data = json_array();

	for (uint64_t i = page->offset; i < total && i - page->offset < page->size; i++)
		(void)!json_array_append(data, json_array_get(items, i));
	json_decref(items);
	reply_json(req, HTTP_OK, sandboxes_page_object(req, page, data, total));
}
