/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: reads the traces that use leaves in a network namespace: open sockets, packets on its only
 * device, protocol counters, flow labels. The text of an unused namespace equals that of a new one
 * byte for byte. Everything else in a namespace (addresses, routes, rules, settings) can be changed
 * only with capabilities over it, which no box has.
 *
 * The files refer to the namespace in which they were opened, and keep it alive.
 */

#include "base/attr.h"

struct buf;

#define NETNS_CHECK_MAX   (128 << 10)
#define NETNS_CHECK_FILES 10

struct netns_check {
	int files[NETNS_CHECK_FILES]; /* owned; -1: missing on this kernel */
};

/** netns_check_open - open the files of the caller's namespace. Return: 0 or a negative errno. */
int netns_check_open(struct netns_check *traces) attr_must_check;
void netns_check_close(struct netns_check *traces);
/** netns_check_read - read all files into @ret. Return: 0, or a negative errno with @ret empty. */
int netns_check_read(const struct netns_check *traces, struct buf *ret) attr_must_check;
