/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what was asked for besides the code, as text for the store: enough to do it after a restart.
 * What the session decides (limits, template, policy) is not in it.
 */

#include "base/attr.h"
#include "base/error.h"

struct exec_request;

/** exec_request_to_json - owned. */
char *exec_request_to_json(const struct exec_request *request) attr_must_check;
/** exec_request_from_json - @ret_request has no code. ERR_STORAGE for what we did not write. */
int exec_request_from_json(const char *text, struct exec_request *ret_request,
                           struct error *err) attr_must_check;
