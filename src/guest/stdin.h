/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the caller's bytes on their way into a program's stdin. The host may send WIRE_STDIN_WINDOW
 * bytes ahead; each byte that went into the pipe, or that nobody will ever read, gives room for
 * another. The control socket is never the program's stdin.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "guest/channel.h"
#include <stdbool.h>
#include <stdint.h>

struct input {
	int fd;             /* owned; -1 when closed */
	struct buf pending; /* owned; at most the window */
	uint32_t room;      /* bytes done with that the host has not been told of */
	uint64_t taken;     /* bytes that came */
	bool opened;        /* the program has one */
	bool ended;         /* no more will come */
};

/** input_open - a pipe; the program's end goes to *ret_end, owned by the caller. */
int input_open(struct input *in, int *ret_end) attr_must_check;
void input_close(struct input *in);
/** input_add - Return: 0, or -EPROTO when the host sent more than the window. */
int input_add(struct input *in, const struct wire_bytes *data) attr_must_check;
/** input_end - the pipe is closed as soon as everything went in. */
void input_end(struct input *in);
bool input_wants(const struct input *in);
/** input_pump - write what the pipe takes and tell the host of the room. */
int input_pump(struct input *in, struct channel *ch, uint32_t id) attr_must_check;
