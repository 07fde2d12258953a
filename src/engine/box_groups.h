/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the groups of a box, one in each tree (step_cgroup.c). Zygotes have them, too. */

#include "base/attr.h"
#include "base/error.h"
#include "engine/cgroup.h"
#include "engine/engine.h"
#include <stdbool.h>
#include <stdint.h>

struct host;
struct tenant_group;

/* One directory per tree, in the order of struct cgroups. */
struct box_groups {
	char name[ENGINE_ID_LEN]; /* in every tree */
	int dirs[CGROUP_KIND_COUNT];
	int tasks[CGROUP_KIND_COUNT]; /* v1 only; open until the child has joined */
	bool made[CGROUP_KIND_COUNT];
	bool limited;                /* the limits are written */
	struct tenant_group *tenant; /* holds the group with the CPU controller; NULL: none */
	bool outside;                /* the tenant's group does not hold it */
};

/** groups_find_files - Return: mask of limit files that exist in @tree. */
uint32_t groups_find_files(const struct cgroup_tree *tree);
void groups_init(struct box_groups *groups);
/** groups_make - on failure call groups_remove(): some may exist. */
int groups_make(const struct host *host, struct box_groups *groups,
                struct error *err) attr_must_check;
/** groups_limit - no-op the second time: v1 accepts changed limits only in a certain order. */
int groups_limit(const struct host *host, struct box_groups *groups, const struct engine_limits *l,
                 struct error *err) attr_must_check;
/** groups_settle - the agent of a runtime's box runs: what the runtime needed to start it is no
 * longer added to the limit of processes. */
void groups_settle(const struct host *host, const struct box_groups *groups,
                   const struct engine_limits *l);
/**
 * groups_make_import - a group for all imports of images, which are work for tenants outside boxes;
 * sets host->groups.import. Memory and processes are bounded, and disk I/O as for a tenant; the CPU
 * weight is that of a box.
 */
int groups_make_import(struct host *host, uint64_t memory_bytes, struct error *err) attr_must_check;
/** groups_kill - SIGKILL to all; lifts the CPU quota so that they die at once. */
void groups_kill(const struct host *host, const struct box_groups *groups);
void group_lift_quota(int dir);
/** groups_freeze - asks for it: processes stop one after the other. */
int groups_freeze(const struct host *host, const struct box_groups *groups, bool frozen);
/** groups_are_frozen - Return: 1: no process runs any more; 0: some do; or a negative errno. */
int groups_are_frozen(const struct host *host, const struct box_groups *groups) attr_must_check;
int groups_open_kill(const struct host *host, const struct box_groups *groups);
/** groups_dir - Return: borrowed directory with the files of @kind, or -1. */
int groups_dir(const struct host *host, const struct box_groups *groups, enum cgroup_kind kind);
/** groups_count - Return: number of processes in the box; 0 without cgroups. */
uint32_t groups_count(const struct host *host, const struct box_groups *groups);
/** groups_remove - Return: 0 when all are gone, or a negative errno: try again later. */
int groups_remove(const struct host *host, struct box_groups *groups) attr_must_check;
void groups_close(struct box_groups *groups);
