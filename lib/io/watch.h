/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: readiness of a descriptor as an event. Level-triggered: what is not taken is told again. */

#include "base/attr.h"

struct loop;
struct watch;

enum watch_events {
	WATCH_READ = 1,
	WATCH_WRITE = 2,
};
typedef void watch_fn(void *ctx, int events);

void watch_free(struct watch *w);
/**
 * watch_new - @fd stays the caller's, becomes non-blocking and must outlive the watch; one watch
 * per descriptor. Nothing is watched until watch_set. An error or hang-up of the descriptor is told
 * as all the events that were asked for: the read or write that follows meets it.
 */
struct watch *watch_new(struct loop *loop, int fd, watch_fn *fn, void *ctx) attr_owned(watch_free);
/** watch_set - which events are wanted; 0 pauses. */
void watch_set(struct watch *w, int events);
