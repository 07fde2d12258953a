/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: readiness of a descriptor as an event, level-triggered. */

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
 * watch_new - the caller keeps @fd, which becomes non-blocking and must outlive the watch; one per
 * descriptor. Watches nothing until watch_set. An error or hang-up counts as all requested events.
 */
struct watch *watch_new(struct loop *loop, int fd, watch_fn *fn, void *ctx) attr_owned(watch_free);
/** watch_set - select events; 0 pauses. */
void watch_set(struct watch *w, int events);
