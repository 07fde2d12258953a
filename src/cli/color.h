/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: colours, on a terminal only and not if NO_COLOR is set (https://no-color.org). */

#include <stdbool.h>
#include <stdio.h>

enum color {
	COLOR_GREEN,
	COLOR_YELLOW,
	COLOR_RED,
	COLOR_COUNT
};

/** color_is_on - for text that is written to @fd. */
bool color_is_on(int fd);
/** color_has_escapes - is @fd a terminal that obeys escape sequences? Not one that is "dumb". */
bool color_has_escapes(int fd);
/** color_print - @text, in colour if @on. */
void color_print(FILE *out, bool on, enum color color, const char *text);
