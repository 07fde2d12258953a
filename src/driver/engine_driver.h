/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a driver over the protocol of engine/engine.h: one instance per configured engine. What its
 * boxes can have is what the engine's probe says. Only for the daemon's startup.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct driver;
struct engine_command;
struct engine_starter;
struct error;
struct loop;

/* An option of an engine's command line. */
struct engine_option {
	const char *name; /* "--agent" */
	const char *word; /* NULL: the number */
	uint64_t number;
	bool is_file;    /* its contents are part of the identity */
	bool may_differ; /* it is not part of the identity */
};

/* Borrowed for the call, if nothing else is said. */
struct engine_config {
	const char *name;    /* of the configuration; copied */
	const char *program; /* path */
	const struct engine_option *options;
	size_t options_count;
	const char *agent_path;  /* whose filters receipts name */
	const char *runtime_dir; /* where engines wait for another daemon */
	/* Required layers come from the setting `isolation`; else from the engine's probe. */
	bool is_native;
	bool strict; /* of a native one */
	/* Name of the handover socket in the runtime directory, the same for all daemons of a state
	 * directory, and how long kept boxes outlive this daemon. NULL or 0: none do. */
	const char *handover;
	uint64_t lease_us;
	uint32_t daemon_uid; /* owner of images; 0: an id of the engine's own */
	/* Of an engine of its own, for boxes that share the network of the host; NULL: none. */
	const struct engine_config *host_network;
	/* From the loop: no box can be created any more. NULL: it is started again. */
	void (*on_engine_lost)(void *ctx, const struct error *err);
	void *ctx;
	/* Of one that is started again. Not owned; outlives the driver. */
	struct engine_starter *starter;
	uint32_t number; /* of its command */
};

/** engine_command_of - how the starter starts it. */
void engine_command_of(const struct engine_config *config, struct engine_command *ret_command);
/**
 * engine_driver_spawn - start the engine, or take over an earlier daemon's that keeps boxes and has
 * the same build and options. Before the daemon drops privileges and the loop runs; blocks until
 * the engine has probed the host or failed. One that is started again has a driver even if it
 * failed, which refuses boxes until the engine is there.
 */
int engine_driver_spawn(const struct engine_config *config, struct driver **ret_driver,
                        struct error *err) attr_must_check;
int engine_driver_attach_loop(struct driver *d, struct loop *loop,
                              struct error *err) attr_must_check;
