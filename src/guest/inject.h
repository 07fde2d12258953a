/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the program of a box as a zygote's child. Where the engine made one for this box, the agent
 * has a socket to it and knows what command it was made for. A program that begins with that
 * command is not executed then: the child is told to be it, gets the same descriptors and drops the
 * same powers by the same code, and says when it is done. Once per box.
 *
 * Believed is the kernel: the child's process and ids come with its word. Whatever goes wrong
 * before that word, the program is executed as ever: nothing of it has run yet.
 */

#include "base/attr.h"
#include "base/error.h"
#include "guest/job.h"
#include "guest/spawn.h"
#include <stdbool.h>
#include <stddef.h>

struct agent;

struct inject {
	int sock;       /* owned; -1: there is no child, or it has its order */
	char **command; /* borrowed from main: what it can be, NULL-terminated */
	bool pending;   /* it has its order and has not answered; the rest is for the other way */
	int due;        /* a signal that came meanwhile; 0: none */
	struct job job; /* owned */
	int stdio[3];   /* owned */
	int channel;    /* owned; 0: none */
	int stdin_end;  /* owned; 0: none */
};

/** inject_open - what the agent's arguments say. Return: 0 or a negative errno. */
int inject_open(struct agent *a, char **argv) attr_must_check;
/**
 * inject_spawn - start @job as @plan says, by the child if there is one for it, else by executing
 * it. Takes what @job owns.
 */
int inject_spawn(struct agent *a, struct drop_plan *plan, struct job *job,
                 struct spawned *ret_child, struct error *err) attr_must_check;
/**
 * inject_hear - as spawn_read, of a child that inject_spawn started. When a zygote's child did not
 * come through, the program is executed here and it goes on.
 */
enum spawn_news inject_hear(struct agent *a, struct spawned *child, int *ret_listener,
                            struct error *ret_error);
/** inject_signal - keep @signo for a child that is not there yet. Return: whether it was kept. */
bool inject_signal(const struct agent *a, const struct spawned *child, int signo);
