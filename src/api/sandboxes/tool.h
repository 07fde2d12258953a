/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the tools over REST in two forms: /mcp/tools/{tool} with bare arguments, for SandboxRunner's
 * own client, and /api/tools/{tool}/execute with an envelope.
 */

#include "base/error.h"
#include <jansson.h>

/**
 * sandboxes_tool_error_body - the common error with {code, message, details, context} and a failed
 * result: clients read either. Pure.
 */
json_t *sandboxes_tool_error_body(const struct error *err, const char *request_id, int *status);
