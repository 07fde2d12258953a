/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the use of a network namespace leaves behind, as the kernel tells it: sockets that are
 * still open, packets that went over its only device, counters of its protocols, flow labels. One
 * text; a namespace in which nobody did anything reads byte for byte as a new one. What else there
 * is to change in a namespace (addresses, routes, rules, settings) takes capabilities over it,
 * which no box has.
 *
 * The files tell of the namespace in which they were opened, from wherever they are read and as
 * often as they are read. Each of them keeps that namespace alive.
 */

#include "base/attr.h"

struct buf;

#define NETTRACES_MAX   (128 << 10)
#define NETTRACES_FILES 10

struct nettraces {
	int files[NETTRACES_FILES]; /* -1: not there; owned */
};

/** nettraces_open - of the namespace that the caller is in. Return: 0 or -errno, none left open. */
int nettraces_open(struct nettraces *traces) attr_must_check;
void nettraces_close(struct nettraces *traces);
/** nettraces_read - as they are now. @ret: emptied first. Return: 0 or -errno with it empty. */
int nettraces_read(const struct nettraces *traces, struct buf *ret) attr_must_check;
