/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: JSON values as text. A real is written with as few digits as read back as the same value:
 * 0.1 is 0.1, and 0.1 + 0.2 is 0.30000000000000004. Pure.
 */

#include "base/attr.h"
#include "base/buf.h"
#include <jansson.h>

/** json_dump_text - any value. @flags: as of the library. Return: owned; NULL: out of memory. */
char *json_dump_text(const json_t *value, size_t flags) attr_must_check;
/** json_dump_to - append to @b, compact. Return: 0, or -1 if @b is full. */
int json_dump_to(struct buf *b, const json_t *value) attr_must_check;
/** json_dump_size - bytes of the compact text, or a few more. */
size_t json_dump_size(const json_t *value) attr_must_check;
