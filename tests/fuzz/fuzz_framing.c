/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a connection: how they are cut into pieces changes nothing, and what is valid has no
 * bare LF or NUL in a line. */
#include <string.h>

#include "fuzz.h"
#include "http/framing.h"

static size_t feed(struct framing *f, const char *data, size_t size, size_t step)
{
	size_t used = 0;

	while (used < size) {
		size_t len = size - used < step ? size - used : step;
		size_t n = framing_feed(f, data + used, len);

		require(n <= len && (n == len) == !f->bad);
		used += n;
		if (n < len)
			break;
	}
	return used;
}

/* Each byte with the state that it was accepted in. */
static void check_lines(const char *data, size_t size)
{
	struct framing f = {0};
	char last = 0;

	for (size_t i = 0; i < size; i++) {
		bool in_line = f.state != FRAMING_BODY && f.state != FRAMING_CHUNK_DATA &&
		               f.state != FRAMING_UPGRADE;

		if (framing_feed(&f, data + i, 1) == 0)
			return;
		require(!in_line || (data[i] != '\0' && (data[i] != '\n' || last == '\r')));
		last = in_line ? data[i] : 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct framing whole = {0}, parts = {0};
	size_t valid = feed(&whole, (const char *)data, size, size ? size : 1);

	require(feed(&parts, (const char *)data, size, 1) == valid);
	require(whole.state == parts.state && whole.heads == parts.heads);
	require(whole.bad == parts.bad);
	check_lines((const char *)data, size);
	return 0;
}
