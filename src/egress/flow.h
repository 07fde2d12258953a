/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: bytes between two sockets. A flow holds memory only while its receiver is slower than its
 * sender: an idle connection has none.
 */

#include "base/attr.h"
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most that one direction holds for a slow receiver, and that one turn of the loop moves. */
#define FLOW_CHUNK (128u * 1024)

/** flow_filter - Return: how many bytes may pass, with *ret_done set behind the last; -1:
 * malformed. */
typedef int64_t flow_filter(void *ctx, const char *data, size_t len, bool *ret_done);

struct flow {
	int from, to;
	flow_filter *filter; /* NULL: all may pass. Behind the last byte the receiver stays open */
	void *filter_ctx;
	struct buf waiting; /* received, not sent */
	bool ended;         /* @from has ended; the end is passed on once @waiting is sent */
	bool finished;      /* the end was passed on */
};

void flow_init(struct flow *f, int from, int to);
void flow_done(struct flow *f);

/**
 * flow_pump - move what can be moved without blocking, at most @most bytes from the sender.
 * @ret_moved: bytes received. Return: 0, or a negative errno: the connection is dead.
 */
int flow_pump(struct flow *f, size_t most, size_t *ret_moved) attr_must_check;
static inline bool flow_wants_read(const struct flow *f)
{
	return !f->ended && f->waiting.len == 0;
}
static inline bool flow_wants_write(const struct flow *f)
{
	return f->waiting.len > 0;
}
