/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: output pipes of finished runs. A process that a run left behind may keep writing: its output
 * is discarded, not mixed into the next run, and it gets no SIGPIPE. Beyond DISCARD_MAX the oldest
 * pipe is closed.
 */

#include <stddef.h>

#define DISCARD_MAX 16

struct pollfd;

struct discard {
	int fds[DISCARD_MAX]; /* owned; -1: free; oldest first */
};

void discard_init(struct discard *s);
/** discard_add - take @fd, a non-blocking read end; -1: none. */
void discard_add(struct discard *s, int fd);
void discard_watch(const struct discard *s, struct pollfd *fds);
/** discard_pump - read once from each ready pipe. Pipes added since discard_watch wait. */
void discard_pump(struct discard *s, const struct pollfd *fds, char *scratch, size_t size);
