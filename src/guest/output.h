/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one output stream of a program: a pipe whose bytes are forwarded up to a maximum and counted
 * beyond it. Memory does not depend on what the program writes: at most one chunk is taken per
 * call, none while the channel is full, unless there is nothing left to forward anyway.
 */

#include "base/attr.h"
#include "guest/channel.h"
#include <stdbool.h>
#include <stdint.h>

struct output {
	int fd; /* owned; -1 when closed or at its end */
	enum wire_stream stream;
	uint64_t max;      /* bytes to forward */
	uint64_t produced; /* bytes seen */
};

/** output_open - a pipe; its other end, for the program, goes to *ret_end, owned by the caller. */
int output_open(struct output *o, enum wire_stream stream, uint64_t max,
                int *ret_end) attr_must_check;
void output_close(struct output *o);
/** output_wants - whether reading makes sense now. */
bool output_wants(const struct output *o, const struct channel *ch);
/** output_account - note that @len bytes were produced. Return: how many of them to forward. */
uint32_t output_account(struct output *o, uint32_t len);
/** output_pump - read once and forward. Return: bytes read, 0 when there is nothing now or any
 * more, or a negative errno when the channel cannot take it. */
int output_pump(struct output *o, struct channel *ch, uint32_t id) attr_must_check;
