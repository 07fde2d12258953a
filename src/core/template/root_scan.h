/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what is in a root: programs and packages, found by their names alone. Nothing of it is read
 * or run, links are followed as a box would follow them, never out of the root. An answer is
 * information for people and for early refusals; what a box can reach its mounts decide.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stdint.h>

/*
 * One scan at a root. Whoever made an image chose how much there is in it: together all questions
 * take so many steps, and what was not found by then is not there.
 */
#define ROOT_SCAN_STEPS 500000
struct root_scan {
	int root; /* borrowed */
	uint32_t left;
};
#define ROOT_SCAN(fd)                                                                              \
	{                                                                                          \
		.root = (fd), .left = ROOT_SCAN_STEPS                                              \
	}

/** root_scan_has_program - whether @path is an executable file in the root. */
bool root_scan_has_program(struct root_scan *scan, const char *path);
/**
 * root_scan_has_package - whether @package, a name or name==version, is installed in the root: for
 * Python (any of its package directories) or by dpkg.
 */
bool root_scan_has_package(struct root_scan *scan, const char *package);
/** root_scan_has_module - whether Python's package directories have a module directory of this
 * name. */
bool root_scan_has_module(struct root_scan *scan, const char *module);
