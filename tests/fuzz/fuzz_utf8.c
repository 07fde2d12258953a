/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes become valid UTF-8; valid ones stay unchanged; cutting never makes them invalid. */
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "fuzz.h"

static void check_sanitize(const char *data, size_t size)
{
	size_t len = 0;
	cleanup_free char *clean = utf8_sanitize(data, size, &len);

	require(utf8_is_valid(clean, len));
	require(clean[len] == '\0' && len <= 3 * size);
	if (utf8_is_valid(data, size))
		require(len == size && (size == 0 || memcmp(clean, data, size) == 0));
}

static void check_cuts(const char *data, size_t size)
{
	bool valid = utf8_is_valid(data, size);

	/* A cut can go wrong only near the end. */
	for (size_t len = size < 8 ? 0 : size - 8; len <= size; len++) {
		size_t cut = utf8_cut(data, len);

		require(cut <= len && len - cut <= 3);
		require(!valid || utf8_is_valid(data, cut));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_sanitize((const char *)data, size);
	check_cuts((const char *)data, size);
	return 0;
}
