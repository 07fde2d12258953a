/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: finds the cgroup trees that the engine may use. Decided per controller, never per version:
 * on a hybrid host memory, pids and cpu are on v1, while the v2 tree has no controllers but can
 * kill and freeze.
 *
 * Groups are <parent>/millibox/<instance>/<group>, and where the CPU is limited
 * <parent>/millibox/<instance>/t-<tenant>/<group> (cgroup_tenant.h). A tree that limits only disk
 * I/O has no groups of boxes (cgroup_io.h). The engine holds a flock on the instance's directory: a
 * free lock means that a dead engine left everything below.
 */

#include "base/attr.h"
#include "base/error.h"
#include "engine/engine.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_PATH_MAX      512
#define CGROUP_TENANT_PREFIX "t-"

enum cgroup_kind {
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CPU,
	CGROUP_CPUACCT, /* v1 only: counts CPU time; v2 needs no controller for it */
	CGROUP_FREEZER, /* v1 only, and only without a v2 tree */
	CGROUP_IO,      /* of a tenant, see cgroup_io.h */
	CGROUP_UNIFIED, /* the v2 tree itself: kill and freeze */
	CGROUP_KIND_COUNT
};

#define CGROUP_BIT(kind) (1u << (kind))

struct cgroup_mount {
	bool v2;
	uint32_t kinds;              /* v1: controllers on it; v2: CGROUP_UNIFIED */
	char point[CGROUP_PATH_MAX]; /* mount point */
	char root[CGROUP_PATH_MAX];  /* group that is mounted there; "" for the root */
	char own[CGROUP_PATH_MAX];   /* the engine's own group below that; "" for the root */
};

struct cgroup_layout {
	size_t count;
	struct cgroup_mount mounts[CGROUP_KIND_COUNT];
};

/**
 * cgroup_layout_parse - parse /proc/self/mountinfo and /proc/self/cgroup. Pure. The first mount of
 * a controller counts; malformed lines are skipped.
 */
void cgroup_layout_parse(const char *mountinfo, const char *self, struct cgroup_layout *ret_layout);

struct cgroup_tree {
	bool v2;
	bool per_tenant;            /* boxes have no group in it: they join their tenant's */
	uint32_t kinds;             /* controllers used for boxes */
	bool owned;                 /* the whole parent is ours: delegated, or a container's root */
	uint32_t optional;          /* limit rows (step_cgroup.c) whose files exist */
	int parent;                 /* directory that holds "millibox"; owned */
	int home;                   /* .../millibox; owned */
	int dir;                    /* .../millibox/<instance>; owned; -1 before cgroups_claim */
	char path[CGROUP_PATH_MAX]; /* of home, as /proc/PID/cgroup names it */
};

struct cgroups {
	size_t count;
	struct cgroup_tree trees[CGROUP_KIND_COUNT];
	enum engine_cgroup kind;
	uint32_t layers; /* usable LAYER_CGROUP_* */
	bool has_v1;
	bool wants_io; /* disk I/O is to be limited */
	int kill_tree; /* index of the tree with cgroup.kill, or -1 */
	int freeze_tree;
	int import[CGROUP_KIND_COUNT]; /* files that move a process to the import group; owned */
	uint32_t instance;
};

/**
 * cgroups_open - open the usable trees; none is not an error. Before template_enter(). @privileged:
 * may use the root of a hierarchy. @wants_io: also those that limit disk I/O.
 */
int cgroups_open(bool privileged, bool wants_io, struct cgroups *ret_groups,
                 struct error *err) attr_must_check;
/** cgroups_claim - make and lock the directories of @instance. Return: 0, -EBUSY if it is alive. */
int cgroups_claim(struct cgroups *groups, uint32_t instance) attr_must_check;
/** cgroups_enable - after claim: enable controllers, set kind and layers. */
void cgroups_enable(struct cgroups *groups);
/** cgroup_pass_on - let groups of boxes beneath @dir have the controllers of @tree. No-op on v1. */
int cgroup_pass_on(const struct cgroup_tree *tree, int dir) attr_must_check;
/**
 * cgroups_delegate - after enable: give the instance's directories to @owner, who may then make
 * groups and move processes between them. *ret_group: a group for the engine itself in the v2 tree,
 * because only processes inside a delegated tree may be moved in it; owned; -1 without v2.
 */
int cgroups_delegate(const struct cgroups *groups, uint32_t owner, int *ret_group) attr_must_check;
/** cgroups_unclaim - unlock the directories of cgroups_claim(). */
void cgroups_unclaim(struct cgroups *groups);
/**
 * cgroups_sweep_own - after claim: kill and remove what an earlier engine of this number left.
 * Return: 0, or -EBUSY: the instance's ids must not be used.
 */
int cgroups_sweep_own(const struct cgroups *groups) attr_must_check;
/** cgroups_sweep_ended - remove what this instance's engine left, after it has ended. */
void cgroups_sweep_ended(const struct cgroups *groups);
/** cgroups_sweep_others - the same for instances whose engine is dead; ignores failures. */
void cgroups_sweep_others(struct cgroups *groups);
/** cgroups_close - remove the instance's directories and close all trees. */
void cgroups_close(struct cgroups *groups);

/* State of a controller, for --probe. */
struct cgroup_report {
	bool usable;
	char text[160];
};

/** cgroups_probe - the choices of cgroups_open, without creating anything. By kind. */
void cgroups_probe(bool privileged, struct cgroup_report ret_reports[CGROUP_KIND_COUNT]);

/** cgroup_line_path - the path of the tree with @v2 and @kinds in /proc/PID/cgroup's text; "": its
 * root. */
int cgroup_line_path(const char *text, bool v2, uint32_t kinds, char *ret_path,
                     size_t size) attr_must_check;
