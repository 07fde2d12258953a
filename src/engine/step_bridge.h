/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: changes to the interface of a live box. */

#include "base/attr.h"
#include <stdint.h>

struct build;

/** bridge_change - the ranges that the box reaches. Return: 0 or a negative errno. */
int bridge_change(struct build *b, uint32_t ranges) attr_must_check;
/** bridge_disconnect - remove the box's interface, and with it the end on the host. */
int bridge_disconnect(struct build *b) attr_must_check;
