/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/multipart.h"

#include "base/alloc.h"
#include "base/str.h"
#include <string.h>
#include <strings.h>

/*
 * Theory of operation. Content ends at CR LF "--" and the boundary. A possible start of that is
 * held back as a count of matched bytes; if it is content, it is emitted from the delimiter itself.
 * A boundary contains no CR, so after a mismatch a match can only start at the current byte.
 */

enum state {
	STATE_PREAMBLE, /* before the first boundary: dropped */
	STATE_CONTENT,
	STATE_AFTER, /* "--" or the end of the line */
	STATE_HEADERS,
	STATE_END,
};

struct multipart {
	struct multipart_events events;
	enum state state;
	char delimiter[MULTIPART_BOUNDARY_MAX + 5];
	size_t delimiter_len;
	size_t matched; /* matched bytes of the delimiter */
	size_t skip;    /* of those, the previous line's end */
	size_t owed;    /* of those, content: emitted first */
	size_t given;   /* of @owed */
	size_t parts;
	char text[MULTIPART_HEADERS_MAX + 1]; /* headers, or the rest of a boundary line */
	size_t text_len;
};

static int bad(struct error *err, const char *why)
{
	return error_set(err, ERR_INVALID, 0, "the form is not well-formed: %s", why);
}

/* With or without quotes. Return: its length, or -1. */
static ssize_t find_parameter(const char *text, const char *name, char *ret_value, size_t size)
{
	size_t len = strlen(name);

	for (const char *p = strchr(text, ';'); p; p = strchr(p, ';')) {
		p += 1 + strspn(p + 1, " \t");
		if (strncasecmp(p, name, len) != 0 || p[len] != '=')
			continue;
		p += len + 1;
		bool quoted = *p == '"';
		size_t n = 0;
		for (p += quoted; *p && (quoted ? *p != '"' : !strchr("; \t\r\n", *p)); p++) {
			/* Browsers escape the quote; a lone backslash is part of a name. */
			if (quoted && *p == '\\' && p[1] == '"')
				p++;
			if (n + 1 >= size)
				return -1;
			ret_value[n++] = *p;
		}
		ret_value[n] = '\0';
		return quoted && *p != '"' ? -1 : (ssize_t)n;
	}
	return -1;
}

static bool is_boundary(const char *text)
{
	static const char chars[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "'()+_,-./:=? ";

	return text[0] && text[strspn(text, chars)] == '\0' && text[strlen(text) - 1] != ' ';
}

struct multipart *multipart_new(const char *content_type, const struct multipart_events *events,
                                struct error *err)
{
	static const char type[] = "multipart/form-data";
	char boundary[MULTIPART_BOUNDARY_MAX + 1] = "";
	struct multipart *m;

	if (!content_type || strncasecmp(content_type, type, sizeof(type) - 1) != 0 ||
	    find_parameter(content_type, "boundary", boundary, sizeof(boundary)) < 0 ||
	    !is_boundary(boundary)) {
		(void)error_set(err, ERR_BAD_MEDIA, 0,
		                "Content-Type must be multipart/form-data with a boundary");
		return NULL;
	}
	m = NEW(struct multipart);
	m->events = *events;
	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, boundary, strlen(boundary));
	m->delimiter_len = 4 + strlen(boundary);
	m->matched = m->skip = 2; /* the boundary may be at the start */
	return m;
}

void multipart_free(struct multipart *m)
{
	free(m);
}

bool multipart_is_complete(const struct multipart *m)
{
	return m->state == STATE_END;
}

/* Content that looked like a boundary. Return: 1: all of it, 0: not all, or -1. */
static int give_owed(struct multipart *m, struct error *err)
{
	ssize_t n;

	if (m->state == STATE_PREAMBLE)
		m->given = m->owed;
	if (m->given < m->owed) {
		n = m->events.on_data(m->events.ctx, m->delimiter + m->given, m->owed - m->given,
		                      err);
		if (n < 0)
			return -1;
		m->given += (size_t)n;
	}
	if (m->given < m->owed)
		return 0;
	m->owed = m->given = 0;
	return 1;
}

/* Bytes that cannot be part of a boundary. */
static size_t plain_length(const char *data, size_t len)
{
	const char *cr = memchr(data, '\r', len);

	return cr ? (size_t)(cr - data) : len;
}

