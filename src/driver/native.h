/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the native driver, whose boxes are built by millibox-engine. Only the daemon's start
 * includes this header.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stdint.h>

struct driver;
struct error;
struct loop;

struct native_config {
	const char *engine_path; /* borrowed for the call */
	const char *agent_path;
	const char *zygote_path;      /* library of zygotes; NULL: no zygotes */
	uint64_t zygote_forks;        /* replace it after this many children */
	uint64_t zygote_memory_bytes; /* replace it when it has grown to this */
	const char *runners_dir;
	const char *runtime_dir;
	const char *const *roots; /* directories whose subdirectories are roots */
	const char *log_level;    /* passed to the engine as they are */
	const char *log_format;
	uint64_t uid_base;
	/* Upper limits of one box, which the engine enforces against the daemon. */
	uint64_t memory_max_bytes, disk_max_bytes, processes_max;
	uint64_t cpu_max_millicores; /* 0: all cores */
	bool strict;
	/* Name of the handover socket in the runtime directory, the same for all daemons of one
	 * state directory, and how long kept boxes outlive this daemon. NULL or 0: none do. */
	const char *handover;
	uint64_t lease_us;
	/* From the loop: no more boxes can be created. */
	void (*on_engine_lost)(void *ctx, const struct error *err);
	void *ctx;
};

/**
 * native_spawn - start millibox-engine, or take over the engine of an earlier daemon that still
 * keeps boxes and has the same build and options. Call before the daemon drops its privileges and
 * before the loop runs; blocks until the engine has probed the host or failed.
 */
int native_spawn(const struct native_config *config, struct driver **ret_driver,
                 struct error *err) attr_must_check;
int native_attach_loop(struct driver *d, struct loop *loop, struct error *err) attr_must_check;
