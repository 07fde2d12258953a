/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: bytes of a box's interface, from the kernel's table of its network namespace (net/dev). */

#include "base/attr.h"
#include "driver/box_spec.h"
#include <stdbool.h>

/** traffic_parse - find the line of @name; .connections is unknown. Return: false: it has none.
 * Pure. */
bool traffic_parse(const char *text, const char *name,
                   struct box_network_usage *ret) attr_must_check;
/** traffic_read - of the box's interface; @file: the open table, -1: none. */
bool traffic_read(int file, struct box_network_usage *ret) attr_must_check;
