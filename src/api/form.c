/* SPDX-License-Identifier: Apache-2.0 */
#include "api/form.h"

#include "base/str.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define BOUNDARY_MAX 70 /* RFC 2046 */
#define HEADERS_MAX  8192

/* The value of @key in "...; key=value; key2="quoted"". Return: false: it is not there, or too
 * long. */
static bool parameter(const char *text, const char *key, char *ret_value, size_t size)
{
	size_t len = strlen(key);
	const char *at = text;

	while ((at = strchr(at, ';'))) {
		size_t n;

		at += 1 + strspn(at + 1, " \t");
		if (strncasecmp(at, key, len) != 0 || at[len] != '=')
			continue;
		at += len + 1;
		n = *at == '"' ? strcspn(++at, "\"") : strcspn(at, "; \t\r\n");
		if (n >= size)
			return false;
		memcpy(ret_value, at, n);
		ret_value[n] = '\0';
		return true;
	}
	return false;
}

static const char *find(const char *at, const char *end, const char *word, size_t len)
{
	return memmem(at, (size_t)(end - at), word, len);
}

/* Of the header of a part, the line that says what it is. */
static bool is_called(const char *headers, const char *name, struct form_part *part)
{
	char found[FORM_NAME_MAX + 1];
	const char *line = headers;

	while (line && strncasecmp(line, "Content-Disposition:", 20) != 0) {
		line = strstr(line, "\r\n");
		if (line)
			line += 2;
	}
	if (!line || !parameter(line, "name", found, sizeof(found)) || !str_equal(found, name))
		return false;
	if (!parameter(line, "filename", part->filename, sizeof(part->filename)))
		part->filename[0] = '\0';
	return true;
}

/* @at is behind the boundary line. Return: its data, up to the next boundary, or NULL. */
static const char *read_part(const char *at, const char *end, const char *mark,
                             struct form_part *part, char headers[HEADERS_MAX])
{
	const char *blank = find(at, end, "\r\n\r\n", 4);
	const char *stop = blank ? find(blank + 2, end, mark, strlen(mark)) : NULL;

	if (!stop || blank - at >= HEADERS_MAX)
		return NULL;
	memcpy(headers, at, (size_t)(blank - at));
	headers[blank - at] = '\0';
	part->data = blank + 4 <= stop ? blank + 4 : stop;
	part->len = (size_t)(stop - part->data);
	return stop;
}

int form_find(const char *content_type, const char *body, size_t len, const char *name,
              struct form_part *ret_part)
{
	char boundary[BOUNDARY_MAX + 1], mark[BOUNDARY_MAX + 8], headers[HEADERS_MAX];
	const char *end = body + len;
	const char *at;

	if (!content_type || strncasecmp(content_type, "multipart/form-data", 19) != 0 ||
	    !parameter(content_type, "boundary", boundary, sizeof(boundary)) || !*boundary)
		return -EINVAL;
	(void)snprintf(mark, sizeof(mark), "\r\n--%s", boundary);
	/* The first one has no line before it. */
	at = find(body, end, mark + 2, strlen(mark) - 2);
	while (at && at < end) {
		at += strlen(mark) - (at == body ? 2 : 0);
		if (end - at >= 2 && memcmp(at, "--", 2) == 0)
			return -ENOENT;
		at = read_part(at, end, mark, ret_part, headers);
		if (at && is_called(headers, name, ret_part))
			return 0;
	}
	return -EINVAL;
}
