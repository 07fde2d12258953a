/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes of a tunnel: a result does not change with more bytes, and a name is one that
 * target_parse_host() gives back. */
#include <stdlib.h>
#include <string.h>

#include "egress/hello.h"
#include "fuzz.h"

/* In a block of its own: a sanitizer sees a read beyond it. */
static enum hello_result parse(const uint8_t *data, size_t size, char name[TARGET_HOST_LEN])
{
	uint8_t *exact = malloc(size ? size : 1);
	enum hello_result r;

	require(exact);
	memcpy(exact, data, size);
	r = hello_parse(exact, size, name);
	free(exact);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[TARGET_HOST_LEN] = "", part_name[TARGET_HOST_LEN];
	enum hello_result whole = parse(data, size, name);
	size_t step = size / 256 + 1;
	struct target t;
	struct error err = {0};

	require((unsigned)whole < HELLO_COUNT && (whole != HELLO_MORE || size < HELLO_MAX));
	for (size_t part = 0; part < size; part += step) {
		enum hello_result r = parse(data, part, part_name);

		require(r == HELLO_MORE || r == whole);
		require(r != HELLO_NAME || strcmp(name, part_name) == 0);
	}
	if (whole != HELLO_NAME)
		return 0;
	require(target_parse_host(name, strlen(name), false, &t, &err) == 0);
	require(!t.is_address && strcmp(t.host, name) == 0);
	return 0;
}
