/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: text of --help, wrapped. */

#include <stddef.h>
#include <stdio.h>

/**
 * paragraph_print - each line of @text is a paragraph. The cursor is at column @indent, to which
 * further lines are indented.
 */
void paragraph_print(const char *text, size_t indent, FILE *out);
