/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: memory of the host, or of the container or unit the daemon runs in, for admission. Pages of
 * files that can be dropped count as available.
 */

#include <stdbool.h>
#include <stdint.h>

/** host_memory_total - bytes; 0: unknown. */
uint64_t host_memory_total(void);
/** host_memory_available - bytes; UINT64_MAX: unknown. */
uint64_t host_memory_available(void);

struct host_memory_group {
	uint64_t limit_bytes;     /* UINT64_MAX: none */
	uint64_t available_bytes; /* UINT64_MAX: no limit */
};

/* For host_memory.c and its test. */

/** host_memory_find - the value of @key ("MemTotal:") in the text of /proc/meminfo. Return: false:
 * not there. */
bool host_memory_find(const char *meminfo, const char *key, uint64_t *ret_bytes);
/** host_memory_group - of the control group at @dir. Unreadable files mean no limit. */
void host_memory_group(int dir, bool v2, struct host_memory_group *ret_group);
