/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/answer.h"

#include "base/utf8.h"
#include <assert.h>
#include <errno.h>
#include <string.h>

size_t frame_length(const unsigned char head[FRAME_HEAD])
{
	return (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
}

/* Return: NULL, or what is wrong. */
static const char *read_name(const struct scan_value *value, char *ret, size_t size,
                             const char *missing)
{
	int r = scan_string(value, ret, size);

	return r > 0 ? NULL : missing;
}

const char *request_read(const char *text, size_t len, struct request *ret)
{
	enum {
		URL,
		TOOL,
		ARGUMENTS,
		COUNT
	};
	static const char *const names[COUNT] = {"url", "tool", "arguments"};
	struct scan_value whole, part[COUNT];
	const char *wrong;

	if (scan_text(text, len, &whole) < 0)
		return "Invalid JSON: not a JSON text in UTF-8, or nested too deeply";
	if (scan_members(&whole, names, COUNT, part) < 0)
		return "Invalid JSON: not an object, or a member is given twice";
	wrong = read_name(&part[URL], ret->url, sizeof(ret->url), "Missing 'url' in request");
	if (!wrong)
		wrong = read_name(&part[TOOL], ret->tool, sizeof(ret->tool),
		                  "Missing 'tool' in request");
	if (wrong)
		return wrong;
	if (part[ARGUMENTS].kind == SCAN_NULL)
		part[ARGUMENTS].kind = SCAN_ABSENT;
	if (part[ARGUMENTS].kind != SCAN_ABSENT && part[ARGUMENTS].kind != SCAN_OBJECT)
		return "Invalid 'arguments' in request: not an object";
	ret->arguments = part[ARGUMENTS];
	return NULL;
}

int answer_begin(struct buf *ret)
{
	static const char head[FRAME_HEAD];

	return buf_add(ret, head, sizeof(head));
}

void answer_end(struct buf *b)
{
	size_t len = b->len - FRAME_HEAD;

	for (int i = 0; i < FRAME_HEAD; i++)
		b->data[i] = (char)(len >> (8 * (FRAME_HEAD - 1 - i)));
}

static int add_escaped(struct buf *b, unsigned char c)
{
	static const char plain[] = "\"\\";

	if (strchr(plain, c))
		return buf_addf(b, "\\%c", c);
	return buf_addf(b, "\\u%04x", c);
}

int answer_string(struct buf *b, const char *text)
{
	size_t len = strlen(text);
	int r = buf_add(b, "\"", 1);

	while (len > 0 && r >= 0) {
		bool is_valid = true;
		size_t n = utf8_next(text, len, &is_valid);
		unsigned char c = (unsigned char)*text;

		if (!is_valid)
			r = buf_add_str(b, "\\ufffd");
		else if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f)
			r = add_escaped(b, c);
		else
			r = buf_add(b, text, n);
		text += n;
		len -= n;
	}
	return r < 0 ? r : buf_add(b, "\"", 1);
}

void answer_error(struct buf *ret, const char *text)
{
	int r = answer_begin(ret);

	if (r >= 0)
		r = buf_add_str(ret, "{\"error\": ");
	if (r >= 0)
		r = answer_string(ret, text);
	if (r >= 0)
		r = buf_add(ret, "}", 1);
	assert(r >= 0); /* texts of errors are short */
	answer_end(ret);
}
