/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the tools that agents call. One table (tools.c) has every tool: name, description for the
 * model, arguments, result, required scope, and its function. MCP and the REST dialect of tools
 * both call these rows.
 *
 * A call is checked against its row (enabled, scope, arguments), run, and ended once. It uses the
 * same calls of core as REST, which decide, count and audit. A program that failed is a result
 * (isError); so is a call that was refused, which also has an error.
 *
 * On the loop only. Nothing here knows HTTP.
 */

#include "api/tools/call.h"
#include "base/attr.h"
#include "base/error.h"
#include "core/identity/scope.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;

enum tool_type {
	TOOL_STRING,
	TOOL_INTEGER,
	TOOL_NUMBER,
	TOOL_BOOLEAN,
	TOOL_OBJECT,
	TOOL_STRINGS, /* a list of strings */
	TOOL_LIST,    /* of anything */
	TOOL_ANY,
	TOOL_TYPE_COUNT
};

/* A member of the arguments, or of the structured result. A table of them ends with a NULL name. */
struct tool_field {
	const char *name;
	enum tool_type type;
	bool required; /* of results: never read. What a result has not is null or not there */
	const char *help;
	double min, max;          /* of numbers; both 0: any */
	const char *const *words; /* the only values there are, NULL-terminated; NULL: any */
	const char *fallback;     /* JSON: what it is where it is not given; NULL: nothing */
};

enum tool_hint {
	TOOL_READ_ONLY = 1,   /* changes nothing */
	TOOL_DESTRUCTIVE = 2, /* what it changes may be lost */
	TOOL_IDEMPOTENT = 4,  /* doing it again with the same arguments changes nothing more */
	TOOL_OPEN_WORLD = 8,  /* reaches beyond the sandbox */
};

typedef void tool_fn(struct call *call);

struct tool {
	const char *name, *title;
	const char *description;         /* for a model */
	const struct tool_field *input;  /* its handler finds them checked */
	const struct tool_field *output; /* of the structured result */
	unsigned hints;                  /* of enum tool_hint */
	enum scope scope;
	tool_fn *run;
	const char *language; /* that it runs; NULL: what its arguments say */
};

/* tools.c: the table. */

/** tool_at - in the order of the table, disabled ones included; NULL past the end. */
const struct tool *tool_at(size_t index);
/** tool_find - NULL: none of this name, or the operator has disabled it. */
const struct tool *tool_find(const struct config *config, const char *name);
bool tool_is_enabled(const struct config *config, const struct tool *tool);
/** tools_check - whether the settings name only tools that there are; ERR_CONFIG. */
int tools_check(const struct config *config, struct error *err) attr_must_check;

/* tool_schema.c: rows as JSON Schema, and arguments against rows. Pure. */

/** tool_input_schema - of an object; other members are refused. Return: owned. */
json_t *tool_input_schema(const struct tool *tool) attr_must_check;
/** tool_output_schema - Return: owned. */
json_t *tool_output_schema(const struct tool *tool) attr_must_check;
/** tool_view - everything a client of MCP is told of it. Return: owned. */
json_t *tool_view(const struct tool *tool) attr_must_check;
/**
 * tool_check_arguments - ERR_INVALID or ERR_UNKNOWN_FIELD with the field. Members that are null
 * count as not given, and are removed: clients send them for what they have not.
 */
int tool_check_arguments(const struct tool_field *fields, json_t *arguments,
                         struct error *err) attr_must_check;

/* Calling. The result of a tool is {content, structuredContent, isError}, as MCP has it. */

/**
 * tool_start - check @arguments and start @call->tool. @arguments is an object and may be changed;
 * NULL: none. A refusal is a result too, with isError, and on_done gets its error as well.
 */
void tool_start(struct call *call, const struct tool *tool, json_t *arguments);
/** tool_result_text - the text of the first item of a result; borrowed. */
const char *tool_result_text(const json_t *result);

/* For the functions of the rows. */

/* Arguments by name. Those with a fallback in the row are always there. */
const char *tool_text(const struct call *call, const char *name); /* NULL: not given */
double tool_number(const struct call *call, const char *name);
bool tool_flag(const struct call *call, const char *name);
const json_t *tool_value(const struct call *call, const char *name);

/** tool_finish - end the call. @structured and @content are taken; @content NULL: only @text. */
void tool_finish(struct call *call, const char *text, json_t *structured, json_t *content,
                 bool is_error);
/** tool_refuse - end a call that could not be carried out. */
void tool_refuse(struct call *call, const struct error *err);
/** tool_with_session - call @fn with the session named @id, now or when the store has read it;
 * where there is none the call is refused. @id must stay valid until the call ends. */
void tool_with_session(struct call *call, const char *id, call_session_fn *fn);
