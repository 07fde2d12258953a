/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame.h"

#include <errno.h>

static uint32_t get_u32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put_u32(uint8_t *p, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(value >> (8 * i));
}

int frame_parse(const void *data, size_t len, struct frame *ret_frame)
{
	const uint8_t *p = data;
	uint32_t payload;

	/* Check each part on arrival: a peer cannot make us wait for the rest of a bad frame. */
	if (len < 4)
		return 0;
	payload = get_u32(p);
	if (payload > FRAME_MAX_PAYLOAD)
		return -EPROTO;
	if (len < FRAME_HEADER_LEN)
		return 0;
	if (p[6] != 0 || p[7] != 0)
		return -EPROTO;
	if (len - FRAME_HEADER_LEN < payload)
		return 0;

	*ret_frame = (struct frame){
		.type = (uint16_t)(p[4] | p[5] << 8),
		.id = get_u32(p + 8),
		.payload = p + FRAME_HEADER_LEN,
		.len = payload,
	};
	return (int)(FRAME_HEADER_LEN + payload);
}

void frame_put_header(const struct frame *frame, uint8_t ret_header[FRAME_HEADER_LEN])
{
	put_u32(ret_header, frame->len);
	ret_header[4] = (uint8_t)frame->type;
	ret_header[5] = (uint8_t)(frame->type >> 8);
	ret_header[6] = 0;
	ret_header[7] = 0;
	put_u32(ret_header + 8, frame->id);
}
