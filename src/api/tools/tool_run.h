/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a tool that runs a program: arguments -> run_request, outcome -> result. */

#include "api/tools/tool.h"
#include "core/run/run.h"

struct op_run_end;

/** tool_run_finish - end the call with the result of its program. */
void tool_run_finish(struct call *call, const struct op_run_end *end);

/**
 * tool_run_prepare - complete call->args.exec.request: language, directory, packages, options.
 * @language: used where the arguments name none; NULL: guess. Sets call->asked.
 */
int tool_run_prepare(struct call *call, const char *language, struct error *err) attr_must_check;
