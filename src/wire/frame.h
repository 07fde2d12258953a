/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the envelope of the wire between driver/ and guest/: pure functions, in both binaries. Each
 * side treats the other's bytes as hostile. docs/protocol.md has every byte.
 *
 *   offset 0  u32 length of the payload, at most FRAME_MAX_PAYLOAD
 *          4  u16 type (enum msg_type)
 *          6  u16 zero
 *          8  u32 id of the execution, 0: the box
 *         12  payload
 *
 * Little-endian.
 */

#include "base/attr.h"
#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER_LEN  12
#define FRAME_MAX_PAYLOAD (128 * 1024)
#define FRAME_MAX_LEN     (FRAME_HEADER_LEN + FRAME_MAX_PAYLOAD)
/* Most bulk data (output, stdin, files) in one frame. */
#define FRAME_CHUNK (64 * 1024)

struct frame {
	uint16_t type;
	uint32_t id;
	const uint8_t *payload; /* borrowed from the parsed bytes */
	uint32_t len;
};

/**
 * frame_parse - parse the start of a stream. Return: length of the frame in *ret_frame, 0 if
 * incomplete, -EPROTO if no continuation can be a frame.
 */
int frame_parse(const void *data, size_t len, struct frame *ret_frame) attr_must_check;

void frame_put_header(const struct frame *frame, uint8_t ret_header[FRAME_HEADER_LEN]);
