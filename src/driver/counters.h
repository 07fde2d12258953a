/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the kernel's counters of a box, from its cgroup directories. The daemon has their
 * descriptors: reading needs no round trip to the engine.
 */

#include <stdbool.h>
#include <stdint.h>

/* COUNTER_UNKNOWN: not counted on this host. */
struct box_counters {
	uint64_t memory_peak_bytes;
	uint64_t memory_bytes;
	uint64_t cache_bytes; /* of that: file pages that the kernel can drop */
	uint64_t oom_kills;
	uint64_t cpu_us;
	uint64_t pids_peak;
	uint64_t pids_denied; /* forks denied */
};

#define COUNTER_UNKNOWN UINT64_MAX

/* Each counter costs a system call. */
enum counters_for {
	COUNTERS_FOR_BASELINE = 1, /* cumulative ones, to subtract later */
	COUNTERS_FOR_RESULT = 2,
	COUNTERS_FOR_VIEW = 4,
	COUNTERS_FOR_MEMORY = 8, /* what the box holds now */
};

enum counters_dir {
	COUNTERS_MEMORY,
	COUNTERS_PIDS,
	COUNTERS_CPU,
	COUNTERS_DIRS
};

#define COUNTERS_ROWS 11

/* Open files of a box: reading again costs a third of reopening. */
struct counters_files {
	int fds[COUNTERS_ROWS]; /* owned; -1: not open */
};

/* Names absent on this host: trying them for every box would cost more than reading the rest. Zero:
 * nothing is known. */
struct counters_absent {
	uint32_t rows;
};

void counters_files_init(struct counters_files *files);
void counters_files_close(struct counters_files *files);

/**
 * counters_read - unreadable ones are unknown. @dirs: the box's groups; any may be -1. @files NULL:
 * keep none open.
 */
void counters_read(const int dirs[COUNTERS_DIRS], struct counters_files *files,
                   enum counters_for purpose, struct counters_absent *absent,
                   struct box_counters *ret_counters);
