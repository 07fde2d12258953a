/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: common to the guards: children of a daemon started as root that keep one right which the
 * daemon drops (socket_guard.h, tls_guard.h).
 */

#include "base/attr.h"
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct guard {
	pid_t pid; /* 0: none */
	int link;  /* owned; closing it ends the guard */
};

/**
 * guard_fork - takes @ends: ours, and that of the child, which calls @run. Before any thread
 * exists.
 */
int guard_fork(struct guard *g, const int ends[2], void (*run)(const void *ctx, int link),
               const void *ctx, struct error *err) attr_must_check;
/**
 * guard_drop - in the child: ignore signals to the group, and keep the first set of @caps that the
 * kernel grants, the last of which is 0. Return: 0, or a negative errno.
 */
int guard_drop(const char *name, const uint32_t *caps, size_t count) attr_must_check;
/** guard_end - end it and wait. */
void guard_end(struct guard *g);
