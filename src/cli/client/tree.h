/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: removing a directory with all that is in it, without ever following a link out of it. */

#include "base/attr.h"

/** tree_remove - Return: 0, or a negative errno with a part perhaps removed (-ELOOP: too deep). */
int tree_remove(const char *path) attr_must_check;
