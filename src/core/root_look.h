/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what is in a root: programs and packages, found by their names alone. Nothing of it is read
 * or run, links are followed as a box would follow them, never out of the root. An answer is
 * information for people and for early refusals; what a box can reach its mounts decide.
 */

#include "base/attr.h"
#include <stdbool.h>

/** root_has_program - whether @path is an executable file in @root. */
bool root_has_program(int root, const char *path);
/**
 * root_has_package - whether @package, a name or name==version, is installed in @root: for Python
 * (any of its package directories) or by dpkg.
 */
bool root_has_package(int root, const char *package);
/** root_has_module - whether Python's package directories have a module directory of this name. */
bool root_has_module(int root, const char *module);
