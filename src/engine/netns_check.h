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

#define NETNS_CHECK_MAX   (128 << 10)
#define NETNS_CHECK_FILES 10

struct netns_check {
	int files[NETNS_CHECK_FILES]; /* -1: not there; owned */
};

/** netns_check_open - of the namespace that the caller is in. Return: 0 or -errno, none left open.
 */
int netns_check_open(struct netns_check *traces) attr_must_check;
void netns_check_close(struct netns_check *traces);
/** netns_check_read - as they are now. @ret: emptied first. Return: 0 or -errno with it empty. */
int netns_check_read(const struct netns_check *traces, struct buf *ret) attr_must_check;
