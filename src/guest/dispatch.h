/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what each message of the host does, and when it is allowed: a table in dispatch.c. A
 * malformed or unexpected message ends the agent.
 */

#include "base/attr.h"
#include "wire/frame.h"
#include <stdbool.h>

struct agent;

enum dispatch_verdict {
	DISPATCH_OK,
	DISPATCH_UNKNOWN,
	DISPATCH_TOO_EARLY, /* before SETUP */
	DISPATCH_REPEATED,  /* allowed only once */
	DISPATCH_WRONG_ID,
};

/** dispatch_check - whether @frame is allowed now. Pure. */
enum dispatch_verdict dispatch_check(const struct frame *frame, bool is_set_up);
const char *dispatch_verdict_name(enum dispatch_verdict verdict);
/** dispatch_frame - Return: 0; 1: the agent should exit; negative: it must. */
int dispatch_frame(struct agent *a, const struct frame *frame) attr_must_check;
