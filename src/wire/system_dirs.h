/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: directories of an image that no process of a box may change, as names in its root: programs,
 * what programs load, and how the loader is configured. The engine mounts them read-only; the
 * agent's Landlock rules say the same.
 */

#define SYSTEM_DIRS "bin", "boot", "etc", "lib", "lib32", "lib64", "libx32", "opt", "sbin", "usr"
