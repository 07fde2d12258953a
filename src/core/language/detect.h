/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: guess the programming language of code that names none, for every dialect. Pure. */

#include <stddef.h>

/**
 * detect_language - by a "#!" line, then typical words. Return: a literal; "python" unless another
 * one is certain. It may be a language without a runner.
 */
const char *detect_language(const char *code, size_t len);
