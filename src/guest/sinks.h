/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: output pipes of runs that are over. A process that a run left behind may go on writing to
 * them: into nothing, rather than into the next run's answer, and without dying of it. Beyond
 * SINKS_MAX the oldest is closed, and then it does die of it.
 */

#include <stddef.h>

#define SINKS_MAX 16

struct pollfd;

struct sinks {
	int fds[SINKS_MAX]; /* owned; -1: free. The oldest first */
};

void sinks_init(struct sinks *s);
/** sinks_add - take @fd, the non-blocking end for reading; -1 is none. */
void sinks_add(struct sinks *s, int fd);
/** sinks_watch - fill SINKS_MAX entries for poll. */
void sinks_watch(const struct sinks *s, struct pollfd *fds);
/** sinks_pump - read once what is ready and throw it away. @fds are as sinks_watch filled them;
 * pipes that came since have their turn in the next round. */
void sinks_pump(struct sinks *s, const struct pollfd *fds, char *scratch, size_t size);
