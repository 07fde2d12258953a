/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the files of the zygote's library share. It is loaded by an interpreter (python.c) that
 * has imported what its children are to have, and does for it what must not be done in a script:
 * fork into a box, and become the box's payload.
 *
 * One thread. The zygote never sees a byte of a request: it reads fixed structs of the engine, its
 * child one of the agent. zygote.c is the zygote's side, become.c the child's.
 */

#include "base/attr.h"
#include "base/error.h"
#include "wire/inject.h"
#include <stddef.h>

#define GROUPS_MAX 6

/* One box to be filled; in the child, where it came from. Descriptors are owned. */
struct fill {
	struct inject_fill say;
	int pidfd;
	int agent;   /* socket to the agent */
	int unified; /* -1: none */
	size_t tasks_count;
	int tasks[GROUPS_MAX];
};

/* What the child is told to be. */
struct order {
	struct inject_order say;
	char words[INJECT_WORDS_MAX];
};

/** become_alone - in the child: let go of everything of the zygote's but @fill's first two. */
void become_alone(struct fill *fill);
/**
 * become - in the child: wait for the agent's order, enter the box, drop everything, check that all
 * of it happened. Returns as the payload; on failure the agent is told and the process ends.
 */
void become(const struct fill *fill, struct order *ret_order);
/** check_namespaces - that this process is in all the namespaces of the box's PID 1. */
int check_namespaces(struct error *err) attr_must_check;
/** check_payload - by the kernel's word in /proc/self/status: ids, capabilities, filter. */
int check_payload(const struct msg_setup *setup, struct error *err) attr_must_check;
