/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the groups of a process, from the text of /proc/PID/cgroup. Pure. */

#include "base/attr.h"
#include <stddef.h>

/**
 * cgroup_path_find - the path of the group with @controller; NULL: of the v2 group. "/" is the
 * root. Return: 0, -ENOENT, or -ENAMETOOLONG.
 */
int cgroup_path_find(const char *text, const char *controller, char *ret_path,
                     size_t size) attr_must_check;
