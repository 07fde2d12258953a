/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the agent's end of the control socket: frames in and out, both bounded, never blocking. With
 * more than CHANNEL_HIGH_BYTES to send the channel is full, and the agent stops reading what would
 * produce more.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "wire/frame.h"
#include "wire/msg.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHANNEL_HIGH_BYTES (256 * 1024)
/* What one round may add to a channel that is not full. */
#define CHANNEL_MAX_BYTES (CHANNEL_HIGH_BYTES + 4 * FRAME_MAX_LEN)

struct channel {
	int fd;        /* -1: no host; output is dropped */
	int output;    /* of a stream of two pipes; -1: @fd is a socket */
	size_t in_off; /* parsed */
	size_t in_len;
	struct buf out; /* owned */
	size_t out_off; /* sent */
	size_t noted;   /* bytes of @out in the journal */
	uint8_t in[FRAME_MAX_LEN];
	char scratch[FRAME_CHUNK]; /* for one read to be forwarded */
};

/** channel_init - @fd, a stream socket, becomes non-blocking; the caller keeps it. With @output
 * unless -1 both are pipes. */
int channel_init(struct channel *ch, int fd, int output) attr_must_check;
void channel_done(struct channel *ch);
void channel_close(struct channel *ch);

/** channel_fill - Return: 1, 0 at EOF, or a negative errno. */
int channel_fill(struct channel *ch) attr_must_check;
/** channel_next - borrowed until channel_fill. Return: 1, 0, or -EPROTO. */
int channel_next(struct channel *ch, struct frame *ret_frame) attr_must_check;
/** channel_flush - Return: 0, or a negative errno: the host is gone. */
int channel_flush(struct channel *ch) attr_must_check;

bool channel_is_full(const struct channel *ch);
bool channel_has_output(const struct channel *ch);
bool channel_has_room(const struct channel *ch); /* for channel_fill */
