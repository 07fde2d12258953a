/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the result object of an execution as an exit status and as words. */

#include "base/attr.h"
#include <jansson.h>

/**
 * verdict_exit_status - the program's own status, 128 + its signal, 124 for a time-out; 125 where
 * the result does not say how the program ended.
 */
int verdict_exit_status(const json_t *result);
/** problem_exit_status - of an error object of the API: 2 where an option's value is wrong. */
int problem_exit_status(const json_t *problem);
/** verdict_explain - on stderr: which limit ended or cut it, or that it was lost. */
void verdict_explain(const json_t *result);
