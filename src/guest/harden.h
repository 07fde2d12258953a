/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the agent, the only privileged process of a box, drops before it reads its first byte.
 * It can still change to the payload's ids, signal the payload, and make the system calls of its
 * own filter.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

/**
 * harden_self - @lacks: layers that may be missing. *ret_layers: mask of enum wire_layer for
 * payloads of this agent (without Landlock). A layer that lacks only the capability is left out;
 * any other failure is an error.
 */
int harden_self(uint32_t lacks, uint32_t *ret_layers, struct error *err) attr_must_check;
/** harden_caps - part of harden_self; *ret_empty: the bounding set is empty. */
int harden_caps(bool *ret_empty) attr_must_check;
/** harden_signals - defaults, except SIGPIPE; nothing blocked. */
void harden_signals(void);
