/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the frames in which the Docker Engine sends the output of a container without a terminal: a
 * stream (0 stdin, 1 stdout, 2 stderr), three zeros, the length in big endian, the bytes. Pure; the
 * bytes may arrive in any pieces.
 */

#include "base/attr.h"
#include <stddef.h>
#include <stdint.h>

#define DEMUX_HEAD 8

enum demux_stream {
	DEMUX_STDIN, /* never sent by a real server, but described */
	DEMUX_STDOUT,
	DEMUX_STDERR,
	DEMUX_COUNT
};

struct demux {
	uint8_t head[DEMUX_HEAD];
	uint8_t have;  /* bytes of @head */
	uint32_t left; /* bytes of the frame that follow */
};

struct demux_piece {
	size_t skip; /* bytes of headers before it; consumed */
	enum demux_stream stream;
	size_t len; /* bytes after @skip; 0: more input is needed. Say with demux_take how many
	             * were used. */
};

/** demux_next - Return: 0, or -EPROTO: not such frames. */
int demux_next(struct demux *d, const char *data, size_t len,
               struct demux_piece *ret_piece) attr_must_check;
void demux_take(struct demux *d, size_t len);
