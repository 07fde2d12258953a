/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the agent drops before it reads its first byte: it is the only privileged process of a
 * box, beside hostile code. What remains: changing to the payload's ids, signalling the payload,
 * and the system calls of its own filter.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

/**
 * harden_self - *ret_layers: mask of enum wire_layer that payloads will have from this agent
 * (except Landlock). A layer that lacks only the capability is left out of the mask; any other
 * failure is an error.
 */
int harden_self(uint32_t *ret_layers, struct error *err) attr_must_check;
/** harden_caps - the capabilities part of harden_self; *ret_empty: the bounding set is empty. */
int harden_caps(bool *ret_empty) attr_must_check;
/** harden_signals - default dispositions, except SIGPIPE; nothing blocked. */
void harden_signals(void);
