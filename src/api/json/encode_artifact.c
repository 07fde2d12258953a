/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/encode_artifact.h"

#include "api/json/encode_file.h"
#include "api/json/json.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/run/artifacts.h"
#include "http/media_type.h"
#include <stdio.h>
#include <string.h>

static const char *kind_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	if (str_has_prefix(path, "output/"))
		return "output";
	return str_has_prefix(path, "logs/") || (dot && str_equal(dot, ".log")) ? "log"
	                                                                        : "artifact";
}

static json_t *digest(const struct artifact *a)
{
	char hex[2 * BOX_SHA256_LEN + 1] = "";

	for (size_t i = 0; i < BOX_SHA256_LEN; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", a->sha256[i]);
	return a->hashed ? json_string(hex) : json_null();
}

static json_t *media_type(const char *path)
{
	const char *type = media_type_of(path);

	return json_stringn(type, strcspn(type, ";"));
}

static json_t *view_one(const struct artifact *a, const char *session_id)
{
	cleanup_free char *url = session_id ? encode_file_url(session_id, a->path) : NULL;
	json_t *j = json_object();
	char time[32];

	clock_format_utc(a->changed_ms, time, sizeof(time));
	json_set(j, "path", json_text(a->path, strlen(a->path)));
	json_set(j, "size", json_integer((json_int_t)a->size));
	json_set(j, "mime_type", media_type(a->path));
	json_set(j, "type", json_string(kind_of(a->path)));
	json_set(j, "created_at", json_string(time));
	json_set(j, "sha256", digest(a));
	json_set(j, "checksum", digest(a));
	json_set(j, "download_url", url ? json_string(url) : json_null());
	return j;
}

json_t *encode_artifacts(const struct artifacts *artifacts, const char *session_id)
{
	json_t *list = json_array();

	for (size_t i = 0; i < artifacts->count; i++)
		(void)json_array_append_new(list, view_one(&artifacts->list[i], session_id));
	return list;
}
