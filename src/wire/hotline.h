/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the one message that the engine has for an agent, over the hot line of a box that outlives
 * its daemon (a SOCK_SEQPACKET pair): here is your new stream. One descriptor comes with it. The
 * agent never answers.
 */

#include <stdint.h>

#define HOTLINE_FD    4      /* of the agent, */
#define HOTLINE_WORD  "keep" /* where this is its first argument */
#define HOTLINE_MAGIC 0x6d62686cu

struct hotline_message {
	uint32_t magic; /* HOTLINE_MAGIC */
	uint32_t unused;
};
