/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: retention: removes expired, excess and deleted rows from the store in the background. Small
 * batches with pauses: a request waits for at most one batch.
 */

#include "base/attr.h"
#include <stdint.h>

struct config;
struct loop;
struct store;
struct retention;

struct retention_config {
	const struct config *config; /* all borrowed */
	struct store *store;
	struct loop *loop;
	/* Drop removed rows from memory. Any may be NULL. */
	void (*forget_run)(void *ctx, const char *tenant, const char *id);
	void (*forget_session)(void *ctx, const char *tenant, const char *id, uint64_t created_ms);
	/* This deleted tenant has no rows left. */
	void (*forget_tenant)(void *ctx, const char *name);
	void *ctx;
};

/** retention_free - call before store_close. */
void retention_free(struct retention *c);
struct retention *retention_new(const struct retention_config *config) attr_owned(retention_free);
/** retention_hurry - start a round now. */
void retention_hurry(struct retention *c);
