/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: network namespaces made ahead. Making one is the most expensive part of a box, has to wait
 * for the kernel to clear away those of boxes that ended, and depends on nothing of the box. So a
 * helper process makes a few and sends their descriptors over a socket, where they wait until a box
 * needs one. Each has loopback up and nothing else.
 *
 * One whose box is gone serves another if it shows no trace of use: no socket is left, and every
 * counter that the kernel keeps for it reads as on its first day, so no packet was ever sent in it,
 * nothing was refused in it and no flow label lingers. Any other is dropped. The helper keeps open
 * what tells it so (netns_cache.h), also of those that boxes have, and is told when one will not
 * come back.
 *
 * They belong to the engine's user namespace, not to the box's: root of the box has no capability
 * over its own network.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <sys/types.h>

struct netns_pool {
	int home;     /* the engine's own, with nothing in it; owned */
	int sock;     /* to the helper, which answers with one; -1 when the helper is gone; owned */
	pid_t helper; /* 0: none */
	int owed;     /* taken, and no other asked for yet; negative: more than are needed */
	bool untold;  /* the helper may hold some that were dropped */
};

/** netns_pool_open - leave the host's network for ever, start the helper. Return: 0 or -errno. */
int netns_pool_open(struct netns_pool *pool) attr_must_check;
void netns_pool_close(struct netns_pool *pool);
/** netns_pool_take - one for a box. Return: a descriptor, the caller's, or a negative errno. */
int netns_pool_take(struct netns_pool *pool) attr_must_check;
/**
 * netns_pool_refill - ask the helper to replace what was taken. Not done by netns_pool_take(),
 * because the helper would then compete with the box that is being made.
 */
void netns_pool_refill(struct netns_pool *pool);
/** netns_pool_is_low - whether refilling should not wait for a quiet moment. */
bool netns_pool_is_low(const struct netns_pool *pool);
/**
 * netns_pool_give - one that a box had, now that no process of the box is left; it may serve
 * another.
 * @net: taken over.
 */
void netns_pool_give(struct netns_pool *pool, int net);
/** netns_pool_visit - enter @net, to clone a child there; netns_pool_return() must follow. */
int netns_pool_visit(int net) attr_must_check;
/** netns_pool_return - never fails: an engine that cannot get home ends. */
void netns_pool_return(const struct netns_pool *pool);
