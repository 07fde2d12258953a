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
 * Theory of operation. Sorting needs all matching sandboxes, at most as many as a tenant may
 * have. Rows have what filters and sorting read; only the page is rendered.
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

struct order {
	const char *name;
	compare_fn *compare;
};

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

static const struct order orders[] = {
	{"created_at", by_created}, {"updated_at", by_updated}, {"name", by_name},
	{"status", by_status},      {"image", by_image},        {"id", by_id},
};

struct sorting {
	const struct order *order; /* NULL: newest first */
	bool descending;
};

static int read_sorting(const struct http_request *req, struct sorting *ret_sorting,
                        struct error *err)
{
	const char *by = http_query(req, "sort_by"), *order = http_query(req, "sort_order");

	*ret_sorting = (struct sorting){.descending = order && str_equal(order, "desc")};
	if (order && !ret_sorting->descending && !str_equal(order, "asc"))
		return error_field(err, "sort_order", "must be asc or desc");
	if (!by)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
		if (str_equal(orders[i].name, by)) {
			ret_sorting->order = &orders[i];
			return 0;
		}
	return error_field(err, "sort_by",
	                   "must be created_at, updated_at, name, status, image or id");
}

/* Equal rows are sorted by id, so that pages are stable. */
static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct sorting *sorting = ctx;
	int r = sorting->order->compare(a, b);

	if (r == 0)
		return by_id(a, b);
	return sorting->descending ? -r : r;
}

static char *copy_note(const json_t *notes, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(notes, key));

	return xstrdup(text ? text : otherwise);
}

static bool matches(const struct http_request *req, const char *filter, const char *text,
                    bool whole)
{
	const char *wanted = http_query(req, filter);

	if (!wanted)
		return true;
	return whole ? str_equal(text, wanted) : strstr(text, wanted) != NULL;
}

static void add_row(struct rows *rows, const struct http_request *req,
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
	if (!matches(req, "filter_status", row.status, true) ||
	    !matches(req, "filter_id", row.id, true) ||
	    !matches(req, "filter_name", row.name, false) ||
	    !matches(req, "filter_image", row.image, false)) {
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
	struct sandboxes_page page;
	struct sorting sorting;
	struct rows rows = {0};
	struct error err = {0};
	const struct session *session;
	json_t *data;

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	if (sandboxes_page(req, &page, &err) < 0 || read_sorting(req, &sorting, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	session = session_at(r->parts.sessions, args->principal->tenant, 0);
	for (; session; session = session_older(session))
		add_row(&rows, req, session);
	if (sorting.order && rows.count > 0)
		qsort_r(rows.all, rows.count, sizeof(*rows.all), compare_rows, &sorting);
	data = json_array();
	for (uint64_t i = page.offset; i < rows.count && i - page.offset < page.size; i++)
		(void)!json_array_append_new(data, sandboxes_view(rows.all[i].session));
	reply_json(req, HTTP_OK, sandboxes_page_object(req, &page, data, rows.count));
	rows_done(&rows);
}
