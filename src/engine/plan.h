/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a box as an ordered list of steps. Pure: made from facts about the host and the requested
 * limits without touching the system, so it can be tested and printed. apply.c runs it: every
 * planned step succeeds or the box is not made, so the plan's mask of layers holds for the box.
 *
 * The table in plan.c is in order of execution; each row gives the reason why its step cannot come
 * earlier.
 */

#include "base/attr.h"
#include "base/error.h"
#include "engine/engine.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who runs a step. The child starts while the engine maps its ids, and waits for the release
 * between JOIN and BUILD. */
enum plan_phase {
	PLAN_PREPARE, /* the engine */
	PLAN_JOIN,    /* the child, before its ids are mapped */
	PLAN_BUILD,   /* the child, after the release */
	PLAN_PHASE_COUNT
};

enum plan_step {
	STEP_RESERVE,
	STEP_CGROUP_MAKE,
	STEP_CGROUP_LIMIT,
	STEP_CHANNELS,
	STEP_NET,
	STEP_EGRESS,
	STEP_BRIDGE,
	STEP_GATEWAY,
	STEP_DESCRIBE,
	STEP_LAYERS,
	STEP_PACKAGES,
	STEP_CLONE,
	STEP_INJECT,
	STEP_IDMAP,
	STEP_OOM_SCORE,
	STEP_RELEASE,
	STEP_DEATHSIG,
	STEP_CGROUP_JOIN,
	STEP_CGROUP_VERIFY,
	STEP_WAIT,
	STEP_BECOME,
	STEP_SESSION,
	STEP_CGROUP_NS,
	STEP_TIME_NS,
	STEP_NESTING,
	STEP_HOSTNAME,
	STEP_ROOT,
	STEP_WRITABLE,
	STEP_RESOLVER,
	STEP_TERMINALS,
	STEP_LISTEN,
	STEP_PROC,
	STEP_MASKS,
	STEP_ENCLOSE,
	STEP_PIVOT,
	STEP_RLIMITS,
	STEP_DESCRIPTORS,
	STEP_CAPS,
	STEP_EXEC,
	STEP_LAUNCH,
	STEP_COUNT
};

struct plan_facts {
	enum engine_cgroup cgroup;
	uint32_t cgroup_layers; /* LAYER_CGROUP_MEMORY, _PIDS, _CPU with a usable controller */
	bool has_v1;            /* some controller is joined by writing to a tasks file */
	bool has_time_ns;
	bool has_images;   /* overlayfs can be mounted */
	bool has_bridge;   /* millibox-bridge was started */
	bool host_network; /* every box has the network of the host, and none has its own */
	bool has_runtime;  /* a runtime makes the container (runtime.h) */
	bool nests;        /* ... and user namespaces of its own */
	uint32_t features; /* mask of enum engine_feature; of a runtime, what its boxes can have */
	enum engine_ids ids;
};

struct plan {
	struct engine_limits limits;
	uint32_t flags;
	struct plan_facts facts;
	uint32_t layers; /* mask of enum wire_layer that all steps together apply */
	size_t count;
	enum plan_step steps[STEP_COUNT];
};

/** plan_make - ERR_UNAVAILABLE if the host lacks something that @flags require. */
int plan_make(const struct plan_facts *facts, const struct engine_limits *limits, uint32_t flags,
              struct plan *ret_plan, struct error *err) attr_must_check;

enum plan_phase plan_phase(enum plan_step step);
const char *plan_step_name(enum plan_step step);
const char *plan_step_why(enum plan_step step);
/** plan_step_what - what the step does for this box. */
void plan_step_what(const struct plan *plan, enum plan_step step, char *ret_text, size_t size);
/** plan_agent_layers - layers that the agent adds, on a kernel with this Landlock ABI. */
uint32_t plan_agent_layers(uint32_t landlock_abi);
