/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a queue of records that a thread writes, so that adding one never blocks. No callbacks; poll
 * spool_error.
 *
 * Records are written at once, to survive this process, and synced from time to time, to survive
 * the machine. The queue is bounded. Records that could not be written or synced are retried in
 * order: a full disk loses only the records beyond the bound.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spool;

struct spool_config {
	void *ctx;
	/*
	 * In the thread: write the records of @data, each ending in a newline. Return: 0 or a
	 * negative errno. *ret_taken: bytes of whole records written, also on failure.
	 */
	int (*write)(void *ctx, const char *data, size_t len, size_t *ret_taken);
	/*
	 * In the thread, at most settle_us after a write and before the end: sync. Return: 0 or a
	 * negative errno. *ret_undone: lost, write again.
	 */
	int (*settle)(void *ctx, bool *ret_undone);
	/* Called first in the thread; NULL: none. */
	int (*on_thread)(struct error *err);
	size_t max_bytes;
	uint64_t retry_us;
	uint64_t settle_us;
};

/** spool_free - waits until everything is synced or has failed. */
void spool_free(struct spool *s);
int spool_open(const struct spool_config *config, struct spool **ret_spool,
               struct error *err) attr_must_check;
/** spool_add - a record without newlines. Return: 0, or -ENOBUFS: lost and counted. */
int spool_add(struct spool *s, const char *record, size_t len) attr_must_check;
/** spool_error - a negative errno while nothing can be written, or 0. */
int spool_error(struct spool *s);
/** spool_lost - lost since the last call, for lack of room. */
uint64_t spool_lost(struct spool *s);
size_t spool_waiting(struct spool *s); /* bytes not synced */
