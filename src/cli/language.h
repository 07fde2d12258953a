/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: which language a program is in, from its file name or its first line. Pure. Which languages
 * can be run is the daemon's word; this only saves typing --language.
 */

#include <stddef.h>

/** language_of_name - by extension; NULL when that tells nothing. */
const char *language_of_name(const char *file_name);
/** language_of_code - by a "#!" line; NULL when there is none, or one of an unknown program. */
const char *language_of_code(const char *code, size_t len);
