/* SPDX-License-Identifier: Apache-2.0 */
#include "client/encode_bytes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/utf8.h"

json_t *encode_bytes(const char *data, size_t len)
{
	cleanup_free char *encoded = NULL;

	if (len == 0)
		return json_string("");
	if (utf8_is_valid(data, len) && !memchr(data, '\0', len))
		return json_stringn(data, len);
	encoded = base64_encode(data, len);
	return json_pack("{s:s}", "base64", encoded);
}
