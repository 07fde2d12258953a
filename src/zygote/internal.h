/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: shared by the files of the zygote library, which an interpreter loads as a module (python.c)
 * after importing what its children need. It does what a script must not: fork into a box, and
 * become the box's payload.
 *
 * Single-threaded. The zygote never sees a byte of a request: it reads fixed structs from the
 * engine, its child one from the agent. zygote.c runs in the zygote, become.c in the child.
 */

#include "base/attr.h"
#include "base/error.h"
#include "wire/inject.h"
#include <stddef.h>

#define GROUPS_MAX 6

struct fill {
	struct inject_fill msg;
	int pidfd;
	int pid_ns;
	int agent;   /* socket to the agent */
	int unified; /* -1: none */
	size_t tasks_count;
	int tasks[GROUPS_MAX];
	int cpu; /* tasks file of the group with the quota; -1: none */
};

/* Longer lists do not occur: the engine drops what it can. */
#define CHECKED_GROUPS_LEN 512

struct order {
	struct inject_order msg;
	char words[INJECT_WORDS_MAX];
};

/** become_refuse - in the child, before its order: tell the agent why, and exit. */
void become_refuse(int agent, const struct error *err) attr_noreturn;
/** become_alone - in the child: close the zygote's descriptors except agent and pidfd. */
void become_alone(struct fill *fill);
/**
 * zygote_act_as - take the effective uid @owner and keep the effective capabilities; 0: nothing to
 * do. The owner of a user namespace has all capabilities over it, which setns() by pidfd requires:
 * so a zygote needs no CAP_SYS_PTRACE, with which it could trace the engine.
 */
int zygote_act_as(uid_t owner) attr_must_check;
/**
 * become - in the child: enter the box and drop all privileges when the agent is set up; at the
 * agent's order become the payload, and verify. On failure reports to the agent and exits.
 */
void become(const struct fill *fill, struct order *ret_order);
/* What a process has in common with PID 1. */
struct checked {
	unsigned filters;
	char groups[CHECKED_GROUPS_LEN]; /* supplementary, as /proc/PID/status has them */
};

/**
 * check_inside - with privileges: this process has all namespaces, cgroups and supplementary groups
 * of PID 1, and as many filters.
 */
int check_inside(struct checked *ret_checked, struct error *err) attr_must_check;
/** check_payload - ids, capabilities and what @checked has, by /proc/self/status. */
int check_payload(const struct msg_setup *setup, const struct checked *checked,
                  struct error *err) attr_must_check;
