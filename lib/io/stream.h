/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a non-blocking buffered stream over a connected socket. Both directions are bounded: input
 * waits until the owner consumes it; a write beyond the queue's maximum is rejected. Writing may
 * start before stream_open.
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
	 * All unread bytes. Return: how many were consumed; the rest comes again with more. May
	 * free the stream.
	 */
	size_t (*on_data)(void *ctx, const char *data, size_t len);
	/* Called once. @sys: 0 at EOF, a positive errno, or ENOBUFS: the buffer is full and the
	 * owner consumes nothing. May free the stream. */
	void (*on_end)(void *ctx, int sys);
};

struct stream_limits {
	size_t read_max;  /* longest unconsumed input */
	size_t write_max; /* longest queue */
};

void stream_free(struct stream *s);
struct stream *stream_new(struct loop *loop, const struct stream_limits *limits,
                          const struct stream_events *events) attr_owned(stream_free);
/** stream_open - take ownership of @fd and start sending. Once. */
void stream_open(struct stream *s, int fd);
/** stream_close - close the socket and drop the queue; no event follows. */
void stream_close(struct stream *s);
/** stream_write - Return: 0, -ENOBUFS: queue full, -EPIPE: the peer no longer reads. */
int stream_write(struct stream *s, const void *data, size_t len) attr_must_check;
/** stream_queue - for encoders: append, or undo your own append, then call stream_flush. */
struct buf *stream_queue(struct stream *s);
/**
 * stream_flush - send what the socket takes, the rest later. If the peer stopped reading, drop
 * everything; on_end follows.
 */
void stream_flush(struct stream *s);
size_t stream_pending(const struct stream *s);
/**
 * stream_drain - pass everything available to on_data: the last output of a dead peer. May call
 * on_end. Not from inside on_data.
 */
void stream_drain(struct stream *s);
