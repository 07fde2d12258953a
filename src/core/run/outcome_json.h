/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: an outcome as JSON for the store, and back. Output and report are stored separately, as
 * bytes. A missing member reads as 0. Pure.
 */

#include "base/attr.h"
#include "core/run/outcome.h"

/** outcome_to_json - Return: owned. */
char *outcome_to_json(const struct outcome *outcome, bool session_reset) attr_must_check;
/** outcome_from_json - @ret_outcome has no output or report. Return: 0 or -EINVAL. */
int outcome_from_json(const char *text, struct outcome *ret_outcome,
                      bool *ret_session_reset) attr_must_check;
