/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/query.h"

#include "api/json/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "http/server.h"
#include <errno.h>

/* Longer than any list. */
#define OFFSET_MAX (1u << 30)

int query_u64(const struct http_request *req, const char *name, uint64_t max, uint64_t *ret_value,
              struct error *err)
{
	const char *text = http_query(req, name);
	uint64_t value;

	if (!text)
		return 0;
	if (parse_u64(text, &value) < 0 || value > max)
		return error_field(err, name, "must be a whole number, at most %llu",
		                   (unsigned long long)max);
	*ret_value = value;
	return 0;
}

int query_seconds(const struct http_request *req, const struct query_span *span, uint64_t *ret_us,
                  struct error *err)
{
	const char *text = http_query(req, span->name);
	/* Plain seconds without units, as in bodies. */
	bool plain = text && text[strspn(text, "0123456789.")] == '\0';
	uint64_t us;

	if (!text)
		return 0;
	if (!plain || parse_duration(text, &us) < 0 || us < span->least_us || us > span->most_us)
		return error_field(err, span->name, "must be a number of seconds, %s", span->range);
	*ret_us = us;
	return 0;
}

static int check_status(const char *status, const char *const *words, size_t count,
                        struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (str_equal(status, words[i]))
			return 0;
	return error_field(err, "status", "is not a valid status");
}

/* Values over the maximum are clamped: clients of the control plane rely on it. */
static int read_limit(const struct http_request *req, size_t *ret_limit, struct error *err)
{
	uint64_t limit = QUERY_LIMIT;

	if (query_u64(req, "limit", UINT64_MAX, &limit, err) < 0)
		return -1;
	if (limit == 0)
		return error_field(err, "limit", "must be at least 1");
	*ret_limit = limit < QUERY_LIMIT_MAX ? limit : QUERY_LIMIT_MAX;
	return 0;
}

int query_page(const struct http_request *req, const char *const *words, size_t count,
               struct query_page *ret_page, struct error *err)
{
	struct query_page page = {.status = http_query(req, "status")};
	uint64_t offset = 0;

	if (page.status && check_status(page.status, words, count, err) < 0)
		return -1;
	if (read_limit(req, &page.limit, err) < 0)
		return -1;
	if (query_u64(req, "offset", OFFSET_MAX, &offset, err) < 0)
		return -1;
	page.offset = offset;
	page.items = json_array();
	*ret_page = page;
	return 0;
}

/* Without a status filter, the index in the list is the index among the matches. */
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
	int r = json_array_append_new(page->items, item);

	assert(r == 0);
	(void)r;
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

int query_bool(const struct http_request *req, const char *name, bool *ret_value, struct error *err)
{
	const char *value = http_query(req, name);

	if (!value)
		return 0;
	*ret_value = str_equal(value, "true") || str_equal(value, "1");
	if (*ret_value || str_equal(value, "false") || str_equal(value, "0"))
		return 0;
	return error_field(err, name, "must be true or false");
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
