/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a box as an ordered list of steps. Pure: the plan is made from facts about the host and the
 * limits asked for, without touching the system, so it can be tested and printed. apply.c walks it;
 * a step that is in the plan succeeds, or the box is not made. That is why the mask of layers can
 * be computed from the plan and still be the truth.
 *
 * Order is data: the table in plan.c is in the order of doing, and each row says why it cannot come
 * earlier.
 */

#include "base/attr.h"
#include "base/error.h"
#include "engine/engine.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who does a step. The child begins while the engine is still giving it its ids, and waits for the
 * release between the last two. */
enum plan_phase {
	PLAN_PREPARE, /* the engine */
	PLAN_JOIN,    /* the child, alone with the descriptors it was given */
	PLAN_BUILD,   /* the child, from inside */
	PLAN_PHASE_COUNT
};

enum plan_step {
	STEP_RESERVE,
	STEP_CGROUP_MAKE,
	STEP_CGROUP_LIMIT,
	STEP_CHANNELS,
	STEP_NET,
	STEP_LAYERS,
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
	STEP_PROC,
	STEP_MASKS,
	STEP_PIVOT,
	STEP_RLIMITS,
	STEP_DESCRIPTORS,
	STEP_CAPS,
	STEP_EXEC,
	STEP_COUNT
};

/* What the host can do, as far as it changes the plan. */
struct plan_facts {
	enum engine_cgroup cgroup;
	uint32_t cgroup_layers; /* of LAYER_CGROUP_MEMORY, _PIDS, _CPU: those with a usable
	                           controller */
	bool has_v1;            /* some controller is joined by writing to a tasks file */
	bool has_time_ns;
	bool has_images; /* file systems can be layered */
	enum engine_ids ids;
};

struct plan {
	struct engine_limits limits;
	uint32_t flags;
	struct plan_facts facts;
	uint32_t layers; /* mask of enum wire_layer that doing all steps gives */
	size_t count;
	enum plan_step steps[STEP_COUNT];
};

/** plan_make - the steps for a box; ERR_UNAVAILABLE when what @flags require is not there. */
int plan_make(const struct plan_facts *facts, const struct engine_limits *limits, uint32_t flags,
              struct plan *ret_plan, struct error *err) attr_must_check;

enum plan_phase plan_phase(enum plan_step step);
const char *plan_step_name(enum plan_step step);
const char *plan_step_why(enum plan_step step);
/** plan_step_what - what the step does for this box, in words, into @ret_text. */
void plan_step_what(const struct plan *plan, enum plan_step step, char *ret_text, size_t size);
/** plan_agent_layers - what the agent adds inside, on a kernel with this Landlock ABI. */
uint32_t plan_agent_layers(uint32_t landlock_abi);
