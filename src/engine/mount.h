/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the kernel's mount calls by descriptor, as the engine needs them. No allocation. */

#include "base/attr.h"

struct mount_option {
	const char *key; /* NULL ends the list */
	const char *value;
};

/**
 * mount_new - a new filesystem of @type with MOUNT_ATTR_* @attrs, attached at @path below @dir.
 * Return: a descriptor of its root, or a negative errno.
 */
int mount_new(const char *type, const struct mount_option *options, unsigned attrs, int dir,
              const char *path) attr_must_check;
/**
 * mount_bind - what is at @source (a path) once more at @path below @dir, with @attrs added to the
 * whole of it when @recursive. Return: 0 or a negative errno.
 */
int mount_bind(const char *source, unsigned attrs, unsigned recursive, int dir,
               const char *path) attr_must_check;
