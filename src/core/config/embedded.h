/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: files that tools/embed.py compiles into the program. */

#include <stddef.h>

struct embedded_file {
	const char *name; /* NULL: end of the table */
	const char *data; /* followed by an uncounted NUL */
	size_t len;
};

/* data/policies */
extern const struct embedded_file embedded_policies[];
/* src/core/store/migrations, in order */
extern const struct embedded_file embedded_migrations[];
