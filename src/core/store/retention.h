/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: retention: what is too old, too much, or deleted leaves the store, in the background. In
 * small batches with pauses between them: a request waits for one batch at most, and what is being
 * removed never holds up the rest.
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
	/* What was removed from the store is to leave memory, too. Any may be NULL. */
	void (*forget_run)(void *ctx, const char *tenant, const char *id);
	void (*forget_session)(void *ctx, const char *tenant, const char *id, uint64_t created_ms);
	/* Nothing is left of this tenant, which was deleted. */
	void (*forget_tenant)(void *ctx, const char *name);
	void *ctx;
};

/** retention_free - before the store is closed. */
void retention_free(struct retention *c);
struct retention *retention_new(const struct retention_config *config) attr_owned(retention_free);
/** retention_hurry - there is something to remove: begin a round now. */
void retention_hurry(struct retention *c);
