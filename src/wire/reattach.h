/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the one message that the engine has for an agent, over the hot line of a box that outlives
 * its daemon (a SOCK_SEQPACKET pair): here is your new stream. One descriptor comes with it. The
 * agent never answers.
 */

#include <stdint.h>

#define REATTACH_FD    4      /* of the agent, */
#define REATTACH_ARG   "keep" /* where this is its first argument */
#define REATTACH_MAGIC 0x6d62686cu

struct reattach_message {
	uint32_t magic; /* REATTACH_MAGIC */
	uint32_t unused;
};
