/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the one message from the engine to an agent, over the reattach socket of a box that outlives
 * its daemon (a SOCK_SEQPACKET pair): a new stream, as one descriptor. The agent never answers.
 */

#include <stdint.h>

#define REATTACH_FD    4      /* the agent's socket to the engine, */
#define REATTACH_ARG   "keep" /* if this is its first argument */
#define REATTACH_MAGIC 0x6d62686cu

struct reattach_message {
	uint32_t magic;
	uint32_t unused;
};
