/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: guess the programming language of code. Pure. */

#include <stddef.h>

/**
 * detect_language - by the first line, then typical words. Return: a literal, "shell" by default.
 */
const char *detect_language(const char *code, size_t len);
