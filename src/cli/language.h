/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: guesses a program's language from file name or first line. Pure. The daemon decides which
 * languages it runs.
 */

#include <stddef.h>

/** language_of_name - by extension; NULL: unknown. */
const char *language_of_name(const char *file_name);
/** language_of_code - by the "#!" line; NULL: none or unknown. */
const char *language_of_code(const char *code, size_t len);
