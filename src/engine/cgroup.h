/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: where the cgroup trees are and which of them the engine may use. Looked at per controller,
 * never per version: on a hybrid host memory, pids and cpu are on v1 while the v2 tree has no
 * controllers but still kills and freezes.
 *
 * Groups are <parent>/millibox/<instance>/<box id>. The instance's directory is locked (flock) for
 * as long as the engine lives: a free lock means that everything below is left over from a dead
 * one.
 */

#include "base/attr.h"
#include "base/error.h"
#include "engine/engine.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_PATH_MAX 512

enum cgroup_kind {
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CPU,
	CGROUP_CPUACCT, /* v1 only: CPU time used; v2 has it without a controller */
	CGROUP_FREEZER, /* v1 only, and only where there is no v2 tree */
	CGROUP_UNIFIED, /* the v2 tree itself: kill and freeze */
	CGROUP_KIND_COUNT
};

#define CGROUP_BIT(kind) (1u << (kind))

/* One mounted hierarchy that is of interest. */
struct cgroup_mount {
	bool v2;
	uint32_t kinds;              /* v1: controllers on it; v2: CGROUP_UNIFIED */
	char point[CGROUP_PATH_MAX]; /* where it is mounted */
	char root[CGROUP_PATH_MAX];  /* which group is mounted there; "" for the root */
	char own[CGROUP_PATH_MAX];   /* our own group below that; "" for the root */
};

struct cgroup_layout {
	size_t count;
	struct cgroup_mount mounts[CGROUP_KIND_COUNT];
};

/**
 * cgroup_layout_parse - from the texts of /proc/self/mountinfo and /proc/self/cgroup. Pure. The
 * first mount of a controller counts; lines that can't be read are skipped.
 */
void cgroup_layout_parse(const char *mountinfo, const char *self, struct cgroup_layout *ret_layout);

/* A tree in use. */
struct cgroup_tree {
	bool v2;
	uint32_t kinds;             /* what it does for a box */
	bool given;                 /* its parent is ours as a whole: delegated, or a container's */
	uint32_t optional;          /* rows of the limit table whose files exist; step_cgroup.c */
	int parent;                 /* directory that holds "millibox"; owned */
	int home;                   /* .../millibox; owned */
	int dir;                    /* .../millibox/<instance>; owned; -1 before cgroups_claim */
	char path[CGROUP_PATH_MAX]; /* of home, as /proc/PID/cgroup names it */
};

struct cgroups {
	size_t count;
	struct cgroup_tree trees[CGROUP_KIND_COUNT];
	enum engine_cgroup kind;
	uint32_t layers; /* LAYER_CGROUP_* that work */
	bool has_v1;
	int kill_tree; /* index of the tree with cgroup.kill, or -1 */
	int freeze_tree;
	uint32_t instance;
};

/**
 * cgroups_open - find and open the trees that can be used; none is not an error. Must run while the
 * host's mounts are in sight. @privileged: may use the root of a hierarchy.
 */
int cgroups_open(bool privileged, struct cgroups *ret_groups, struct error *err) attr_must_check;
/** cgroups_claim - make and lock the directories of @instance. Return: 0, -EBUSY if it is alive. */
int cgroups_claim(struct cgroups *groups, uint32_t instance) attr_must_check;
/** cgroups_enable - after claim: switch controllers on, settle which layers there are. */
void cgroups_enable(struct cgroups *groups);
/** cgroups_unclaim - let go of what cgroups_claim locked. */
void cgroups_unclaim(struct cgroups *groups);
/**
 * cgroups_sweep_own - after claim: kill and remove what an earlier life of the instance left.
 * Return: 0, -EBUSY if something is left; its ids are then not to be given to others.
 */
int cgroups_sweep_own(const struct cgroups *groups) attr_must_check;
/** cgroups_sweep_others - the same for instances whose engine is dead; what is left stays. */
void cgroups_sweep_others(struct cgroups *groups);
/** cgroups_close - remove the instance's own directories (they are empty by now) and let go. */
void cgroups_close(struct cgroups *groups);

/* What --probe tells of a controller. */
struct cgroup_sight {
	bool usable;
	char text[160]; /* version, where, and what is lacking */
};

/** cgroups_look - the same choice as cgroups_open, without making anything. By kind. */
void cgroups_look(bool privileged, struct cgroup_sight ret_sights[CGROUP_KIND_COUNT]);

/** cgroup_line_path - the path in the text of /proc/PID/cgroup for the tree of @v2 / @kinds. */
int cgroup_line_path(const char *text, bool v2, uint32_t kinds, char *ret_path,
                     size_t size) attr_must_check;
