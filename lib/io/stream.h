/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a non-blocking buffered stream over a connected socket. Both directions are bounded: what
 * was read waits in a buffer of fixed size until the owner has used it, and a write that would
 * make the queue longer than its maximum is refused. Writing begins before there is a socket:
 * the queue is kept until stream_open.
 *
 * A peer that stops reading is not an end by itself: later writes fail with -EPIPE, and what it
 * still sent is read until its end, which is what on_end tells.
 */

#include "base/attr.h"
#include <stddef.h>

struct buf;
struct loop;
struct stream;

struct stream_events {
	void *ctx;
	/*
	 * All bytes that are there, oldest first. Return: how many of them were used; the rest is
	 * given again together with more. May free the stream.
	 */
	size_t (*on_data)(void *ctx, const char *data, size_t len);
	/* Nothing more will come. @sys is 0 at the peer's end, a positive errno, or ENOBUFS when
	 * the buffer is full of bytes that nobody uses. Called once. May free the stream. */
	void (*on_end)(void *ctx, int sys);
};

struct stream_limits {
	size_t read_max;  /* the longest piece that on_data may leave unused */
	size_t write_max; /* the longest queue */
};

void stream_free(struct stream *s);
struct stream *stream_new(struct loop *loop, const struct stream_limits *limits,
                          const struct stream_events *events) attr_owned(stream_free);
/** stream_open - takes ownership of @fd; the queue starts to move. Once. */
void stream_open(struct stream *s, int fd);
/** stream_close - no event follows; the socket and the queue are gone. */
void stream_close(struct stream *s);
/** stream_write - Return: 0, -ENOBUFS when the queue is full, -EPIPE when nobody will read. */
int stream_write(struct stream *s, const void *data, size_t len) attr_must_check;
/**
 * stream_queue - the queue itself, for encoders that append to a buffer; only append or undo one's
 * own appending, and call stream_flush afterwards.
 */
struct buf *stream_queue(struct stream *s);
/** stream_flush - send what the socket takes now, the rest when there is room. To a peer that
 * stopped reading everything is dropped: its end, which on_end tells, is near. */
void stream_flush(struct stream *s);
/** stream_pending - bytes of the queue that were not sent yet. */
size_t stream_pending(const struct stream *s);
/**
 * stream_drain - read what is there now and give it to on_data, for an owner who knows that the
 * peer is dead and wants its last words. on_end may come from inside. Not from inside on_data.
 */
void stream_drain(struct stream *s);
