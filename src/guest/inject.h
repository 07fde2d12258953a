/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the program of a box as a zygote's child. If the engine forked one for this box, the agent
 * has a socket to it and knows its command. A program that starts with that command is not
 * executed: the child is ordered to become it, gets the same descriptors, drops the same privileges
 * with the same code, and reports. Once per box.
 *
 * Only the kernel is trusted: the child's pid and ids come with its message. If anything fails
 * before, the program is executed as usual: nothing of it has run.
 */

#include "base/attr.h"
#include "base/error.h"
#include "guest/job.h"
#include "guest/spawn.h"
#include <stdbool.h>
#include <stddef.h>

struct agent;

struct inject {
	int sock;       /* owned; -1: no child, or it has its order */
	int ordered;    /* owned: the same, until the child has answered; -1: none */
	char **command; /* borrowed: what it was made for */
	bool pending;   /* ordered, not answered; the rest is for the fallback */
	int due;        /* a signal to deliver; 0: none */
	struct job job; /* owned */
	int stdio[3];   /* owned */
	int channel;    /* owned; 0: none */
	int stdin_end;  /* owned; 0: none */
};

/** inject_open - Return: 0 or a negative errno. */
int inject_open(struct agent *a, char **argv) attr_must_check;
/** inject_enter - once the agent is set up: let the child drop its privileges. */
void inject_enter(struct agent *a);
/**
 * inject_spawn - start @job in the zygote's child if it fits, else execute it. Takes what @job
 * owns.
 */
int inject_spawn(struct agent *a, struct drop_plan *plan, struct job *job,
                 struct spawned *ret_child, struct error *err) attr_must_check;
/**
 * inject_read - like spawn_read, for a child of inject_spawn. If a zygote's child failed, executes
 * the program instead.
 */
enum spawn_news inject_read(struct agent *a, struct spawned *child, int *ret_listener,
                            struct error *ret_error);
/** inject_signal - keep @signo for a child that is not there yet. Return: whether kept. */
bool inject_signal(const struct agent *a, const struct spawned *child, int signo);
