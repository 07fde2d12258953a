/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: one side of a connection: a socket, plain or with TLS on it. */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tls_session;

struct channel {
	int fd;                  /* owned; -1: none */
	struct tls_session *tls; /* owned; NULL: plain */
};

void channel_close(struct channel *c);
/** channel_recv - Return: bytes, 0 at the end, -EAGAIN, or another negative errno. */
ssize_t channel_recv(struct channel *c, void *data, size_t len) attr_must_check;
/** channel_send - Return: bytes, 0 if the receiver is full, or a negative errno. What was not sent
 * must be the start of the next call. */
ssize_t channel_send(struct channel *c, const void *data, size_t len) attr_must_check;
/** channel_end - nothing follows. Return: 0, -EAGAIN, or another negative errno. */
int channel_end(struct channel *c) attr_must_check;
/** channel_has_more - there are bytes that the socket does not show. */
bool channel_has_more(const struct channel *c);
/** channel_was_cut - the peer ended without the end of TLS: bytes may be missing. */
bool channel_was_cut(const struct channel *c);
