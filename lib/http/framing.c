/* SPDX-License-Identifier: Apache-2.0 */
#include "http/framing.h"

#include "base/attr.h"
#include "base/parse.h"
#include "base/str.h"
#include <string.h>
#include <strings.h>

#define CHUNK_DIGITS_MAX 15

bool framing_is_body(const struct framing *f)
{
	return f->state >= FRAMING_BODY && f->state <= FRAMING_TRAILER;
}

static bool is_token_char(char c)
{
	return c > ' ' && c < 0x7f && !strchr("\"(),/:;<=>?@[\\]{}", c);
}

/* The value of the header line if it is one of @name; NULL: it is another. */
static const char *value_of(const struct framing *f, const char *name)
{
	size_t len = strlen(name);

	if (f->line_len <= len || strncasecmp(f->line, name, len) != 0 || f->line[len] != ':')
		return NULL;
	return f->line + len + 1 + strspn(f->line + len + 1, " \t");
}

static const char *take_length(struct framing *f, const char *value)
{
	if (f->has_length || f->chunked)
		return "the length of the body is specified more than once";
	if (f->line_len >= sizeof(f->line) || parse_u64(value, &f->left) < 0)
		return "Content-Length is not a number";
	f->has_length = true;
	return NULL;
}

static const char *take_coding(struct framing *f, const char *value)
{
	if (f->has_length || f->chunked)
		return "the length of the body is specified more than once";
	if (f->line_len >= sizeof(f->line) || strcasecmp(value, "chunked") != 0)
		return "Transfer-Encoding is not chunked";
	f->chunked = true;
	return NULL;
}

static const char *take_upgrade(struct framing *f, const char *value attr_unused)
{
	f->upgrade = true;
	return NULL;
}

/* Headers that decide what follows the header. */
static const struct {
	const char *name;
	const char *(*take)(struct framing *f, const char *value);
} framing_headers[] = {
	{"Content-Length", take_length},
	{"Transfer-Encoding", take_coding},
	{"Upgrade", take_upgrade},
};

/* The functions below end a line of their state. Return: why it is invalid, or NULL. */

static const char *end_request_line(struct framing *f)
{
	if (f->line_len == 0)
		return NULL;
	f->is_get = str_has_prefix(f->line, "GET ");
	f->has_length = f->chunked = f->upgrade = false;
	f->left = 0;
	f->state = FRAMING_HEADER;
	return NULL;
}

static const char *end_head(struct framing *f)
{
	f->heads++;
	if (f->chunked)
		f->state = FRAMING_CHUNK;
	else if (f->left > 0)
		f->state = FRAMING_BODY;
	else if (f->upgrade && f->is_get && !f->has_length)
		f->state = FRAMING_UPGRADE;
	else
		f->state = FRAMING_REQUEST;
	return NULL;
}

static const char *end_header(struct framing *f)
{
	if (f->line_len == 0)
		return end_head(f);
	if (!f->named)
		return "a header line has no colon";
	for (size_t i = 0; i < ARRAY_SIZE(framing_headers); i++) {
		const char *value = value_of(f, framing_headers[i].name);

		if (value)
			return framing_headers[i].take(f, value);
	}
	return NULL;
}

