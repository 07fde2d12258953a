/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the use of a network namespace leaves behind, as the kernel tells it: sockets that are
 * still open, packets that went over its only device, counters of its protocols, flow labels. One
 * text; a namespace in which nobody did anything reads byte for byte as a new one. What else there
 * is to change in a namespace (addresses, routes, rules, settings) takes capabilities over it,
 * which no box has.
 */

#include "base/attr.h"

struct buf;

#define NETTRACES_MAX (128 << 10)

/** nettraces_read - of the namespace that the caller is in. @ret: emptied first. */
int nettraces_read(struct buf *ret) attr_must_check;
