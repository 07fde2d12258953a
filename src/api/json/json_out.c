/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/json.h"

#include "base/utf8.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * Theory of operation. A program's output may be megabytes of any bytes, and writing it as JSON
 * blocks the loop. So it is read and written once: runs of plain characters are found eight bytes
 * at a time and copied whole; the rest is escaped or replaced in place. A library that requires
 * valid text needs three more passes.
 */

/* 0.1 is written as 0.1. */
#define REAL_DIGITS 15
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

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
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
	while (n < len && is_plain((unsigned char)text[n]))
		n++;
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
		unsigned char c = (unsigned char)text[i];

		if (is_plain(c)) {
			size_t n = plain_run(text + i, some - i);

			memcpy(out, text + i, n);
			out += n;
			i += n;
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

static int add_chunk(const char *text, size_t len, void *b)
{
	return buf_add(b, text, len);
}

int json_add(struct buf *b, json_t *value)
{
	int r = json_dump_callback(value, add_chunk, b,
	                           JSON_COMPACT | JSON_ENCODE_ANY |
	                                   JSON_REAL_PRECISION(REAL_DIGITS));

	json_decref(value);
	return r;
}

char *json_write(json_t *value, size_t *ret_len)
{
	cleanup_buf struct buf b = BUF_INIT(SIZE_MAX / 2);
	int r = json_add(&b, value);

	assert(r == 0); /* only memory can run out */
	(void)r;
	return buf_take(&b, ret_len);
}
