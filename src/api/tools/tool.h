/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the tools that agents call. The table in tools.c has for each its name, description for the
 * model, arguments, result, scope and function. MCP and REST call the same rows.
 *
 * A call is checked against its row (enabled, scope, arguments), run, and ended once. Core decides,
 * counts and audits. A failed program is a result (isError); so is a refused call, which also has
 * an error.
 *
 * On the loop only. Nothing here knows HTTP.
 */

#include "api/json/fields.h"
#include "api/tools/call.h"
#include "base/attr.h"
#include "base/error.h"
#include "core/identity/scope.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;

enum tool_hint {
	TOOL_READ_ONLY = 1,   /* changes nothing */
	TOOL_DESTRUCTIVE = 2, /* may overwrite or delete */
	TOOL_IDEMPOTENT = 4,  /* repeating it changes nothing more */
	TOOL_OPEN_WORLD = 8,  /* reaches beyond the sandbox */
	TOOL_BRIEF = 16,      /* in the default profile */
};

typedef void tool_fn(struct call *call);

struct tool {
	const char *name, *title;
	const char *description;     /* for a model */
	const struct fields *input;  /* of struct tool_args */
	const struct fields *output; /* absent members are null or left out */
	unsigned hints;              /* of enum tool_hint */
	enum scope scope;
	tool_fn *run;
	const char *language; /* NULL: the arguments decide */
};

/** tool_at - disabled tools too; NULL past the end. */
const struct tool *tool_at(size_t index);
/** tool_find - NULL: unknown or disabled. @config NULL: disabled tools too. */
const struct tool *tool_find(const struct config *config, const char *name);
bool tool_is_enabled(const struct config *config, const struct tool *tool);
/** tools_check - whether the settings name known tools; ERR_CONFIG. */
int tools_check(const struct config *config, struct error *err) attr_must_check;

/* Who reads a list of tools. */
struct tool_reader {
	const struct router *router; /* NULL: choices of the host are left out */
	const struct principal *who;
	bool brief; /* a model, in the default profile */
};

/** tool_has_network - the caller's policy grants one. */
bool tool_has_network(const struct router *r, const struct principal *who);
/** tool_is_listed - enabled, and the host has its language. */
bool tool_is_listed(const struct router *r, const struct tool *tool);
/** tool_is_in_profile - MCP lists it. With mcp.enabled_tools the operator chose the list. */
bool tool_is_in_profile(const struct router *r, const struct tool *tool);
/** tool_unknown - ERR_INVALID that suggests the nearest name, or lists some. @r NULL: disabled
 * tools too, and no list. Return: always -1. */
int tool_unknown(const struct router *r, const char *name, struct error *err);

/** tool_input_schema - Return: owned. */
json_t *tool_input_schema(const struct tool *tool,
                          const struct tool_reader *reader) attr_must_check;
/** tool_view - as MCP lists it. Return: owned. */
json_t *tool_view(const struct tool *tool, const struct tool_reader *reader) attr_must_check;

/* A tool's result is {content, structuredContent, isError}, as in MCP. */

/**
 * tool_start - check the scope, decode @arguments, start. A refusal is a result with isError;
 * on_done gets its error too. @arguments NULL: the dialect has filled call->args.
 */
void tool_start(struct call *call, const struct tool *tool, const json_t *arguments);
/** tool_result_text - of the first item; borrowed. */
const char *tool_result_text(const json_t *result);

/** tool_finish - takes @structured and @content; @content NULL: only @text. */
void tool_finish(struct call *call, const char *text, json_t *structured, json_t *content,
                 bool is_error);
void tool_refuse(struct call *call, const struct error *err);
/**
 * tool_with_session - call @fn with the session in the arguments, perhaps after reading it from the
 * store. Refuses the call without one.
 */
void tool_with_session(struct call *call, call_session_fn *fn);
