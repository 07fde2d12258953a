/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: remove a directory tree without following links. */

#include "base/attr.h"

/** tree_remove - Return: 0, or a negative errno after a partial removal (-ELOOP: too deep). */
int tree_remove(const char *path) attr_must_check;
