/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what a program gives up before it reads the first hostile byte. The order: confine_begin,
 * files (Landlock), resources (rlimits), calls (a seccomp allow-list). Each program has its own
 * tables; a kernel without Landlock is an error, never a weaker program. Nothing is undone.
 */

#include "base/attr.h"
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>

/* Rights of Landlock that the headers of Debian 12 lack. */
#define CONFINE_REFER    (1ULL << 13)
#define CONFINE_TRUNCATE (1ULL << 14)

struct confine_path {
	const char *path; /* NULL: @fd; a missing path is skipped */
	int fd;
	uint64_t rights; /* LANDLOCK_ACCESS_FS_*; those that the kernel does not know are dropped */
};

struct confine_calls {
	int refusal; /* errno of other calls */
	const int *allowed;
	size_t count;
	int (*add)(scmp_filter_ctx filter); /* rules with arguments; NULL: none */
};

/** confine_begin - no new privileges, no core dump, no tracer. */
int confine_begin(void) attr_must_check;
/** confine_landlock_abi - of the kernel; 0: it has no Landlock. */
uint32_t confine_landlock_abi(void);
/** confine_files - only @paths from now on. -EOPNOTSUPP: Landlock is older than ABI @abi_min. */
int confine_files(long abi_min, const struct confine_path *paths, size_t count) attr_must_check;
/** confine_memory - RLIMIT_DATA; not in a sanitized build, whose shadow memory would count. */
int confine_memory(uint64_t bytes) attr_must_check;
/** confine_descriptors - as many as the host permits, @most at most. Return: how many. */
int confine_descriptors(uint32_t most) attr_must_check;
/** confine_calls - only these from now on, and what abort() and a sanitizer's report need. */
int confine_calls(const struct confine_calls *calls) attr_must_check;
