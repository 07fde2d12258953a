/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: network namespaces made ahead. Making one is the most expensive part of a box (half of it)
 * and depends on nothing of the box, so the engine makes a few while it has nothing else to do.
 * Each has loopback up and nothing else, is given to one box and never to another.
 *
 * They belong to the engine's user namespace, not to the box's: root of the box has no capability
 * over its own network.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>

#define NETPOOL_SIZE 8

struct netpool {
	int home; /* the engine's own, with nothing in it; owned */
	size_t count;
	int spare[NETPOOL_SIZE]; /* owned */
};

/** netpool_open - leaves the host's network for ever. Return: 0 or a negative errno. */
int netpool_open(struct netpool *pool) attr_must_check;
void netpool_close(struct netpool *pool);
bool netpool_is_full(const struct netpool *pool);
/** netpool_fill - make one more; there must be room. Return: 0 or a negative errno. */
int netpool_fill(struct netpool *pool) attr_must_check;
/** netpool_take - one for a box, made now if there is none. Return: a descriptor, the caller's. */
int netpool_take(struct netpool *pool) attr_must_check;
/** netpool_visit - enter @net, to clone a child there; netpool_return() must follow. */
int netpool_visit(int net) attr_must_check;
/** netpool_return - never fails: an engine that cannot get home ends. */
void netpool_return(const struct netpool *pool);
