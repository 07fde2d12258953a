/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/paragraph.h"

#include <string.h>

#define COLUMNS 100

void paragraph_print(const char *text, size_t indent, FILE *out)
{
	size_t column = indent;

	while (*text) {
		size_t len = strcspn(text, " \n");

		if (column > indent && column + 1 + len > COLUMNS) {
			(void)fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		}
		column +=
			(size_t)fprintf(out, "%s%.*s", column > indent ? " " : "", (int)len, text);
		text += len;
		if (*text == '\n') {
			(void)fputc('\n', out);
			column = indent;
		}
		text += *text != '\0';
	}
}
