/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base64.h"

#include <stdint.h>

#include "base/alloc.h"

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
		/* Behind the digits, the padding. */
		*out++ = digits[left > 1 ? group >> 6 & 63 : 64];
		*out++ = digits[left > 2 ? group & 63 : 64];
	}
	*out = '\0';
	return text;
}
