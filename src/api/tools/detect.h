/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: guess the programming language of code. Pure. */

#include <stddef.h>

/** detect_language - by the first line, then by typical words. Return: a literal; "shell" if
 * nothing else fits, or for empty code. */
const char *detect_language(const char *code, size_t len);
