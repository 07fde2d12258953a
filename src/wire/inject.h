/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: how the first program of a box comes out of a zygote instead of being executed: what engine,
 * zygote, its child and the agent say to each other. Structs of fixed layout, one per message of
 * SOCK_SEQPACKET sockets; all four are of one build. docs/internals/zygote.md has the story.
 *
 *   engine -> zygote  inject_fill   make a child for this box
 *   zygote -> engine  inject_news   ready; filled, or why not
 *   agent -> child    inject_order  be this program
 *
 * The child answers the agent over the status socket that comes with the order, in the words of
 * every child of the agent (guest/drop.h).
 */

#include "wire/msg.h"
#include <stdint.h>

/* Of the agent, where this is one of its arguments: the socket to a child that may come. */
#define INJECT_FD   5
#define INJECT_WORD "inject"

/* Of the zygote, from its start. */
#define ZYGOTE_SOCKET_FD  3
#define ZYGOTE_LIBRARY_FD 4
/* Says to a runner's script that it is to be a zygote; its value is the library's descriptor. */
#define ZYGOTE_VARIABLE "MILLIBOX_ZYGOTE"

#define INJECT_MAGIC 0x6d62696au

enum inject_group {
	INJECT_UNIFIED = 1u << 0, /* the first group is a directory of the v2 tree to be born in */
};

/*
 * Descriptors, in this order: a pidfd of the box's PID 1; the child's end of the agent's socket;
 * groups: the directory of the v2 one if INJECT_UNIFIED, then a tasks file per v1 tree.
 */
#define INJECT_FILL_FDS 2
struct inject_fill {
	uint32_t magic;
	uint32_t groups;   /* mask of enum inject_group */
	uint32_t agent_id; /* the agent's ids inside the box */
	uint32_t own_ids;  /* 1: the box has ids of its own, and so keyrings of its own */
};

enum inject_word {
	INJECT_READY, /* said once: children can be had */
	INJECT_FILLED,
};

struct inject_news {
	uint32_t magic;
	uint32_t word; /* enum inject_word */
	int32_t sys;   /* FILLED: 0, or why there is none (an errno) */
	uint32_t unused;
};

enum inject_flag {
	INJECT_CHANNEL = 1u << 0, /* a runner that stays: its request channel is among the fds */
	INJECT_RULESET = 1u << 1, /* so is a Landlock ruleset */
	INJECT_NOTIFY = 1u << 2,  /* drop_plan.notify */
	INJECT_STDIN = 1u << 3,   /* one that was prepared: a pipe that may become its stdin */
};

/*
 * Second argument of the exit_group() with which a child says that it ends, and with what. It is
 * refused, and so the agent hears of it, from the kernel and without a descriptor that a program
 * would see; then the child does end, which takes longer than its caller need wait. The kernel
 * itself looks at the first argument only. payload.txt has the same number.
 */
#define INJECT_LEAVING 0x6c6c62646f6e65

#define INJECT_WORDS_MAX (120 * 1024)

/*
 * Behind it @bytes of NUL-terminated words: @argc arguments, @envc variables, the directory.
 * Descriptors: stdin, stdout, stderr, workspace, status, then those that the flags name.
 */
#define INJECT_ORDER_FDS 5
struct inject_order {
	uint32_t magic;
	uint32_t flags; /* mask of enum inject_flag */
	uint32_t argc;
	uint32_t envc;
	uint32_t bytes;
	uint32_t unused;
	struct msg_setup setup;
};
