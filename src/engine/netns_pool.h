/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: network namespaces made ahead. Making one is the most expensive part of a box, waits for the
 * kernel to destroy those of ended boxes, and does not depend on the box. So a helper process makes
 * a few and sends their descriptors over a socket. Each has loopback up and nothing else.
 *
 * The namespace of an ended box is reused if it shows no trace of use (netns_check.h): no socket is
 * left and every counter reads as in a new namespace, so no packet was ever sent or refused in it
 * and no flow label remains. The helper keeps the files that it checks open (netns_cache.h), also
 * of namespaces in use, and the engine tells it which ones will not come back.
 *
 * The namespaces belong to the engine's user namespace: root in the box has no capabilities over
 * its own network.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct netns_pool {
	int home;            /* the engine's own, empty namespace; owned */
	int sock;            /* to the helper; owned; -1: the helper is gone */
	pid_t helper;        /* 0: none */
	int owed;            /* taken and not yet requested again; negative: surplus */
	bool drop_pending;   /* dropped namespaces that the helper still holds */
	int bridge;          /* to millibox-bridge; owned; -1: there is none, or it has ended */
	uint32_t bridge_seq; /* of the latest request to it */
	bool bridge_hangs;   /* it did not answer the latest request in time */
};

/** netns_pool_empty - for an engine whose boxes share the network of the host: no namespace. */
struct netns_pool netns_pool_empty(void);
/** netns_pool_open - leave the host's network, start the helper; takes @bridge. Return: 0 or a
 * negative errno. */
int netns_pool_open(struct netns_pool *pool, int bridge) attr_must_check;
void netns_pool_close(struct netns_pool *pool);
/** netns_pool_take - Return: an owned descriptor of a namespace, or a negative errno. */
int netns_pool_take(struct netns_pool *pool) attr_must_check;
/**
 * netns_pool_refill - replace what was taken. netns_pool_take() does not, because the helper would
 * compete with the box being made.
 */
void netns_pool_refill(struct netns_pool *pool);
/** netns_pool_is_low - whether to refill even while boxes are being made. */
bool netns_pool_is_low(const struct netns_pool *pool);
/** netns_pool_give - return the namespace of a box without processes; takes ownership. */
void netns_pool_give(struct netns_pool *pool, int net);
/** netns_pool_drop - like netns_pool_give, for one that no other box may use. */
void netns_pool_drop(struct netns_pool *pool, int net);
/** netns_pool_visit - enter @net, to clone a child there; netns_pool_return() must follow. */
int netns_pool_visit(int net) attr_must_check;
/** netns_pool_return - go back to the engine's own namespace; aborts if that fails. */
void netns_pool_return(const struct netns_pool *pool);
