/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what is read again on SIGHUP while the daemon runs. Each part reads and checks its whole and
 * only then takes it; one that fails keeps what it had, says why in the log, and does not hold up
 * the others. Called from the loop: what a part reads is small.
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

/* Zero is empty. */
struct reload {
	struct reload_part parts[RELOAD_PARTS_MAX];
	size_t count;
};

/** reload_add - in the order in which they are to be read. */
void reload_add(struct reload *r, const struct reload_part *part);
/** reload_run - all of them. Return: how many failed. */
size_t reload_run(const struct reload *r);
