/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: records that a thread of their own writes: to add one never blocks. What is added while the
 * thread is busy is one batch for it. Nobody is called back; who wants to know asks spool_error.
 *
 * Records are written at once, so that they outlive this process, and settled from time to time, so
 * that they outlive the machine: that costs as much for one as for many. The queue is bounded. What
 * could not be written or settled is kept and tried again, in order, so that a disk that was full
 * for a while costs nothing but the records beyond the bound.
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
	 * In the thread: write the records of @data, each followed by a newline. Return: 0, or a
	 * negative errno. *ret_taken: bytes of whole records that are written, also then.
	 */
	int (*write)(void *ctx, const char *data, size_t len, size_t *ret_taken);
	/*
	 * In the thread, at most settle_us after a write and before the end: settle what was
	 * written since the last time. Return: 0, or a negative errno. *ret_undone: nothing of it
	 * is there any more, it is to be written again.
	 */
	int (*settle)(void *ctx, bool *ret_undone);
	/* First thing in the thread (a filter of its own, say); NULL: nothing to do. */
	int (*on_thread)(struct error *err);
	size_t max_bytes;
	uint64_t retry_us;
	uint64_t settle_us;
};

/** spool_free - waits until everything is settled, or cannot be. */
void spool_free(struct spool *s);
/** spool_open - starts the thread. */
int spool_open(const struct spool_config *config, struct spool **ret_spool,
               struct error *err) attr_must_check;
/** spool_add - a record without newlines. Return: 0 or -ENOBUFS: it is lost, and counted. */
int spool_add(struct spool *s, const char *record, size_t len) attr_must_check;
/** spool_error - why nothing is written at the moment: a negative errno; 0: all is well. */
int spool_error(struct spool *s);
/** spool_lost - records that found no room since this was last asked. */
uint64_t spool_lost(struct spool *s);
size_t spool_waiting(struct spool *s); /* bytes that are not settled */
