/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/sandbox_uri.h"

#include "base/alloc.h"
#include "base/id.h"
#include "base/str.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ESCAPED_MAX (3 * WORKPATH_MAX)

static const struct {
	const char *prefix;
	bool has_path; /* a path follows the id */
} schemes[] = {
	[SANDBOX_URI_IS_FILE] = {SANDBOX_URI_FILE, true},
	[SANDBOX_URI_IS_EXECUTION] = {SANDBOX_URI_EXECUTION, true},
	[SANDBOX_URI_IS_LOG] = {SANDBOX_URI_LOG, false},
	[SANDBOX_URI_IS_TEMPLATE] = {SANDBOX_URI_TEMPLATE, false},
	[SANDBOX_URI_IS_POLICY] = {SANDBOX_URI_POLICY, false},
};
static_assert(ARRAY_SIZE(schemes) == SANDBOX_URI_KIND_COUNT, "every kind has its scheme");

static bool is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~/", c));
}

char *sandbox_uri_file(const char *session_id, const char *path)
{
	size_t used = strlen(SANDBOX_URI_FILE) + strlen(session_id) + 1;
	char *uri = xmalloc(used + 3 * strlen(path) + 1);

	(void)snprintf(uri, used + 1, SANDBOX_URI_FILE "%s/", session_id);
	for (; *path; path++) {
		if (is_plain((unsigned char)*path))
			uri[used++] = *path;
		else
			used += (size_t)snprintf(uri + used, 4, "%%%02X", (unsigned char)*path);
	}
	uri[used] = '\0';
	return uri;
}

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Return: 0, or -1: a bad escape, a NUL, or too long. */
static int unescape(const char *text, char ret_path[ESCAPED_MAX + 1])
{
	size_t used = 0;

	for (; *text; text++) {
		int high, low;

		if (used == ESCAPED_MAX)
			return -1;
		if (*text != '%') {
			ret_path[used++] = *text;
			continue;
		}
		high = digit(text[1]);
		low = high >= 0 ? digit(text[2]) : -1;
		if (low < 0 || (high == 0 && low == 0))
			return -1;
		ret_path[used++] = (char)(high << 4 | low);
		text += 2;
	}
	ret_path[used] = '\0';
	return 0;
}

int sandbox_uri_read(const char *uri, struct sandbox_uri *ret_uri)
{
	struct error ignored = {0};
	char path[ESCAPED_MAX + 1];
	const char *rest = NULL;
	size_t len;

	for (int i = 0; i < SANDBOX_URI_KIND_COUNT && !rest; i++)
		if (str_has_prefix(uri, schemes[i].prefix)) {
			ret_uri->kind = (enum sandbox_uri_kind)i;
			rest = uri + strlen(schemes[i].prefix);
		}
	if (!rest)
		return -1;
	len = strcspn(rest, "/");
	if (len == 0 || len > SANDBOX_URI_ID_MAX || (rest[len] && !schemes[ret_uri->kind].has_path))
		return -1;
	memcpy(ret_uri->id, rest, len);
	ret_uri->id[len] = '\0';
	if (!id_is_valid(ret_uri->id, SANDBOX_URI_ID_MAX) || unescape(rest + len, path) < 0)
		return -1;
	/* The first slash only separates: in a URI, "/workspace/a" is a in a folder of that name.
	 */
	return workpath_clean(path + (path[0] == '/'), WORKPATH_RELATIVE, "uri", ret_uri->path,
	                      &ignored);
}
