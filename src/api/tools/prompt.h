/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: prompts for agents: texts with {names} of arguments. Pure. */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>
#include <stdbool.h>

/** prompt_list - as MCP lists them. Return: owned. */
json_t *prompt_list(void) attr_must_check;
/**
 * prompt_fill - {description, messages}; @arguments: strings, or NULL. Return: owned, or NULL with
 * *err (ERR_INVALID).
 */
json_t *prompt_fill(const char *name, json_t *arguments, struct error *err) attr_must_check;
