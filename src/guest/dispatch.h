/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what each message of the host does, and when it may come: a table in dispatch.c. A message
 * that may not come now, or that cannot be decoded, ends the agent: the two sides disagree about
 * the protocol, and nothing good can follow.
 */

#include "base/attr.h"
#include "wire/frame.h"
#include <stdbool.h>

struct agent;

enum dispatch_verdict {
	DISPATCH_OK,
	DISPATCH_UNKNOWN,   /* no message of the host */
	DISPATCH_TOO_EARLY, /* before SETUP */
	DISPATCH_REPEATED,  /* may come only once */
	DISPATCH_WRONG_ID,  /* of an execution where there can be none, or the other way round */
};

/** dispatch_check - whether @frame may come now. Pure. */
enum dispatch_verdict dispatch_check(const struct frame *frame, bool is_set_up);
/** dispatch_verdict_name - for the host's log. */
const char *dispatch_verdict_name(enum dispatch_verdict verdict);
/** dispatch_frame - Return: 0; 1 when the agent is to end; negative when it must. */
int dispatch_frame(struct agent *a, const struct frame *frame) attr_must_check;
