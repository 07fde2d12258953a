/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a file operation whose result is small enough to be collected: listings, metadata, changes
 * of the tree, the beginning of a file, a file that is in memory already. Whoever asked is told the
 * end once. filecall.h answers requests of HTTP with it.
 */

#include "api/json/encode_file.h"
#include "base/attr.h"
#include "base/error.h"
#include "driver/driver.h"
#include <stddef.h>
#include <stdint.h>

struct collect;
struct session;

/* Borrowed for the call. */
struct collect_request {
	struct box_file_request request;
	const char *data; /* WRITE: copied */
	size_t len;
	size_t data_max; /* READ: bytes at most; more are a failure */
	/* The end, from the loop. Not called after collect_cancel. */
	void (*on_over)(void *ctx, const struct file_result *result);
	void *ctx;
};

/** collect_start - Return: a handle, valid until on_over; or NULL with *err: nothing was begun. */
struct collect *collect_start(struct session *session, const struct collect_request *request,
                              struct error *err) attr_must_check;
/** collect_cancel - no callback follows. */
void collect_cancel(struct collect *c);
