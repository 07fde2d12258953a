/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: ends boxes when the host runs short of memory. Admission looks at the memory that is
 * available when a box begins; its limit is a ceiling that it may use later. If boxes together use
 * more than there is, the kernel would end programs of any tenant. Before that, while less than
 * admission.memory_low is available, the guard ends the largest box of the tenant that is furthest
 * over its equal share. A tenant within its share loses nothing.
 *
 * The share is an equal part of what all boxes could use, at least MEMORY_GUARD_SHARE_MIN. File
 * pages that the kernel can drop do not count. Boxes in pools belong to no tenant; pools.max_memory
 * bounds them.
 *
 * Never blocks for long: boxes are read a few at a time, and only while memory is short.
 */

#include "base/attr.h"
#include "base/size.h"
#include <stdint.h>

struct loop;
struct memory_guard;
struct metrics;
struct session_service;

#define MEMORY_GUARD_SHARE_MIN (64 * MIB)

struct memory_guard_config {
	struct loop *loop;
	struct session_service *sessions; /* borrowed, and its runs */
	struct metrics *metrics;          /* borrowed; NULL: metrics off */
	uint64_t low_bytes;
	uint64_t (*measure)(void); /* available bytes; UINT64_MAX: unknown */
};

/** memory_guard_free - before the sessions. */
void memory_guard_free(struct memory_guard *g);
struct memory_guard *memory_guard_new(const struct memory_guard_config *config)
	attr_owned(memory_guard_free);
/** memory_guard_check - for the timer, and for tests: look, and end at most one box. */
void memory_guard_check(struct memory_guard *g);
