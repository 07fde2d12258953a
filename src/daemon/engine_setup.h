/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the engines of the configuration, as drivers. The default engine is started by the daemon
 * itself, and the daemon ends with it (ADR 5). Others, if there are any, are started by the starter
 * (driver/engine_starter.h), a child that keeps the daemon's rights: they may end, fail to start,
 * and return.
 */

#include "base/attr.h"
#include "base/error.h"
#include "daemon/guard.h"
#include "driver/driver.h"

struct config;
struct engine_starter;
struct loop;

#define ENGINE_HANDOVER_LEN 96

struct engine_setup {
	const struct config *config; /* borrowed, as the following */
	const char *const *bases;    /* directories of roots, NULL-terminated */
	const char *custody;         /* engines outlive the daemon under names that begin so */
	/* The default engine is gone. */
	void (*on_engine_lost)(void *ctx, const struct error *err);
	void *ctx;

	struct driver_set set;
	struct driver *main; /* the default; owned, as all in the set */
	struct guard guard;  /* of the starter */
	struct engine_starter *starter;
};

/** engine_setup_start - while there are rights to give. The default engine must start. */
int engine_setup_start(struct engine_setup *s, struct error *err) attr_must_check;
int engine_setup_attach(struct engine_setup *s, struct loop *loop,
                        struct error *err) attr_must_check;
/** engine_setup_done - waits for the engines' cleanup. */
void engine_setup_done(struct engine_setup *s);
