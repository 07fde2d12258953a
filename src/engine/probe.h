/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what this host can do, told to people by `millibox doctor`. One line per fact:
 * name, "ok", "missing" or "info", value; separated by tabs. Facts named after a layer say whether
 * boxes will have it. Nothing of the host is changed: namespaces are tried in children that end at
 * once, cgroups are only looked at.
 */

#include "base/attr.h"
#include "base/error.h"
#include "engine/internal.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBE_VALUE_MAX 192

enum probe_state {
	PROBE_OK,
	PROBE_MISSING,
	PROBE_INFO,
	PROBE_STATE_COUNT
};

/* What a child found that did as the engine does at start. */
struct trial {
	bool entered; /* privilege_enter() succeeded */
	enum engine_ids ids;
	uint32_t namespaces; /* mask of enum wire_layer that could be made */
	bool proc;           /* a new /proc could be mounted */
	bool inodes;         /* tmpfs takes nr_inodes */
	bool mounts;         /* open_tree, move_mount and mount_setattr work */
	struct error err;    /* why not entered */
};

/** trial_run - fork, try, and report. Never fails: what could not be tried counts as missing. */
void trial_run(const struct options *options, struct trial *ret_trial);

typedef enum probe_state (*probe_fn)(char *ret_value, size_t size);

struct probe_fact {
	const char *name;
	probe_fn look;
};

/** probe_facts - facts that need no trial; ends with a NULL name. */
extern const struct probe_fact probe_facts[];
