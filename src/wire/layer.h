/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: isolation layers of a box, as bits of masks on the wire, in engine replies and in receipts.
 * Pure.
 */

#include "base/systemd.h"
#include <stdbool.h>
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
	LAYER_CGROUP_IO, /* of the tenant: disk I/O */
	LAYER_COUNT
};

#define LAYER_BIT(layer) (1u << (layer))
#define LAYERS_ALL       ((1u << LAYER_COUNT) - 1)
/* Required in strict isolation: all but what a supported kernel may lack and other layers repeat,
 * and the limit of disk I/O, which the operator may turn off: it protects speed, nothing else. */
#define LAYERS_STRICT                                                                              \
	(LAYERS_ALL &                                                                              \
	 ~(LAYER_BIT(LAYER_TIME) | LAYER_BIT(LAYER_LANDLOCK) | LAYER_BIT(LAYER_CGROUP_IO)))
/* Required also in best-effort isolation: less is no isolation at all. */
#define LAYERS_BEST_EFFORT                                                                         \
	(LAYER_BIT(LAYER_USER) | LAYER_BIT(LAYER_PID) | LAYER_BIT(LAYER_MNT) |                     \
	 LAYER_BIT(LAYER_NET) | LAYER_BIT(LAYER_CAPS) | LAYER_BIT(LAYER_NO_NEW_PRIVS) |            \
	 LAYER_BIT(LAYER_SECCOMP))

/** layer_name - "user", "cgroup.memory": as in API, CLI and docs. */
const char *layer_name(enum wire_layer layer);
/** layer_loss - what its absence means, for people. */
const char *layer_loss(enum wire_layer layer);

/* Who starts the daemon decides how it gets control groups. */
enum layer_starter {
	LAYER_STARTER_ROOT,
	LAYER_STARTER_SCOPE,  /* a user, to whom systemd delegates groups */
	LAYER_STARTER_LINGER, /* a user to whom it would, if a manager of the user ran */
	LAYER_STARTER_UNIT,   /* a user; systemd is there and delegates none */
	LAYER_STARTER_USER,   /* a user; systemd is not there */
	LAYER_STARTER_COUNT
};

/** layer_starter - of this host and user. */
enum layer_starter layer_starter(bool is_root, enum systemd_delegation delegation);

#define LAYER_REMEDY_MAX 512

/**
 * layer_remedy - what the operator can do about its absence: a command that works for @starter.
 * @daemon: path of milliboxd, for that command.
 */
void layer_remedy(enum wire_layer layer, enum layer_starter starter, const char *daemon,
                  char ret_text[LAYER_REMEDY_MAX]);
