/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the kernel's own counters of a box, read from its cgroup directories. Runs in the daemon
 * (the directories came by descriptor), so that asking costs no round trip to the engine.
 * Knows the names of both cgroup versions.
 */

#include <stdbool.h>
#include <stdint.h>

/* A value of UINT64_MAX means that this host does not count it. */
struct box_counters {
	uint64_t memory_peak_bytes;
	uint64_t memory_bytes;
	uint64_t oom_kills;
	uint64_t cpu_us;
	uint64_t pids_peak;
	uint64_t pids_denied; /* forks refused by the limit */
};

#define COUNTER_UNKNOWN UINT64_MAX

/* Names that this host's groups do not have: boxes are many, and to look for each again in all of
 * them would cost more than to read what is there. Zero is "nothing is known". */
struct counters_absent {
	uint32_t rows;
};

/** counters_read - any of the directories may be -1. Never fails: what can't be read is unknown. */
void counters_read(int memory_dir, int pids_dir, int cpu_dir, struct counters_absent *absent,
                   struct box_counters *ret_counters);
