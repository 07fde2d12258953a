/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/json.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/utf8.h"
#include "json/json_dump.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define INDEX_NONE SIZE_MAX

/* One open object or array. */
struct frame {
	const char *key; /* of the current member; NULL: none yet */
	size_t key_len;
	size_t index; /* INDEX_NONE in an object */
	bool in_value;
};

struct scan {
	struct frame frames[JSON_DEPTH_MAX];
	size_t depth;
	size_t values;
	bool too_deep;
};

/* @at is after the opening quote. Notes a key. Return: index of the closing quote, or @len. */
static size_t scan_string(struct scan *s, const char *text, size_t at, size_t len)
{
	struct frame *top = s->depth ? &s->frames[s->depth - 1] : NULL;
	size_t end = at;

	while (end < len && text[end] != '"')
		end += text[end] == '\\' ? 2 : 1;
	if (end > len)
		end = len;
	if (top && top->index == INDEX_NONE && !top->in_value) {
		top->key = text + at;
		top->key_len = end - at;
	}
	return end;
}

static void scan_separator(struct scan *s, char c)
{
	struct frame *top = s->depth ? &s->frames[s->depth - 1] : NULL;

	if (!top)
		return;
	if (c == ':') {
		top->in_value = true;
		return;
	}
	top->in_value = false;
	top->key = NULL;
	if (top->index != INDEX_NONE)
		top->index++;
}

/* Not a parser: accepts any bytes, tracks depth and path. Stops at a limit. */
static void scan_run(struct scan *s, const char *text, size_t len)
{
	for (size_t i = 0; i < len && !s->too_deep && s->values <= JSON_VALUES_MAX; i++) {
		char c = text[i];

		if (c == '"') {
			i = scan_string(s, text, i + 1, len);
		} else if (c == '{' || c == '[') {
			s->values++;
			s->too_deep |= s->depth == JSON_DEPTH_MAX;
			if (!s->too_deep)
				s->frames[s->depth++] =
					(struct frame){.index = c == '[' ? 0 : INDEX_NONE};
		} else if (c == '}' || c == ']') {
			s->depth -= s->depth > 0;
		} else if (c == ',' || c == ':') {
			s->values++;
			scan_separator(s, c);
		}
	}
}

/* "resources.memory", "args[2]", truncated. */
static void scan_path(const struct scan *s, char *ret_path, size_t size)
{
	size_t used = 0;

	ret_path[0] = '\0';
	for (size_t i = 0; i < s->depth && used < size; i++) {
		const struct frame *f = &s->frames[i];
		int n = 0;

		if (f->index != INDEX_NONE)
			n = snprintf(ret_path + used, size - used, "[%zu]", f->index);
		else if (f->key)
			n = snprintf(ret_path + used, size - used, "%s%.*s", used ? "." : "",
			             (int)(f->key_len < size ? f->key_len : size), f->key);
		used += n > 0 ? (size_t)n : 0;
	}
}

static void parse_error(const char *text, size_t len, const json_error_t *why, struct error *err)
{
	struct scan scan = {0};
	size_t at = why->position > 0 && (size_t)why->position < len ? (size_t)why->position : len;

	(void)error_set(err, ERR_BAD_JSON, 0, "line %d, column %d: %s", why->line, why->column,
	                why->text);
	/* The value before a missing separator is not at fault. */
	if (why->text[0] == '\'')
		return;
	scan_run(&scan, text, at);
	scan_path(&scan, err->field, sizeof(err->field));
}

json_t *json_read(const char *text, size_t len, struct error *err)
{
	struct scan scan = {0};
	json_error_t why;
	json_t *value;

	if (len == 0) {
		(void)error_set(err, ERR_BAD_JSON, 0, "the body is empty; {} is the least");
		return NULL;
	}
	scan_run(&scan, text, len);
	if (scan.too_deep) {
		(void)error_set(err, ERR_BAD_JSON, 0, "nested deeper than %d levels",
		                JSON_DEPTH_MAX);
		return NULL;
	}
	if (scan.values > JSON_VALUES_MAX) {
		(void)error_set(err, ERR_BAD_JSON, 0, "more than %d values", JSON_VALUES_MAX);
		return NULL;
	}
	/* NUL is accepted so that the field's check can name it. */
	value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	if (!value)
		parse_error(text, len, &why, err);
	return value;
}

json_t *json_read_object(const char *text, size_t len, struct error *err)
{
	json_t *object = json_read(text, len, err);

	if (object && !json_is_object(object)) {
		json_decref(object);
		(void)error_set(err, ERR_BAD_JSON, 0, "must be an object");
		return NULL;
	}
	return object;
}

json_t *json_text(const char *text, size_t len)
{
	cleanup_free char *clean = NULL;
	json_t *j;

	if (!utf8_is_valid(text, len)) {
		clean = utf8_sanitize(text, len, &len);
		text = clean;
	}
	j = json_stringn_nocheck(text, len);
	assert(j);
	return j;
}

