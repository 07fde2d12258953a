/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/scan.h"

#include "base/utf8.h"
#include <assert.h>
#include <errno.h>
#include <string.h>

/* A reading position. Once text is checked, the functions below cannot fail on it. */
struct reader {
	const char *at, *end;
};

static void skip_space(struct reader *r)
{
	while (r->at < r->end &&
	       (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

static bool take(struct reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Four digits. Return: the unit, or -EINVAL. */
static int read_unit(struct reader *r)
{
	int unit = 0;

	if (r->end - r->at < 4)
		return -EINVAL;
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(*r->at++);

		if (digit < 0)
			return -EINVAL;
		unit = unit * 16 + digit;
	}
	return unit;
}

static bool is_high(int unit)
{
	return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low(int unit)
{
	return unit >= 0xdc00 && unit <= 0xdfff;
}

/* After "\u". Return: a code point, or -EINVAL: no digits, or half a pair. */
static int read_escape(struct reader *r)
{
	int unit = read_unit(r), low;

	if (unit < 0 || is_low(unit))
		return -EINVAL;
	if (!is_high(unit))
		return unit;
	if (!take(r, '\\') || !take(r, 'u'))
		return -EINVAL;
	low = read_unit(r);
	return is_low(low) ? 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00) : -EINVAL;
}

/* After a backslash. Return: a code point or -EINVAL. */
static int read_escaped(struct reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;
	char c;

	if (r->at == r->end)
		return -EINVAL;
	c = *r->at++;
	if (c == 'u')
		return read_escape(r);
	found = c ? strchr(from, c) : NULL;
	return found ? to[found - from] : -EINVAL;
}

/* After the quote, up to and including the next. */
static int skip_string(struct reader *r)
{
	while (r->at < r->end) {
		unsigned char c = (unsigned char)*r->at;
		bool is_valid = true;

		if (c == '"') {
			r->at++;
			return 0;
		}
		if (c < 0x20)
			return -EINVAL;
		if (c == '\\') {
			r->at++;
			if (read_escaped(r) < 0)
				return -EINVAL;
		} else if (c < 0x80) {
			r->at++;
		} else {
			r->at += utf8_next(r->at, (size_t)(r->end - r->at), &is_valid);
			if (!is_valid)
				return -EINVAL;
		}
	}
	return -EINVAL;
}

static size_t skip_digits(struct reader *r)
{
	const char *start = r->at;

	while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
		r->at++;
	return (size_t)(r->at - start);
}

static int skip_number(struct reader *r)
{
	(void)take(r, '-');
	if (!take(r, '0') && skip_digits(r) == 0)
		return -EINVAL;
	if (take(r, '.') && skip_digits(r) == 0)
		return -EINVAL;
	if (take(r, 'e') || take(r, 'E')) {
		if (!take(r, '+'))
			(void)take(r, '-');
		if (skip_digits(r) == 0)
			return -EINVAL;
	}
	return 0;
}

static int skip_word(struct reader *r, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
		return -EINVAL;
	r->at += len;
	return 0;
}

static int skip_simple(struct reader *r)
{
	switch (*r->at) {
	case '"':
		r->at++;
		return skip_string(r);
	case 't':
		return skip_word(r, "true");
	case 'f':
		return skip_word(r, "false");
	case 'n':
		return skip_word(r, "null");
	default:
		return skip_number(r);
	}
}

static int skip_name(struct reader *r)
{
	skip_space(r);
	if (!take(r, '"') || skip_string(r) < 0)
		return -EINVAL;
	skip_space(r);
	if (!take(r, ':'))
		return -EINVAL;
	skip_space(r);
	return 0;
}

/* The brackets that are open, so that no stack grows with the input. */
struct nesting {
	char close[SCAN_DEPTH_MAX];
	size_t depth;
};

/* At a value: opens a bracket, or skips something simple. Return: 1 if a value is complete, or a
 * negative errno: -E2BIG: too deep. */
static int enter_value(struct reader *r, struct nesting *n)
{
	char c, close = ']';

	if (r->at == r->end)
		return -EINVAL;
	c = *r->at;
	if (c == '{')
		close = '}';
	if (c != '{' && c != '[')
		return skip_simple(r) < 0 ? -EINVAL : 1;
	r->at++;
	skip_space(r);
	if (take(r, close))
		return 1;
	if (n->depth == SCAN_DEPTH_MAX)
		return -E2BIG;
	n->close[n->depth++] = close;
	return c == '{' ? skip_name(r) : 0;
}

/* After a value: closes what ends here. Return: 1 if another value follows. */
static int leave_values(struct reader *r, struct nesting *n)
{
	while (n->depth > 0) {
		char close = n->close[n->depth - 1];

		skip_space(r);
		if (take(r, ',')) {
			skip_space(r);
			return close == '}' && skip_name(r) < 0 ? -EINVAL : 1;
		}
		if (!take(r, close))
			return -EINVAL;
		n->depth--;
	}
	return 0;
}

static int skip_value(struct reader *r)
{
	struct nesting n = {.depth = 0};
	int state = 1;

	while (state > 0) {
		state = enter_value(r, &n);
		if (state == 0) { /* inside a bracket that was just opened */
			state = 1;
			continue;
		}
		if (state > 0)
			state = leave_values(r, &n);
	}
	return state;
}

static enum scan_kind kind_at(const char *at)
{
	switch (*at) {
	case '{':
		return SCAN_OBJECT;
	case '[':
		return SCAN_ARRAY;
	case '"':
		return SCAN_STRING;
	case 't':
	case 'f':
		return SCAN_BOOL;
	case 'n':
		return SCAN_NULL;
	default:
		return SCAN_NUMBER;
	}
}

static int read_value(struct reader *r, struct scan_value *ret)
{
	const char *start = r->at;
	int state = skip_value(r);

	if (state < 0)
		return state;
	*ret = (struct scan_value){kind_at(start), start, (size_t)(r->at - start)};
	return 0;
}

int scan_text(const char *text, size_t len, struct scan_value *ret)
{
	struct reader r = {text, text + len};
	struct scan_value value;
	int state = -EINVAL;

	skip_space(&r);
	if (r.at < r.end)
		state = read_value(&r, &value);
	if (state < 0)
		return state;
	skip_space(&r);
	if (r.at != r.end)
		return -EINVAL;
	*ret = value;
	return 0;
}

/* Names may be escaped: compare what they mean. */
static bool is_name(const struct scan_value *name, const char *wanted)
{
	char text[32];

	return scan_string(name, text, sizeof(text)) >= 0 && strcmp(text, wanted) == 0;
}

static int keep_member(const struct scan_value *name, const struct scan_value *value,
                       const char *const *names, size_t count, struct scan_value *ret)
{
	for (size_t i = 0; i < count; i++) {
		if (!is_name(name, names[i]))
			continue;
		/* Two readers could choose differently. */
		if (ret[i].kind != SCAN_ABSENT)
			return -EINVAL;
		ret[i] = *value;
	}
	return 0;
}

int scan_members(const struct scan_value *object, const char *const *names, size_t count,
                 struct scan_value *ret)
{
	struct reader r = {object->at + 1, object->at + object->len};

	for (size_t i = 0; i < count; i++)
		ret[i] = (struct scan_value){.kind = SCAN_ABSENT};
	if (object->kind != SCAN_OBJECT)
		return -EINVAL;
	skip_space(&r);
	while (!take(&r, '}')) {
		struct scan_value name = {.kind = SCAN_STRING, .at = r.at}, value;

		if (!take(&r, '"') || skip_string(&r) < 0)
			return -EINVAL;
		name.len = (size_t)(r.at - name.at);
		skip_space(&r);
		if (!take(&r, ':'))
			return -EINVAL;
		skip_space(&r);
		if (r.at == r.end || read_value(&r, &value) < 0 ||
		    keep_member(&name, &value, names, count, ret) < 0)
			return -EINVAL;
		skip_space(&r);
		(void)take(&r, ',');
		skip_space(&r);
	}
	return 0;
}

bool scan_next(const struct scan_value *array, size_t *pos, struct scan_value *ret)
{
	struct reader r;

	if (array->kind != SCAN_ARRAY)
		return false;
	r = (struct reader){array->at + (*pos ? *pos : 1), array->at + array->len};
	skip_space(&r);
	(void)take(&r, ',');
	skip_space(&r);
	if (r.at == r.end || *r.at == ']' || read_value(&r, ret) < 0)
		return false;
	*pos = (size_t)(r.at - array->at);
	return true;
}

/* Return: how many bytes. */
static size_t encode_point(int c, char ret[4])
{
	static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = len - 1; i > 0; i--) {
		ret[i] = (char)(0x80 | (c & 0x3f));
		c >>= 6;
	}
	ret[0] = (char)(len == 1 ? c : first[len] | c);
	return len;
}

int scan_string(const struct scan_value *value, char *ret_text, size_t size)
{
	struct reader r;
	size_t used = 0;

	if (value->kind != SCAN_STRING)
		return -EINVAL;
	r = (struct reader){value->at + 1, value->at + value->len - 1};
	while (r.at < r.end) {
		char point[4];
		size_t len = 1;
		int c;

		point[0] = *r.at++;
		if (point[0] == '\\') {
			c = read_escaped(&r);
			if (c <= 0)
				return -EINVAL;
			len = encode_point(c, point);
		}
		if (used + len >= size)
			return -E2BIG;
		memcpy(ret_text + used, point, len);
		used += len;
	}
	if (size == 0)
		return -E2BIG;
	ret_text[used] = '\0';
	return (int)used;
}

int scan_number(const struct scan_value *value, unsigned *ret)
{
	unsigned n = 0;

	if (value->kind != SCAN_NUMBER || value->len > 9)
		return -EINVAL;
	for (size_t i = 0; i < value->len; i++) {
		if (value->at[i] < '0' || value->at[i] > '9')
			return -EINVAL;
		n = n * 10 + (unsigned)(value->at[i] - '0');
	}
	*ret = n;
	return 0;
}

bool scan_is_true(const struct scan_value *value)
{
	return value->kind == SCAN_BOOL && value->at[0] == 't';
}
