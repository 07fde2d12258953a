/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the native driver; millibox-engine builds its boxes. Only for the daemon's startup. */

#include "base/attr.h"
#include <stdbool.h>
#include <stdint.h>

struct driver;
struct error;
struct loop;

struct native_config {
	const char *engine_path; /* borrowed for the call */
	const char *agent_path;
	const char *zygote_path;      /* zygote library; NULL: none */
	uint64_t zygote_forks;        /* replace it after so many children */
	uint64_t zygote_memory_bytes; /* replace it at this size */
	uint64_t zygote_age_us;       /* replace it at this age */
	const char *addon_path;       /* native part of runners; NULL: none */
	const char *runners_dir;
	char *const *more_runners; /* NULL-terminated; NULL: none */
	const char *runtime_dir;
	const char *const *roots; /* their subdirectories are roots */
	const char *log_level;    /* for the engine */
	const char *log_format;
	uint64_t uid_base;
	/* Limits per box, which the engine enforces against the daemon. */
	uint64_t memory_max_bytes, disk_max_bytes, processes_max;
	uint64_t cpu_max_millicores; /* 0: all cores */
	/* Of a tenant per second and disk; 0: no limit. */
	uint64_t io_bytes, io_ops;
	/* millibox-bridge; NULL: boxes have no interface. Lists are NULL-terminated. */
	const char *bridge_path, *bridge_subnet;
	char *const *bridge_allow, *const *bridge_resolvers;
	/* A second engine, for boxes that share the network of the host. */
	bool host_network;
	char *const *host_network_resolvers; /* NULL-terminated */
	uint32_t daemon_uid;                 /* of that engine; native_spawn sets it */
	/* Of all image imports together. */
	uint64_t import_memory_bytes;
	bool strict;
	/* Name of the handover socket in the runtime directory, the same for all daemons of a state
	 * directory, and how long kept boxes outlive this daemon. NULL or 0: none do. */
	const char *handover;
	uint64_t lease_us;
	/* From the loop: no box can be created any more. */
	void (*on_engine_lost)(void *ctx, const struct error *err);
	void *ctx;
};

/**
 * native_spawn - start millibox-engine, or take over an earlier daemon's that keeps boxes and has
 * the same build and options. Before the daemon drops privileges and the loop runs; blocks until
 * the engine has probed the host or failed.
 */
int native_spawn(const struct native_config *config, struct driver **ret_driver,
                 struct error *err) attr_must_check;
int native_attach_loop(struct driver *d, struct loop *loop, struct error *err) attr_must_check;
