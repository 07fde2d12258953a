/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: output pipes of runs that are over. A process that a run left behind may go on writing to
 * them: into nothing, rather than into the next run's answer, and without dying of it. Beyond
 * DISCARD_MAX the oldest is closed, and then it does die of it.
 */

#include <stddef.h>

#define DISCARD_MAX 16

struct pollfd;

struct discard {
	int fds[DISCARD_MAX]; /* owned; -1: free. The oldest first */
};

void discard_init(struct discard *s);
/** discard_add - take @fd, the non-blocking end for reading; -1 is none. */
void discard_add(struct discard *s, int fd);
/** discard_watch - fill DISCARD_MAX entries for poll. */
void discard_watch(const struct discard *s, struct pollfd *fds);
/** discard_pump - read once what is ready and throw it away. @fds are as discard_watch filled them;
 * pipes that came since have their turn in the next round. */
void discard_pump(struct discard *s, const struct pollfd *fds, char *scratch, size_t size);
