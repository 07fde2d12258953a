/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what the Docker Engine is asked to make. Pure. */

#include "base/attr.h"
#include "engine/engine.h"
#include <jansson.h>
#include <stdbool.h>

struct docker_mount;

struct docker_plan {
	const char *image;
	const char *instance, *box_id; /* labels */
	const char *runtime;           /* NULL: the server's default */
	const struct engine_limits *limits;
	uint32_t flags;    /* enum engine_flag */
	uint32_t uid;      /* of all processes of the box; also the group */
	uint32_t cpus;     /* of the server */
	uint32_t lacks;    /* layers that the agent may lack: enum wire_layer */
	bool is_host;      /* the root is the host's, not an image's */
	uint32_t own_pids; /* of the runtime itself, in the groups of the box */
	uint64_t own_memory;
	const struct docker_mount *mounts, *more_mounts;
	size_t mounts_count, more_mounts_count;
	const char *packages; /* directory, or NULL */
};

/** docker_config - the body of /containers/create. Return: owned. */
json_t *docker_config(const struct docker_plan *plan) attr_must_check;
