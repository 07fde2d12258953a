/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what callers attach to a session (session_set_notes): an object with `name`, the requested
 * `image`, and `metadata`.
 */

#include "base/attr.h"
#include <jansson.h>

struct session;
struct session_info;

/** notes_read - Return: owned; may be empty. */
json_t *notes_read(const struct session_info *info) attr_must_check;
/** notes_write - @notes is released. */
void notes_write(struct session *session, json_t *notes);
