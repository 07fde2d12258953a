/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of frames: what is accepted lies inside the input and is encoded to the same bytes. */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "wire/frame.h"

static int parse_one(const uint8_t *data, size_t size)
{
	struct frame frame = {0};
	uint8_t header[FRAME_HEADER_LEN];
	int used = frame_parse(data, size, &frame);

	require(used == -EPROTO || used >= 0);
	if (used <= 0)
		return used;
	require((size_t)used <= size && (size_t)used == FRAME_HEADER_LEN + (size_t)frame.len);
	require(frame.len <= FRAME_MAX_PAYLOAD && frame.payload == data + FRAME_HEADER_LEN);
	frame_put_header(&frame, header);
	require(memcmp(header, data, sizeof(header)) == 0);
	return used;
}

/* A prefix needs more bytes, or is rejected if the whole is; it is never accepted. */
static void check_beginnings(const uint8_t *data, int used)
{
	struct frame frame;

	for (int len = 0; len < used && len <= FRAME_HEADER_LEN; len++)
		require(frame_parse(data, (size_t)len, &frame) == 0);
	require(frame_parse(data, (size_t)used - 1, &frame) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int used;

	for (size_t pos = 0; pos <= size; pos += (size_t)used) {
		used = parse_one(data + pos, size - pos);
		if (used <= 0)
			break;
		check_beginnings(data + pos, used);
	}
	return 0;
}
