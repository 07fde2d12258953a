/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: which language a piece of code is written in, where nobody says. A guess. Pure. */

#include <stddef.h>

/** detect_language - by its first line, then by words that one language has and others have not.
 * Return: a literal; "shell" for what looks like nothing else, and for nothing at all. */
const char *detect_language(const char *code, size_t len);
