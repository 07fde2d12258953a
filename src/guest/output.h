/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one output stream of a program: a pipe whose bytes are forwarded up to a maximum, then only
 * counted; or a terminal, which is read up to what was granted, and then its program waits. One
 * chunk is read per call, and none while the channel is full unless the maximum has been forwarded.
 */

#include "base/attr.h"
#include "guest/channel.h"
#include <stdbool.h>
#include <stdint.h>

struct output {
	int fd; /* owned; -1 when closed or at EOF */
	enum wire_stream stream;
	uint64_t max;      /* to forward */
	uint64_t produced; /* seen */
	bool waits;        /* at the maximum it is not read; else counted */
};

/** output_open - *ret_end, the program's end, is the caller's. */
int output_open(struct output *o, enum wire_stream stream, uint64_t max,
                int *ret_end) attr_must_check;
void output_close(struct output *o);
bool output_wants(const struct output *o, const struct channel *ch);
/** output_account - Return: how many of @len bytes to forward. */
uint32_t output_account(struct output *o, uint32_t len);
/**
 * output_pump - read once and forward. Return: bytes read, 0 at EOF or with nothing available, or
 * the channel's negative errno.
 */
int output_pump(struct output *o, struct channel *ch, uint32_t id) attr_must_check;
