/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/encode_file.h"

#include "api/json/encode.h"
#include "api/json/json.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define USEC_NS 1000
#define MSEC_NS (1000 * USEC_NS)

static const char *const types[] = {
	[BOX_FILE_REGULAR] = "file",
	[BOX_FILE_DIRECTORY] = "directory",
	[BOX_FILE_LINK] = "link",
	[BOX_FILE_OTHER] = "other",
};
static_assert(ARRAY_SIZE(types) == BOX_FILE_TYPE_COUNT, "every type has a name");

const char *encode_file_type(int type)
{
	return types[type];
}

static char *join(const char *path, const char *below)
{
	size_t size = strlen(path) + strlen(below) + 2;
	char *joined = xmalloc(size);

	(void)snprintf(joined, size, "%s%s%s", path, path[0] && below[0] ? "/" : "", below);
	return joined;
}

static bool is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("-._~/", c);
}

char *encode_file_url(const char *session_id, const char *path)
{
	static const char digits[] = "0123456789ABCDEF";
	cleanup_buf struct buf b = BUF_INIT(64 * 1024);
	int r = buf_addf(&b, "/api/v1/sessions/%s/files/", session_id);

	for (const char *p = path; *p && r == 0; p++) {
		unsigned char c = (unsigned char)*p;
		const char escaped[3] = {'%', digits[c >> 4], digits[c & 15]};

		r = is_plain(c) ? buf_add(&b, p, 1) : buf_add(&b, escaped, sizeof(escaped));
	}
	return buf_take(&b, &(size_t){0});
}

void encode_file_etag(uint64_t inode, uint64_t mtime_ns, uint64_t size,
                      char ret_etag[VIEW_FILE_ETAG_LEN])
{
	(void)snprintf(ret_etag, VIEW_FILE_ETAG_LEN, "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "\"",
	               inode, mtime_ns, size);
}

json_t *encode_file(const char *session_id, const char *path, const struct file_item *item)
{
	cleanup_free char *whole = join(path, item->path);
	cleanup_free char *url = encode_file_url(session_id, whole);
	cleanup_free char *inside = join("/workspace", whole);
	const char *slash = strrchr(whole, '/');
	char time[32], etag[VIEW_FILE_ETAG_LEN], mode[8];
	json_t *j = json_object();

	clock_format_utc(item->mtime_ns / MSEC_NS, time, sizeof(time));
	encode_file_etag(item->inode, item->mtime_ns, item->size, etag);
	(void)snprintf(mode, sizeof(mode), "%04o", item->mode & 07777);
	json_set(j, "name", encode_text(slash ? slash + 1 : whole));
	json_set(j, "path", encode_text(whole));
	json_set(j, "container_path", encode_text(inside));
	json_set(j, "type", json_string(types[item->type]));
	json_set(j, "size", json_integer((json_int_t)item->size));
	json_set(j, "mode", json_string(mode));
	json_set(j, "modified_time", json_string(time));
	json_set(j, "etag", json_string(etag));
	json_set(j, "target",
	         item->type == BOX_FILE_LINK ? encode_text(item->target) : json_null());
	json_set(j, "url", json_string(url));
	return j;
}

json_t *encode_file_list(const char *session_id, const char *path, const struct file_result *result)
{
	json_t *j = json_object(), *files = json_array();
	bool more = result->summary.truncated && result->count > 0;

	for (size_t i = 0; i < result->count; i++)
		json_append(files, encode_file(session_id, path, &result->items[i]));
	json_set(j, "session_id", json_string(session_id));
	json_set(j, "path", encode_text(path));
	json_set(j, "files", files);
	json_set(j, "count", json_integer((json_int_t)result->count));
	json_set(j, "truncated", json_boolean(result->summary.truncated));
	json_set(j, "next",
	         more ? encode_text(result->items[result->count - 1].path) : json_null());
	return j;
}

json_t *encode_file_unpacked(const char *session_id, const char *path,
                             const struct box_file_summary *summary)
{
	json_t *j = json_object();

	json_set(j, "session_id", json_string(session_id));
	json_set(j, "path", encode_text(path));
	json_set(j, "entries", json_integer((json_int_t)summary->entries));
	json_set(j, "bytes", json_integer((json_int_t)summary->bytes));
	return j;
}
