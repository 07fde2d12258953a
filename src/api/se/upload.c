/* SPDX-License-Identifier: Apache-2.0 */
#include "api/se/se.h"

#include "api/json/fields.h"
#include "api/json/json.h"
#include "api/op/file.h"
#include "api/op/upload_form.h"
#include "api/reply.h"
#include <string.h>

/* The name in the query, or else that of the file: known before its first byte. */
static int settle_path(const struct upload_form_names *names, char ret_path[WORKPATH_MAX + 1],
                       struct error *err)
{
	const char *name = names->place[0] ? names->place : names->filename;

	if (workpath_clean(name, WORKPATH_STRIP, "filename", ret_path, err) < 0)
		return -1;
	return ret_path[0] ? 0 : error_field(err, "filename", "is missing");
}

static void answer_upload(struct http_request *req, const char *session_id, const char *path,
                          const struct file_item *item)
{
	json_t *j = json_object();

	(void)session_id;
	json_set(j, "filename", json_text(path, strlen(path)));
	json_set(j, "name", json_text(path, strlen(path)));
	json_set(j, "size", json_integer((json_int_t)item->size));
	se_reply(req, j, NULL);
}

static const struct field query_rows[] = {
	{"filename", FIELD_STRING, AT(struct upload_form_query, place),
         .description = "Of the new file; by default that of the part."},
	FIELDS_END,
};
const struct fields se_upload_query = {.rows = query_rows};

static const struct upload_form_dialect dialect = {
	.place = "filename",
	.settle = settle_path,
	.answer = answer_upload,
};

void se_upload(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct error err = {0};
	struct upload_form *u = upload_form_new(r, req, args, &dialect, &err);
	const struct session *session;

	if (!u) {
		reply_error(req, &err);
		return;
	}
	session = se_session(r, req, args);
	if (session)
		upload_form_begin(u, session);
	else
		upload_form_free(u); /* the request was answered */
}
