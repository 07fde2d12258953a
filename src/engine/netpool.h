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
 * what tells it so (netkept.h), also of those that boxes have, and is told when one will not come
 * back.
 *
 * They belong to the engine's user namespace, not to the box's: root of the box has no capability
 * over its own network.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <sys/types.h>

struct netpool {
	int home;     /* the engine's own, with nothing in it; owned */
	int sock;     /* to the helper, which answers with one; -1 when the helper is gone; owned */
	pid_t helper; /* 0: none */
	int owed;     /* taken, and no other asked for yet; negative: more than are needed */
	bool untold;  /* the helper may hold some that were dropped */
};

/** netpool_open - leave the host's network for ever, start the helper. Return: 0 or -errno. */
int netpool_open(struct netpool *pool) attr_must_check;
void netpool_close(struct netpool *pool);
/** netpool_take - one for a box. Return: a descriptor, the caller's, or a negative errno. */
int netpool_take(struct netpool *pool) attr_must_check;
/**
 * netpool_refill - ask the helper to replace what was taken. Not done by netpool_take(), because
 * the helper would then compete with the box that is being made.
 */
void netpool_refill(struct netpool *pool);
/** netpool_is_low - whether refilling should not wait for a quiet moment. */
bool netpool_is_low(const struct netpool *pool);
/**
 * netpool_give - one that a box had, now that no process of the box is left; it may serve another.
 * @net: taken over.
 */
void netpool_give(struct netpool *pool, int net);
/** netpool_visit - enter @net, to clone a child there; netpool_return() must follow. */
int netpool_visit(int net) attr_must_check;
/** netpool_return - never fails: an engine that cannot get home ends. */
void netpool_return(const struct netpool *pool);
