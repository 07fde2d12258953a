/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what SIGHUP reloads. Each part reads and checks everything before it takes effect; on error
 * it keeps what it had and logs why, and the others continue. On the loop: the files are small.
 */

#include "base/error.h"
#include <stddef.h>

#define RELOAD_PARTS_MAX 8

struct reload_part {
	const char *name; /* literal, for the log */
	/* Return: 0, or -1 with *err and nothing changed. */
	int (*run)(void *ctx, struct error *err);
	void *ctx;
};

/* Zero: empty. */
struct reload {
	struct reload_part parts[RELOAD_PARTS_MAX];
	size_t count;
};

/** reload_add - reloaded in order of addition. */
void reload_add(struct reload *r, const struct reload_part *part);
/** reload_run - Return: number of failed parts. */
size_t reload_run(const struct reload *r);
