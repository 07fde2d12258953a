/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what this host can do, for `millibox doctor`. One line per fact: name, "ok", "missing" or
 * "info", value; separated by tabs. A fact named after a layer tells whether boxes will have it.
 * Nothing on the host is changed: namespaces are tried in children that exit at once, cgroups are
 * only read.
 */

#include "base/attr.h"
#include "base/error.h"
#include "engine/internal.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBE_VALUE_MAX 192

int probe_print(const struct options *options);
/** probe_landlock_abi - Return: 0 without Landlock. */
uint32_t probe_landlock_abi(void);
bool probe_has_time_ns(void);

enum probe_state {
	PROBE_OK,
	PROBE_MISSING,
	PROBE_INFO,
	PROBE_STATE_COUNT
};

/* Result of a child that starts like the engine. */
struct trial {
	bool entered; /* its namespaces could be made */
	enum engine_ids ids;
	uint32_t namespaces; /* mask of enum wire_layer that can be made */
	bool proc;           /* a new /proc can be mounted */
	bool inodes;         /* tmpfs supports nr_inodes */
	bool mounts;         /* open_tree, move_mount and mount_setattr work */
	struct error err;    /* why privilege_enter() failed */
};

/** trial_run - what cannot be tried counts as missing. */
void trial_run(const struct options *options, struct trial *ret_trial);

typedef enum probe_state (*probe_fn)(char *ret_value, size_t size);

struct probe_fact {
	const char *name;
	probe_fn check;      /* NULL: print @setting */
	const char *setting; /* file in /proc/sys */
};

/** probe_facts - facts that need no trial; ends with a NULL name. */
extern const struct probe_fact probe_facts[];
enum probe_state probe_fact_read(const struct probe_fact *fact, char *ret_value, size_t size);
