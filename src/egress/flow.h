/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: bytes between two channels. A flow holds memory only while its receiver is slower than its
 * sender: an idle connection has none.
 *
 * A flow of plain bytes that fills a turn gets a pipe, if one is left: then the kernel moves its
 * bytes from socket to socket, and no copy is made.
 */

#include "base/attr.h"
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct channel;
struct scrub;

/* The most that one direction holds for a slow receiver, and that one turn of the loop moves. */
#define FLOW_CHUNK (128u * 1024)
/* The same for a flow with a pipe, and how many there may be. */
#define FLOW_PIPE_BYTES (512u * 1024)
#define FLOW_PIPES_MAX  64

/* Pipes that flows share. */
struct flow_pipes {
	unsigned used;
};

/** flow_filter - Return: how many bytes may pass, with *ret_done set behind the last; -1:
 * malformed. */
typedef int64_t flow_filter(void *ctx, const char *data, size_t len, bool *ret_done);

struct flow {
	struct channel *from, *to; /* borrowed */
	flow_filter *filter; /* NULL: all may pass. Behind the last byte the receiver stays open */
	void *filter_ctx;
	struct scrub *scrub;      /* owned; NULL: what passes is not changed */
	bool is_secret;           /* what waits is wiped */
	struct buf waiting;       /* received, not sent */
	struct flow_pipes *pipes; /* borrowed; NULL: it never gets one */
	int pipe[2];              /* -1: none */
	size_t piped;             /* bytes in the pipe */
	bool ended;               /* @from has ended; the end is passed on once @waiting is sent */
	bool is_ending;           /* the receiver is full: the end waits */
	bool finished;            /* the end was passed on */
};

void flow_init(struct flow *f, struct channel *from, struct channel *to);
/** flow_set_scrub - takes @scrub. */
void flow_set_scrub(struct flow *f, struct scrub *scrub);
/** flow_set_pipes - the flow may use one; for plain, non-blocking channels, without filter and
 * scrub. */
void flow_set_pipes(struct flow *f, struct flow_pipes *pipes);
void flow_done(struct flow *f);

/**
 * flow_pump - move what can be moved without blocking, at most @most bytes from the sender.
 * @ret_moved: bytes received. Return: 0, or a negative errno: the connection is dead.
 */
int flow_pump(struct flow *f, size_t most, size_t *ret_moved) attr_must_check;
static inline bool flow_wants_read(const struct flow *f)
{
	return !f->ended && f->waiting.len == 0 && f->piped == 0;
}
static inline bool flow_wants_write(const struct flow *f)
{
	return f->waiting.len > 0 || f->piped > 0 || f->is_ending;
}
