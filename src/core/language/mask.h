/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: hides what is no code: text in quotes and backquotes, comments, here-documents. A Python
 * program that writes a JavaScript file is Python. It knows no language, only the forms that nearly
 * all have in common. Pure.
 */

#include <stdbool.h>
#include <stddef.h>

#define MASK '\1'

/**
 * mask_literals - overwrite with MASK. Lines stay. What is within one line keeps its punctuation
 * and escapes ("#{x}" is typical for Ruby, "\n" for few); what takes several lines loses all. In
 * time proportional to @len.
 * @is_cut: @text is the beginning of a longer one, in which an open literal may end.
 */
void mask_literals(char *text, size_t len, bool is_cut);
