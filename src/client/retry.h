/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: when a request is sent again: only if the daemon has begun nothing. A daemon that is busy
 * says so in its answer, with the time after which the same request may succeed; one that restarts,
 * or whose queue of connections is full, is not reached at all. The caller gives up at a fixed
 * time.
 */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Of one call. */
struct retry {
	uint64_t until_us;          /* by the clock: no wait ends later */
	int cancel_fd;              /* readable: stop; 0: none */
	void (*on_busy)(void *ctx); /* once, before a wait of a second or more; NULL: none */
	void *ctx;
	bool told;
	unsigned attempts; /* to reach a daemon that refused the connection */
};

/**
 * retry_refused - wait if @problem, the daemon's error object, asks for it. Return: 1: send the
 * request again; 0: do not; -1 with *err: cancelled meanwhile.
 */
int retry_refused(struct retry *retry, const json_t *problem, struct error *err) attr_must_check;
/**
 * retry_unreached - the same after *err, which a 1 clears; nothing but a refused connection is
 * tried again.
 */
int retry_unreached(struct retry *retry, struct error *err) attr_must_check;
