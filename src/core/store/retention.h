/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: retention: what is too old, too much, or deleted leaves the store, in the background. In
 * small batches with pauses between them: a request waits for one batch at most, and what is being
 * removed never holds up the rest.
 */

#include "base/attr.h"

struct config;
struct run_records;
struct loop;
struct session_service;
struct store;
struct store_cleaner;

struct store_clean_config {
	const struct config *config; /* all borrowed */
	struct store *store;
	struct loop *loop;
	struct run_records *executions;
	struct session_service *sessions;
	/* Nothing is left of this tenant, which was deleted; NULL: nobody cares. */
	void (*departed)(void *ctx, const char *name);
	void *ctx;
};

/** store_cleaner_free - before the store is closed. */
void store_cleaner_free(struct store_cleaner *c);
struct store_cleaner *store_cleaner_new(const struct store_clean_config *config)
	attr_owned(store_cleaner_free);
/** store_cleaner_hurry - there is something to remove: begin a round now. */
void store_cleaner_hurry(struct store_cleaner *c);
