/* SPDX-License-Identifier: Apache-2.0 */
#include "base/plain.h"

#include "base/utf8.h"

static bool is_unsafe(const unsigned char *c, size_t len)
{
	if (len == 1)
		return *c < ' ' || *c == 0x7f;
	if (len == 2) /* U+0080 to U+009F, U+061C */
		return (c[0] == 0xc2 && c[1] < 0xa0) || (c[0] == 0xd8 && c[1] == 0x9c);
	if (len != 3 || c[0] != 0xe2)
		return false;
	return c[1] == 0x80 ? c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xaa && c[2] <= 0xae)
	                    : c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9;
}

int plain_add(struct buf *to, const char *data, size_t len, bool keeps_layout)
{
	int r = 0;

	while (len > 0 && r == 0) {
		bool is_valid = true;
		size_t n = utf8_next(data, len, &is_valid);
		bool is_layout = *data == '\n' || *data == '\t';

		if (is_layout)
			r = buf_add(to, keeps_layout ? data : " ", 1);
		else if (!is_valid || is_unsafe((const unsigned char *)data, n))
			r = buf_add(to, "?", 1);
		else
			r = buf_add(to, data, n);
		data += n;
		len -= n;
	}
	return r;
}
