/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a compiler's messages as data, by the forms of the manifest ("{file}:{line}: {message}").
 * The text is untrusted: its size and the number of results are bounded. Pure.
 */

#include "base/attr.h"
#include <stddef.h>

#define DIAGNOSTICS_MAX      100
#define DIAGNOSTICS_TEXT_MAX 1024 /* of one field */

/* Owned; "" or 0: the message has none. */
struct diagnostic {
	char *file, *severity, *code, *message;
	unsigned line, column;
};

struct diagnostics {
	struct diagnostic *list; /* owned */
	size_t count;
};

void diagnostics_done(struct diagnostics *d);
/** diagnostics_read - by the first form that a line has. @forms NULL: none. */
void diagnostics_read(char *const *forms, const char *text, size_t len,
                      struct diagnostics *ret_diagnostics);
/** diagnostics_add - NULL if there are too many. The strings are NULL. */
struct diagnostic *diagnostics_add(struct diagnostics *d);
