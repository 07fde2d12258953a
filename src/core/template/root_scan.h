/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: finds programs and packages in a root, by name. Nothing is read or run; links never lead out
 * of the root. The answer informs people and rejects early; the mounts of a box decide what it can
 * reach.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stdint.h>

struct stat;

/* An image's author chooses its size, so all queries together are bounded: what is not found within
 * these steps counts as missing. */
#define ROOT_SCAN_STEPS 500000
struct root_scan {
	int root; /* borrowed */
	uint32_t left;
};
#define ROOT_SCAN(fd)                                                                              \
	{                                                                                          \
		.root = (fd), .left = ROOT_SCAN_STEPS                                              \
	}

/** root_open - @name "": the host's root; else the first directory of this name in @bases. Return:
 * a descriptor, or a negative errno. */
int root_open(const char *const *bases, const char *name) attr_must_check;

/** root_scan_stat - of what @path leads to. Return: 0 or a negative errno. */
int root_scan_stat(struct root_scan *scan, const char *path, struct stat *ret_st) attr_must_check;
/** root_scan_has_program - whether @path is an executable file. */
bool root_scan_has_program(struct root_scan *scan, const char *path);
/**
 * root_scan_has_package - whether Python or dpkg has @package installed: name, or name==version
 * (Python only).
 */
bool root_scan_has_package(struct root_scan *scan, const char *package);
/** root_scan_has_module - whether a Python package directory has an entry of this name. */
bool root_scan_has_module(struct root_scan *scan, const char *module);