static int hex_value(char c)
{
	const char *digits = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static const char *end_chunk_line(struct framing *f)
{
	size_t digits = 0;
	const char *rest;

	f->left = 0;
	for (; digits <= CHUNK_DIGITS_MAX && hex_value(f->line[digits]) >= 0; digits++)
		f->left = f->left << 4 | (unsigned)hex_value(f->line[digits]);
	rest = f->line + digits + strspn(f->line + digits, " \t");
	if (digits == 0 || digits > CHUNK_DIGITS_MAX || (*rest != '\0' && *rest != ';'))
		return "the size of a chunk is not a number";
	f->state = f->left > 0 ? FRAMING_CHUNK_DATA : FRAMING_TRAILER;
	return NULL;
}

static const char *end_chunk(struct framing *f)
{
	f->state = FRAMING_CHUNK;
	return NULL;
}

static const char *end_trailer(struct framing *f)
{
	if (f->line_len == 0)
		f->state = FRAMING_REQUEST;
	return f->line_len == 0 || f->named ? NULL : "a trailer line has no colon";
}

static const char *(*const line_ends[FRAMING_COUNT])(struct framing *f) = {
	[FRAMING_REQUEST] = end_request_line, [FRAMING_HEADER] = end_header,
	[FRAMING_CHUNK] = end_chunk_line,     [FRAMING_CHUNK_END] = end_chunk,
	[FRAMING_TRAILER] = end_trailer,
};

static const char *end_line(struct framing *f)
{
	size_t kept = f->line_len < sizeof(f->line) ? f->line_len : sizeof(f->line) - 1;
	const char *bad;

	f->line[kept] = '\0';
	bad = line_ends[f->state](f);
	f->line_len = 0;
	f->cr = f->named = false;
	return bad;
}

/* A byte in a line of headers or trailers. */
static const char *check_header_char(struct framing *f, char c)
{
	if (f->line_len == 0 && (c == ' ' || c == '\t'))
		return "a header line is folded";
	if (f->named)
		return NULL;
	f->named = c == ':' && f->line_len > 0;
	return f->named || is_token_char(c) ? NULL : "a header name has invalid characters";
}

/* A byte in the line of a chunk's size; the size itself is checked at the end of the line. */
static const char *check_chunk_char(struct framing *f, char c)
{
	if (f->line_len >= sizeof(f->line) - 1)
		return "the line of a chunk's size is too long";
	if (f->named)
		return NULL;
	f->named = c == ';' && f->line_len > 0;
	if (f->named || hex_value(c) >= 0 || (f->line_len > 0 && (c == ' ' || c == '\t')))
		return NULL;
	return "the size of a chunk is not a number";
}

/* A byte of a line, other than its end. */
static const char *check_char(struct framing *f, char c)
{
	bool is_header = f->state == FRAMING_HEADER || f->state == FRAMING_TRAILER;

	if (c == '\n')
		return "a line ends with LF, not CRLF";
	if (c == '\0')
		return "a line has a NUL";
	if (((unsigned char)c < 0x20 && !(c == '\t' && f->state != FRAMING_REQUEST)) || c == 0x7f)
		return "a line has a control character";
	if (f->state == FRAMING_CHUNK_END)
		return "a chunk is longer than announced";
	if (f->state == FRAMING_CHUNK)
		return check_chunk_char(f, c);
	return is_header ? check_header_char(f, c) : NULL;
}

static const char *take_char(struct framing *f, char c)
{
	const char *bad;

	if (f->cr)
		return c == '\n' ? end_line(f) : "a line has a CR that does not end it";
	if (c == '\r') {
		f->cr = true;
		return NULL;
	}
	bad = check_char(f, c);
	if (!bad && f->line_len < sizeof(f->line))
		f->line[f->line_len] = c;
	f->line_len++;
	return bad;
}

/* Return: bytes of a body or chunk. */
static size_t skip_data(struct framing *f, size_t len)
{
	size_t n = f->left < len ? (size_t)f->left : len;

	f->left -= n;
	if (f->left == 0)
		f->state = f->state == FRAMING_BODY ? FRAMING_REQUEST : FRAMING_CHUNK_END;
	return n;
}

size_t framing_feed(struct framing *f, const char *data, size_t len)
{
	size_t used = 0;

	while (used < len && !f->bad) {
		if (f->state == FRAMING_UPGRADE)
			return len;
		if (f->state == FRAMING_BODY || f->state == FRAMING_CHUNK_DATA) {
			used += skip_data(f, len - used);
			continue;
		}
		f->bad = take_char(f, data[used]);
		used += !f->bad;
	}
	return used;
}
