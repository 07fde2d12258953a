/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/color.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/str.h"

static const char *const codes[] = {
	[COLOR_GREEN] = "\033[32m",
	[COLOR_YELLOW] = "\033[33m",
	[COLOR_RED] = "\033[31m",
};
static_assert(ARRAY_SIZE(codes) == COLOR_COUNT, "one code per colour");

bool color_has_escapes(int fd)
{
	const char *terminal = getenv("TERM");

	return !(terminal && str_equal(terminal, "dumb")) && isatty(fd) == 1;
}

bool color_is_on(int fd)
{
	const char *off = getenv("NO_COLOR");

	return !(off && *off) && color_has_escapes(fd);
}

void color_print(FILE *out, bool on, enum color color, const char *text)
{
	(void)fprintf(out, "%s%s%s", on ? codes[color] : "", text, on ? "\033[0m" : "");
}
