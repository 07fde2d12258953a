/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/json.h"
#include "api/json/notes.h"
#include "api/reply.h"
#include "api/tools/tool_internal.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/session/session.h"
#include "http/status.h"
#include <stdlib.h>
#include <string.h>

/*
 * Theory of operation. Sorting needs all matching sandboxes, at most a tenant's limit. Rows have
 * what filters and sorting read; only the page is rendered.
 */

struct row {
	const struct session *session;
	const char *id, *status;
	char *name, *image; /* owned */
	uint64_t created_ms, updated_ms;
};

struct rows {
	struct row *all; /* owned */
	size_t count, room;
};

typedef int compare_fn(const struct row *a, const struct row *b);

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_id(const struct row *a, const struct row *b)
{
	return strcmp(a->id, b->id);
}

static int by_name(const struct row *a, const struct row *b)
{
	return strcmp(a->name, b->name);
}

static int by_image(const struct row *a, const struct row *b)
{
	return strcmp(a->image, b->image);
}

static int by_status(const struct row *a, const struct row *b)
{
	return strcmp(a->status, b->status);
}

static int by_created(const struct row *a, const struct row *b)
{
	return compare_numbers(a->created_ms, b->created_ms);
}

static int by_updated(const struct row *a, const struct row *b)
{
	return compare_numbers(a->updated_ms, b->updated_ms);
}

static const char *const orders[] = {"created_at", "updated_at", "name", "status",
                                     "image",      "id",         NULL};
/* In the order of the names. */
static compare_fn *const comparisons[] = {by_created, by_updated, by_name,
                                          by_status,  by_image,   by_id};
static_assert(ARRAY_SIZE(orders) == ARRAY_SIZE(comparisons) + 1, "each order has its name");

enum direction {
	ASCENDING,
	DESCENDING
};
static const char *const directions[] = {"asc", "desc", NULL};

struct list_query {
	struct sandboxes_page page;
	const char *status, *id, *name, *image; /* filters; NULL: none */
	int order;                              /* index in orders */
	bool sorted;                            /* else newest first */
	enum direction direction;
};

/* clang-format off */
static const struct field query_rows[] = {
	SANDBOXES_PAGE_ROWS,
	{"sort_by", FIELD_ENUM, AT(struct list_query, order), GIVEN(struct list_query, sorted), .words = orders, .description = "By default the newest are first."},
	{"sort_order", FIELD_ENUM, AT(struct list_query, direction), .words = directions, .fallback = "\"asc\""},
	{"filter_status", FIELD_STRING, AT(struct list_query, status), .description = "The status."},
	{"filter_name", FIELD_STRING, AT(struct list_query, name), .description = "A substring of the name."},
	{"filter_image", FIELD_STRING, AT(struct list_query, image), .description = "A substring of the image."},
	{"filter_id", FIELD_STRING, AT(struct list_query, id), .description = "The id."},
	FIELDS_END,
};
/* clang-format on */
const struct fields sandboxes_list_query = {.rows = query_rows};

/* Then by id: stable pages. */
static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct list_query *query = ctx;
	int r = comparisons[query->order](a, b);

	if (r == 0)
		return by_id(a, b);
	return query->direction == DESCENDING ? -r : r;
}

static char *copy_note(const json_t *notes, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(notes, key));

	return xstrdup(text ? text : otherwise);
}

static bool is_wanted(const struct list_query *query, const struct row *row)
{
	return (!query->status || str_equal(row->status, query->status)) &&
	       (!query->id || str_equal(row->id, query->id)) &&
	       (!query->name || strstr(row->name, query->name)) &&
	       (!query->image || strstr(row->image, query->image));
}

static void add_row(struct rows *rows, const struct list_query *query,
                    const struct session *session)
{
	struct session_info info = {0};
	cleanup_json json_t *notes = NULL;
	struct row row;

	session_info(session, &info);
	if (info.state == SESSION_TERMINATED)
		return;
	notes = notes_read(&info);
	row = (struct row){
		.session = session,
		.id = info.id,
		.status = tool_sandbox_status(session),
		.name = copy_note(notes, "name", ""),
		.image = copy_note(notes, "image", info.template_id),
		.created_ms = info.created_ms,
		.updated_ms = info.updated_ms,
	};
	if (!is_wanted(query, &row)) {
		free(row.name);
		free(row.image);
		return;
	}
	if (rows->count == rows->room) {
		rows->room = rows->room ? 2 * rows->room : 16;
		rows->all = xrealloc_array(rows->all, rows->room, sizeof(*rows->all));
	}
	rows->all[rows->count++] = row;
}

static void rows_done(struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		free(rows->all[i].name);
		free(rows->all[i].image);
	}
	free(rows->all);
}

void sandboxes_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct list_query query = {0};
	const struct sandboxes_page *page = &query.page;
	struct rows rows = {0};
	struct error err = {0};
	const struct session *session;
	json_t *data;

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	if (query_decode(req, args->query, &query, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	session = session_at(r->parts.sessions, args->principal->tenant, 0);
	for (; session; session = session_older(session))
		add_row(&rows, &query, session);
	if (query.sorted && rows.count > 0)
		qsort_r(rows.all, rows.count, sizeof(*rows.all), compare_rows, &query);
	data = json_array();
	for (uint64_t i = page->offset; i < rows.count && i - page->offset < page->size; i++)
		(void)!json_array_append_new(data, sandboxes_view(rows.all[i].session));
	reply_json(req, HTTP_OK, sandboxes_page_object(req, page, data, rows.count));
	rows_done(&rows);
}