/* jansson makes no value of a text that is not UTF-8, as one that was cut within a character. A
 * caller's bytes must not end the daemon: null stands for it. Texts of callers go through
 * json_text(), which keeps the rest. */
static json_t *value_or_null(json_t *value)
{
	return value ? value : json_null();
}

void json_set(json_t *object, const char *key, json_t *value)
{
	int r = json_object_set_new_nocheck(object, key, value_or_null(value));

	assert(r == 0);
	(void)r;
}

void json_append(json_t *array, json_t *value)
{
	int r = json_array_append_new(array, value_or_null(value));

	assert(r == 0);
	(void)r;
}

/*
 * Writing. A program's output may be megabytes of any bytes, and writing it as JSON
 * blocks the loop. So it is read and written once: runs of plain characters are found eight bytes
 * at a time and copied whole; the rest is escaped or replaced in place. A library that requires
 * valid text needs three more passes.
 */

/* Longest escape of one byte: \u0000. */
#define GROWTH 6
/* Per step; the buffer has room for the worst case. */
#define PIECE 65536u

#define ONES      0x0101010101010101ull
#define HIGH_BITS 0x8080808080808080ull

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Of the short escapes; 0: none. */
static const char letters[256] = {
	['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
	['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't',
};

static uint64_t has_zero(uint64_t word)
{
	return (word - ONES) & ~word & HIGH_BITS;
}

/* Inexact for a byte after a match: says only whether there is one. */
static bool is_plain_word(uint64_t w)
{
	uint64_t control = (w - ONES * 0x20) & ~w & HIGH_BITS;

	return !((w & HIGH_BITS) | control | has_zero(w ^ ONES * '"') | has_zero(w ^ ONES * '\\'));
}

static size_t plain_run(const char *text, size_t len)
{
	size_t n = 0;

	while (len - n >= sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, text + n, sizeof(word));
		if (!is_plain_word(word))
			break;
		n += sizeof(word);
	}
	for (; n < len; n++) {
		unsigned char c = (unsigned char)text[n];

		if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\')
			break;
	}
	return n;
}

static char *put_escape(char *out, unsigned char c)
{
	static const char digits[] = "0123456789ABCDEF";

	*out++ = '\\';
	if (letters[c]) {
		*out++ = letters[c];
		return out;
	}
	*out++ = 'u';
	*out++ = '0';
	*out++ = '0';
	*out++ = digits[c >> 4];
	*out++ = digits[c & 15];
	return out;
}

/* One character or maximal invalid part of @len > 0 bytes. Return: bytes read. */
static size_t put_foreign(char **out, const char *text, size_t len)
{
	unsigned char c = (unsigned char)text[0];
	bool valid = false;
	/* Fast path: an attacker could send many that start no character. */
	size_t n = c < 0xC2 || c > 0xF4 ? 1 : utf8_next(text, len, &valid);

	if (valid) {
		memcpy(*out, text, n);
		*out += n;
	} else {
		memcpy(*out, replacement, sizeof(replacement) - 1);
		*out += sizeof(replacement) - 1;
	}
	return n;
}

/*
 * Write up to @some of the @len bytes, and up to three more for a character at the edge. Return:
 * bytes read.
 */
static size_t put_piece(char **ret_out, const char *text, size_t some, size_t len)
{
	char *out = *ret_out;
	size_t i = 0;

	while (i < some) {
		size_t plain = plain_run(text + i, some - i);
		unsigned char c = (unsigned char)text[i];

		if (plain > 0) {
			memcpy(out, text + i, plain);
			out += plain;
			i += plain;
		} else if (c < 0x80) {
			out = put_escape(out, c);
			i++;
		} else {
			i += put_foreign(&out, text + i, len - i);
		}
	}
	*ret_out = out;
	return i;
}

int json_add_text(struct buf *b, const char *text, size_t len)
{
	int r = buf_add(b, "\"", 1);

	while (r == 0 && len > 0) {
		size_t some = len < PIECE ? len : PIECE;
		size_t read;
		char *out;

		r = buf_reserve(b, (some + 3) * GROWTH);
		if (r < 0)
			break;
		out = b->data + b->len;
		read = put_piece(&out, text, some, len);
		b->len = (size_t)(out - b->data);
		b->data[b->len] = '\0';
		text += read;
		len -= read;
	}
	return r < 0 ? r : buf_add(b, "\"", 1);
}

int json_add(struct buf *b, json_t *value)
{
	int r = json_dump_to(b, value);

	json_decref(value);
	return r;
}

char *json_write(json_t *value, size_t *ret_len)
{
	char *text = json_dump_text(value, JSON_COMPACT);

	assert(text); /* only memory can run out */
	json_decref(value);
	*ret_len = strlen(text); /* NUL is escaped */
	return text;
}
