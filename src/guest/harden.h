/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the agent takes from itself before it reads its first byte: it lives beside hostile
 * code and is the only thing in a box that holds any power. What is left afterwards: changing to
 * the payload's ids, signalling the payload, and the system calls of its own filter.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

/**
 * harden_self - *ret_layers: mask of enum wire_layer that payloads will have from this agent
 * (Landlock apart). What can't be had for lack of a capability to drop it with is left out of the
 * mask; anything else fails.
 */
int harden_self(uint32_t *ret_layers, struct error *err) attr_must_check;
/** harden_caps - the part of it that is about capabilities; *ret_empty: the bounding set is empty.
 */
int harden_caps(bool *ret_empty) attr_must_check;
/** harden_signals - every disposition to its default, SIGPIPE apart; nothing blocked. */
void harden_signals(void);
