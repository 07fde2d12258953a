/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/encode_file.h"
#include "api/json/fields.h"
#include "api/json/json.h"
#include "api/json/multipart.h"
#include "api/lookup.h"
#include "api/op/upload_form.h"
#include "api/reply.h"
#include "http/status.h"
#include <stdio.h>
#include <string.h>

/* The given path; if empty or with a final slash, the file's name below it. */
static int settle_path(const struct upload_form_names *names, char ret_path[WORKPATH_MAX + 1],
                       struct error *err)
{
	char joined[WORKPATH_MAX + MULTIPART_NAME_MAX + 2];
	const char *slash = strrchr(names->filename, '/');
	size_t len = strlen(names->place);
	bool is_dir = len == 0 || names->place[len - 1] == '/';
	/* A client may send a path as the name. */
	const char *name = slash ? slash + 1 : names->filename;

	(void)snprintf(joined, sizeof(joined), "%s%s", names->place, is_dir ? name : "");
	if (workpath_clean(joined, WORKPATH_RELATIVE, "path", ret_path, err) < 0)
		return -1;
	if (!ret_path[0])
		return error_field(err, "path", "is required for a file without a name");
	return 0;
}

static void answer_upload(struct http_request *req, const char *session_id, const char *path,
                          const struct file_item *item)
{
	json_t *j = encode_file(session_id, path, item);

	json_set(j, "session_id", json_string(session_id));
	json_set(j, "file_path", json_text(path, strlen(path)));
	reply_json(req, HTTP_OK, j);
}

static const struct field query_rows[] = {
	{"path", FIELD_STRING, AT(struct upload_form_query, place),
         .description = "In the workspace; without a leading slash."},
	FIELDS_END,
};
const struct fields v1_upload_query = {.rows = query_rows};

static const struct upload_form_dialect dialect = {
	.place = "path",
	.field = "path",
	.strict = true,
	.settle = settle_path,
	.answer = answer_upload,
};

void v1_file_upload(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct error err = {0};
	const struct session *session = lookup_session(r, args, &err);
	struct upload_form *u = session ? upload_form_new(r, req, args, &dialect, &err) : NULL;

	if (u)
		upload_form_begin(u, session);
	else
		reply_error(req, &err);
}
