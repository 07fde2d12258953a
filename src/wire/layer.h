/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: isolation layers of a box, as bits of masks on the wire, in engine replies and in receipts.
 * Pure.
 */

#include <stdint.h>

enum wire_layer {
	LAYER_USER,
	LAYER_PID,
	LAYER_MNT,
	LAYER_NET,
	LAYER_IPC,
	LAYER_UTS,
	LAYER_CGROUP_NS,
	LAYER_TIME,
	LAYER_CGROUP_MEMORY,
	LAYER_CGROUP_PIDS,
	LAYER_CGROUP_CPU,
	LAYER_UID_RANGE, /* own host ids, different for agent and payload */
	LAYER_CAPS,
	LAYER_NO_NEW_PRIVS,
	LAYER_SECCOMP,
	LAYER_LANDLOCK,
	LAYER_RLIMITS,
	LAYER_COUNT
};

#define LAYER_BIT(layer) (1u << (layer))
#define LAYERS_ALL       ((1u << LAYER_COUNT) - 1)

/** layer_name - "user", "cgroup.memory": as in API, CLI and docs. */
const char *layer_name(enum wire_layer layer);
/** layer_loss - what its absence means, for people. */
const char *layer_loss(enum wire_layer layer);
