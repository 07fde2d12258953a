/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: finds programs and packages in a root, by their names alone. Nothing is read or run; links
 * are resolved as in a box, never out of the root. The answer informs people and refuses early;
 * the mounts of a box decide what it can reach.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stdint.h>

/* One scan of a root. The author of an image chose how much is in it, so all queries together are
 * bounded: what was not found within these steps counts as missing. */
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
/** root_scan_has_module - whether Python's package directories have a directory of this name. */
bool root_scan_has_module(struct root_scan *scan, const char *module);
