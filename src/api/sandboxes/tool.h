/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the tools of tool.h by REST, in two forms: /mcp/tools/{tool} with bare arguments, which is
 * what SandboxRunner's own client calls, and /api/tools/{tool}/execute with an envelope.
 */

#include "base/error.h"
#include <jansson.h>
#include <stdbool.h>

/** sandboxes_tool_is_path - whether errors of this path are told as those of tools. Pure. */
bool sandboxes_tool_is_path(const char *path);
/** sandboxes_tool_error_object - the canonical error with {code, message, details, context} and the
 * result of a tool that failed, because its clients know both. Return: owned. Pure. */
json_t *sandboxes_tool_error_object(const struct error *err, const char *request_id);
