/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the caller's bytes for a program's stdin. The host may send WIRE_STDIN_WINDOW bytes ahead;
 * each byte written or discarded makes room for another. The program's stdin is never the control
 * socket.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "guest/channel.h"
#include <stdbool.h>
#include <stdint.h>

struct input {
	int fd;             /* owned; -1 when closed */
	struct buf pending; /* owned; at most the window */
	uint32_t room;      /* consumed, not yet reported */
	uint64_t taken;
	bool opened; /* the program has a stdin pipe */
	bool ended;
};

/** input_open - *ret_end, the program's end, is the caller's. */
int input_open(struct input *in, int *ret_end) attr_must_check;
/** input_take - @fd, non-blocking, is where the bytes go; it is owned from now on. */
void input_take(struct input *in, int fd);
void input_close(struct input *in);
/** input_add - Return: 0, or -EPROTO: more than the window. */
int input_add(struct input *in, const struct wire_bytes *data) attr_must_check;
/** input_end - close the pipe once everything is written. */
void input_end(struct input *in);
bool input_wants(const struct input *in);
/** input_pump - write what the pipe takes; report the room to the host. */
int input_pump(struct input *in, struct channel *ch, uint32_t id) attr_must_check;
