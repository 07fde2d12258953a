/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: wrappers of the descriptor-based mount calls. No allocation. */

#include "base/attr.h"

struct mount_option {
	const char *key; /* NULL ends the list */
	const char *value;
};

/**
 * mount_new - mount a new filesystem with MOUNT_ATTR_* @attrs at @path below @dir. Return: a
 * descriptor of its root, or a negative errno.
 */
int mount_new(const char *type, const struct mount_option *options, unsigned attrs, int dir,
              const char *path) attr_must_check;
/**
 * mount_bind - bind @source at @path below @dir and add @attrs; @recursive: the whole tree. Return:
 * 0 or a negative errno.
 */
int mount_bind(const char *source, unsigned attrs, unsigned recursive, int dir,
               const char *path) attr_must_check;
