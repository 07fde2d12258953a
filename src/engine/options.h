/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: how an engine was started (arguments.c). Constant. */

#include "engine/engine.h"
#include <stddef.h>
#include <stdint.h>

struct runtime;

struct options {
	int fd;
	const char *agent;
	size_t runners_count;
	const char *runners[ENGINE_RUNNERS_MAX];
	const char *addon; /* native part of runners; NULL: none */
	const char *runtime_dir;
	uint64_t uid_base;
	struct engine_limits maxima; /* of a box, set by the operator */
	const char *handover;        /* name of the socket in the runtime directory; NULL: none */
	uint32_t lease_ms;           /* how long boxes outlive their daemon; 0: not at all */
	uint64_t identity;
	size_t bases_count;
	const char *bases[ENGINE_BASES_MAX]; /* --roots */
	const char *zygote;                  /* library; NULL: no zygotes */
	uint32_t zygote_forks;               /* replace a zygote after this many children */
	uint64_t zygote_memory;              /* ... or above this many bytes */
	uint64_t import_memory;              /* of all imports together; 0: no group for them */
	uint64_t zygote_age_ms;              /* ... or at this age */
	uint64_t io_bytes, io_ops;           /* of a tenant per second and disk; 0: no limit */
	const char *bridge, *bridge_subnet;  /* millibox-bridge; NULL: boxes have no interface */
	size_t bridge_allow_count, resolvers_count;
	const char *bridge_allow[ENGINE_RANGES_MAX], *resolvers[ENGINE_RANGES_MAX];
	uint32_t host_network, daemon_uid;  /* see engine.h */
	const char *runtime_name, *binary;  /* as given to millibox-oci */
	struct runtime *runtime;            /* NULL: native boxes */
	const char *log_level, *log_format; /* for millibox-bridge */
};
