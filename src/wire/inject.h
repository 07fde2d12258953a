/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: forking a box's first program from a zygote instead of executing it: messages between
 * engine, zygote, its child and the agent. Fixed structs over SOCK_SEQPACKET; all four have the
 * same build. Design: docs/internals/zygote.md.
 *
 *   engine -> zygote  inject_fill   fork a child for this box
 *   zygote -> engine  inject_news   ready; child forked, or why not
 *   agent -> child    inject_enter  enter the box, drop all privileges, wait
 *   agent -> child    inject_order  become this program
 *
 * The child answers over the status socket of the order, like every child of the agent
 * (guest/drop.h). One that fails before it has its order sends the reason over the agent's socket,
 * in the same form.
 */

#include "wire/msg.h"
#include <stdint.h>

/* The agent's socket to a possible child, if INJECT_WORD is an argument. */
#define INJECT_FD   5
#define INJECT_WORD "inject"

/* The zygote's socket, from its start. */
#define ZYGOTE_SOCKET_FD  3
#define ZYGOTE_LIBRARY_FD 4
/* Makes a runner's script a zygote; its value is the library's descriptor. */
#define ZYGOTE_VARIABLE "MILLIBOX_ZYGOTE"

#define INJECT_MAGIC 0x6d62696au

enum inject_group {
	INJECT_UNIFIED = 1u << 0, /* the first group is a v2 directory */
	INJECT_CPU = 1u << 1,     /* the last group is the one with the CPU quota */
};

/*
 * Descriptors, in order: pidfd of the box's PID 1; its pid namespace; the child's end of the agent's
 * socket; the v2 directory if INJECT_UNIFIED; a tasks file per v1 hierarchy, that of INJECT_CPU
 * last.
 *
 * The zygote enters the pid namespace while PID 1 is still the engine's copy. By the pidfd the
 * kernel would want the right to trace PID 1, which nobody but the engine has from its change of
 * ids until it is dumpable again: a starved box is there for long.
 */
#define INJECT_FILL_FDS 3
struct inject_fill {
	uint32_t magic;
	uint32_t groups;   /* mask of enum inject_group */
	uint32_t agent_id; /* the agent's ids in the box */
	/* Owner of the box's user namespace, as the zygote numbers it. 0: the box has no ids and
	 * keyrings of its own. */
	uint32_t owner;
};

enum inject_word {
	INJECT_FILES, /* once, with a descriptor: the zygote's mount namespace */
	INJECT_READY, /* once: the zygote can fork */
	INJECT_FILLED,
};

struct inject_news {
	uint32_t magic;
	uint32_t word; /* enum inject_word */
	int32_t sys;   /* FILLED: 0, or errno: no child */
	uint32_t unused;
};

/* Sent when the box is set up: nothing waits in a box with a capability. */
struct inject_enter {
	uint32_t magic;
	uint32_t uid; /* the payload's */
	uint32_t gid;
	uint32_t unused;
};

enum inject_flag {
	INJECT_CHANNEL = 1u << 0, /* fds include a resident runner's request channel */
	INJECT_RULESET = 1u << 1, /* fds include a Landlock ruleset */
	INJECT_NOTIFY = 1u << 2,  /* drop_plan.notify */
	INJECT_STDIN = 1u << 3,   /* prepared program: a pipe that may become its stdin */
};

/*
 * Second argument of the exit_group() by which a child announces its exit code. The filter denies
 * the call, so the agent learns of it from the kernel, without a descriptor visible to the program;
 * then the child really exits, which takes longer than the caller must wait. The kernel reads only
 * the first argument. payload.txt has the same number.
 */
#define INJECT_LEAVING 0x6c6c62646f6e65

#define INJECT_WORDS_MAX (120 * 1024)

/*
 * Followed by @bytes of NUL-terminated strings: @argc arguments, @envc variables, the directory.
 * Descriptors: stdin, stdout, stderr, workspace, status, then those of the flags.
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
