/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: files that a run created, as JSON. */

#include "base/attr.h"
#include <jansson.h>

struct artifacts;

/** encode_artifacts - @session_id NULL: the box is gone. Return: owned. */
json_t *encode_artifacts(const struct artifacts *artifacts, const char *session_id) attr_must_check;