static ssize_t take_match(struct multipart *m, struct error *err)
{
	if (++m->matched < m->delimiter_len)
		return 1;
	m->matched = m->skip = 0;
	if (m->state == STATE_CONTENT && m->events.on_part_end(m->events.ctx, err) < 0)
		return -1;
	m->state = STATE_AFTER;
	m->text_len = 0;
	return 1;
}

/* Return: bytes used; 0: the consumer is full; -1. */
static ssize_t take_content(struct multipart *m, const char *data, size_t len, struct error *err)
{
	for (;;) {
		int r = give_owed(m, err);
		size_t n = m->matched == 0 ? plain_length(data, len) : 0;

		if (r <= 0)
			return r;
		if (n > 0)
			return m->state == STATE_CONTENT
			               ? m->events.on_data(m->events.ctx, data, n, err)
			               : (ssize_t)n;
		if (*data == m->delimiter[m->matched])
			return take_match(m, err);
		/* Content after all: look at the byte again. */
		m->owed = m->matched;
		m->given = m->skip;
		m->matched = m->skip = 0;
	}
}

/* "--" ends the body; a line end starts a part. */
static int take_after(struct multipart *m, char c, struct error *err)
{
	if (m->text_len > 0 && m->text[0] == '-') {
		if (c != '-')
			return bad(err, "a boundary is not followed by a line");
		m->state = STATE_END;
		return 0;
	}
	if (c == '-' || c == '\r') {
		m->text[0] = c;
		m->text_len = 1;
		return 0;
	}
	if (c == '\n' && m->text_len > 0) {
		m->state = STATE_HEADERS;
		m->text_len = 0;
		return 0;
	}
	return (c == ' ' || c == '\t') && m->text_len == 0
	               ? 0
	               : bad(err, "a boundary is not followed by a line");
}

static const char *find_disposition(const char *headers)
{
	static const char name[] = "Content-Disposition:";

	for (const char *line = headers; line; line = strstr(line, "\r\n")) {
		line += line == headers ? 0 : 2;
		if (strncasecmp(line, name, sizeof(name) - 1) == 0)
			return line + sizeof(name) - 1;
	}
	return NULL;
}

static int begin_part(struct multipart *m, struct error *err)
{
	char name[MULTIPART_NAME_MAX + 1], filename[MULTIPART_NAME_MAX + 1];
	const char *disposition;
	char line[MULTIPART_HEADERS_MAX + 1];
	bool has_filename;

	if (memchr(m->text, '\0', m->text_len))
		return bad(err, "a NUL in the headers of a part");
	m->text[m->text_len] = '\0';
	disposition = find_disposition(m->text);
	if (!disposition)
		return bad(err, "a part without Content-Disposition");
	(void)!str_copy(line, sizeof(line), disposition);
	line[strcspn(line, "\r\n")] = '\0';
	if (strncasecmp(line + strspn(line, " \t"), "form-data", 9) != 0 ||
	    find_parameter(line, "name", name, sizeof(name)) < 0)
		return bad(err, "a part without a name");
	has_filename = find_parameter(line, "filename", filename, sizeof(filename)) >= 0;
	if (++m->parts > MULTIPART_PARTS_MAX)
		return bad(err, "too many parts");
	m->state = STATE_CONTENT;
	/* An empty part: the headers' line end also starts the boundary. */
	m->matched = m->skip = 2;
	return m->events.on_part(m->events.ctx, name, has_filename ? filename : NULL, err);
}

static int take_header(struct multipart *m, char c, struct error *err)
{
	if (m->text_len == MULTIPART_HEADERS_MAX)
		return bad(err, "the headers of a part are too long");
	m->text[m->text_len++] = c;
	if (m->text_len == 2 && memcmp(m->text, "\r\n", 2) == 0)
		return bad(err, "a part without Content-Disposition");
	if (m->text_len >= 4 && memcmp(m->text + m->text_len - 4, "\r\n\r\n", 4) == 0)
		return begin_part(m, err);
	return 0;
}

ssize_t multipart_feed(struct multipart *m, const char *data, size_t len, struct error *err)
{
	size_t used = 0;

	while (used < len) {
		ssize_t n = 1;

		if (m->state == STATE_PREAMBLE || m->state == STATE_CONTENT)
			n = take_content(m, data + used, len - used, err);
		else if (m->state == STATE_AFTER)
			n = take_after(m, data[used], err) < 0 ? -1 : 1;
		else if (m->state == STATE_HEADERS)
			n = take_header(m, data[used], err) < 0 ? -1 : 1;
		else
			n = (ssize_t)(len - used); /* ignore the epilogue */
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}
