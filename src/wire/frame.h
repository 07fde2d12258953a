/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the envelope of the wire between driver/ and guest/: pure functions, no I/O, in both
 * binaries. Each side treats the other's bytes as hostile. docs/protocol.md has every byte.
 *
 *   offset 0  u32 length of the payload, at most FRAME_MAX_PAYLOAD
 *          4  u16 type (enum msg_type)
 *          6  u16 zero
 *          8  u32 id of the execution it belongs to, 0 for the box itself
 *         12  payload
 *
 * All numbers are little-endian.
 */

#include "base/attr.h"
#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER_LEN  12
#define FRAME_MAX_PAYLOAD (128 * 1024)
#define FRAME_MAX_LEN     (FRAME_HEADER_LEN + FRAME_MAX_PAYLOAD)
/* Largest piece of bulk data (output, stdin, files) in one frame. */
#define FRAME_CHUNK (64 * 1024)

struct frame {
	uint16_t type;
	uint32_t id;
	const uint8_t *payload; /* borrowed from the bytes that were parsed */
	uint32_t len;
};

/**
 * frame_parse - examine the start of a stream. Return: length of one complete frame (in
 * *ret_frame), 0 when more bytes are needed, -EPROTO when no continuation can be a frame.
 */
int frame_parse(const void *data, size_t len, struct frame *ret_frame) attr_must_check;

void frame_put_header(const struct frame *frame, uint8_t ret_header[FRAME_HEADER_LEN]);
