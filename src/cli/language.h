/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: guesses the language of a program from its file name or first line, to save typing
 * --language. Pure. The daemon decides which languages it runs.
 */

#include <stddef.h>

/** language_of_name - from the extension; NULL if it is unknown. */
const char *language_of_name(const char *file_name);
/** language_of_code - from the "#!" line; NULL if there is none or its program is unknown. */
const char *language_of_code(const char *code, size_t len);
