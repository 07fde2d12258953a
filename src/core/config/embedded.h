/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: files that are part of the program, made into tables by tools/embed.py. */

#include <stddef.h>

struct embedded_file {
	const char *name; /* NULL: the end of the table */
	const char *data; /* followed by a NUL that is not counted */
	size_t len;
};

/* data/policies */
extern const struct embedded_file embedded_policies[];
/* src/core/migrations, in order */
extern const struct embedded_file embedded_migrations[];
