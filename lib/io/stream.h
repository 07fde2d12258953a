/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a non-blocking buffered stream over a connected socket. Both directions are bounded: input
 * waits in a buffer of fixed size until the owner consumes it, and a write that would exceed the
 * queue's maximum is rejected. Writing may start before there is a socket: the queue is kept until
 * stream_open.
 *
 * When the peer stops reading, later writes fail with -EPIPE and the stream reads on to EOF, which
 * on_end reports.
 */

#include "base/attr.h"
#include <stddef.h>

struct buf;
struct loop;
struct stream;

struct stream_events {
	void *ctx;
	/*
	 * All unread bytes, oldest first. Return: how many were consumed; the rest is passed again
	 * together with more. May free the stream.
	 */
	size_t (*on_data)(void *ctx, const char *data, size_t len);
	/* No more data. @sys is 0 at EOF, a positive errno, or ENOBUFS when the buffer is full
	 * and the owner consumes nothing. Called once. May free the stream. */
	void (*on_end)(void *ctx, int sys);
};

struct stream_limits {
	size_t read_max;  /* longest piece that on_data may leave unconsumed */
	size_t write_max; /* longest queue */
};

void stream_free(struct stream *s);
struct stream *stream_new(struct loop *loop, const struct stream_limits *limits,
                          const struct stream_events *events) attr_owned(stream_free);
/** stream_open - take ownership of @fd and start sending the queue. Once. */
void stream_open(struct stream *s, int fd);
/** stream_close - close the socket and drop the queue; no event follows. */
void stream_close(struct stream *s);
/**
 * stream_write - Return: 0, -ENOBUFS when the queue is full, -EPIPE when the peer no longer reads.
 */
int stream_write(struct stream *s, const void *data, size_t len) attr_must_check;
/**
 * stream_queue - the queue itself, for encoders that append to a buffer; only append or undo your
 * own append, and call stream_flush afterwards.
 */
struct buf *stream_queue(struct stream *s);
/**
 * stream_flush - send what the socket takes now, the rest when it has room. If the peer stopped
 * reading, drop everything; on_end follows soon.
 */
void stream_flush(struct stream *s);
/** stream_pending - queued bytes that were not sent yet. */
size_t stream_pending(const struct stream *s);
/**
 * stream_drain - read everything available now and pass it to on_data, for an owner who knows that
 * the peer is dead and wants its last output. May call on_end. Not from inside on_data.
 */
void stream_drain(struct stream *s);
