/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: files that an execution made, as JSON. */

#include "base/attr.h"
#include <jansson.h>

struct artifacts;

/** encode_artifacts - @session_id NULL: they went with their box. Return: owned. */
json_t *encode_artifacts(const struct artifacts *artifacts, const char *session_id) attr_must_check;
