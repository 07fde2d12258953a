/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include "base/alloc.h"
#include <stdint.h>

static int digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* The last @pad of four are '='. Return: the bits, or -1. */
static int32_t decode_group(const char *text, size_t pad)
{
	int32_t bits = 0;

	for (size_t i = 0; i < 4; i++) {
		int d = i < 4 - pad ? digit_value(text[i]) : 0;

		if (d < 0)
			return -1;
		bits = bits << 6 | d;
	}
	/* Bits beyond the last byte must be 0: one encoding per value. */
	if ((pad == 1 && bits & 0xff) || (pad == 2 && bits & 0xffff))
		return -1;
	return bits;
}

char *base64_decode(const char *text, size_t len, size_t *ret_len)
{
	cleanup_free char *out = NULL;
	size_t used = 0, pad_at_end = 0;

	if (len % 4 != 0)
		return NULL;
	if (len > 0)
		pad_at_end = text[len - 1] != '=' ? 0 : text[len - 2] != '=' ? 1 : 2;
	out = xmalloc(len / 4 * 3 + 1);
	for (size_t i = 0; i < len; i += 4) {
		size_t pad = i + 4 == len ? pad_at_end : 0;
		int32_t bits = decode_group(text + i, pad);

		if (bits < 0)
			return NULL;
		for (size_t byte = 0; byte < 3 - pad; byte++)
			out[used++] = (char)(unsigned char)(bits >> (16 - 8 * byte));
	}
	out[used] = '\0';
	*ret_len = used;
	return TAKE_PTR(out);
}

char *base64_encode(const void *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
	const uint8_t *in = data;
	char *text = xmalloc((len + 2) / 3 * 4 + 1);
	char *out = text;

	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t group = (uint32_t)in[i] << 16;

		if (left > 1)
			group |= (uint32_t)in[i + 1] << 8;
		if (left > 2)
			group |= in[i + 2];
		*out++ = digits[group >> 18];
		*out++ = digits[group >> 12 & 63];
		*out++ = digits[left > 1 ? group >> 6 & 63 : 64];
		*out++ = digits[left > 2 ? group & 63 : 64];
	}
	*out = '\0';
	return text;
}
