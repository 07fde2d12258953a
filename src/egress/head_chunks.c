/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/head.h"

#include "base/parse.h"

#define SIZE_DIGITS_MAX 15

/* Named after the byte that is expected. */
enum chunks_state {
	CHUNKS_FIRST, /* first digit of a size */
	CHUNKS_DIGIT, /* another digit or CR */
	CHUNKS_SIZE_LF,
	CHUNKS_DATA,
	CHUNKS_DATA_CR,
	CHUNKS_DATA_LF,
	CHUNKS_END_CR, /* of the empty line behind the last chunk */
	CHUNKS_END_LF,
	CHUNKS_DONE,
	CHUNKS_BAD,
};

static enum chunks_state take_digit(struct chunks *c, char byte)
{
	int digit = parse_hex_digit(byte);

	if (c->state == CHUNKS_DIGIT && byte == '\r')
		return CHUNKS_SIZE_LF;
	if (c->state == CHUNKS_FIRST)
		c->digits = 0;
	if (digit < 0 || ++c->digits > SIZE_DIGITS_MAX)
		return CHUNKS_BAD;
	c->left = c->left << 4 | (uint64_t)digit;
	return CHUNKS_DIGIT;
}

static enum chunks_state take_byte(struct chunks *c, char byte)
{
	switch ((enum chunks_state)c->state) {
	case CHUNKS_FIRST:
	case CHUNKS_DIGIT:
		return take_digit(c, byte);
	case CHUNKS_SIZE_LF:
		if (byte != '\n')
			return CHUNKS_BAD;
		return c->left > 0 ? CHUNKS_DATA : CHUNKS_END_CR;
	case CHUNKS_DATA_CR:
		return byte == '\r' ? CHUNKS_DATA_LF : CHUNKS_BAD;
	case CHUNKS_DATA_LF:
		return byte == '\n' ? CHUNKS_FIRST : CHUNKS_BAD;
	case CHUNKS_END_CR:
		return byte == '\r' ? CHUNKS_END_LF : CHUNKS_BAD;
	case CHUNKS_END_LF:
		return byte == '\n' ? CHUNKS_DONE : CHUNKS_BAD;
	case CHUNKS_DATA:
	case CHUNKS_DONE:
	case CHUNKS_BAD:
		break;
	}
	return CHUNKS_BAD;
}

int64_t chunks_feed(struct chunks *c, const char *data, size_t len, bool *ret_done)
{
	size_t used = 0;

	while (used < len && c->state != CHUNKS_DONE && c->state != CHUNKS_BAD) {
		if (c->state == CHUNKS_DATA) {
			size_t n = c->left < len - used ? (size_t)c->left : len - used;

			used += n;
			c->left -= n;
			if (c->left == 0)
				c->state = CHUNKS_DATA_CR;
			continue;
		}
		c->state = (uint8_t)take_byte(c, data[used++]);
	}
	if (c->state == CHUNKS_BAD)
		return -1;
	*ret_done = c->state == CHUNKS_DONE;
	return (int64_t)used;
}
