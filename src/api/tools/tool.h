/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what agents call. One table (tools.c) has every tool: its name, what a model is told about
 * it, its arguments, its result, what it needs, and the function that does it. MCP (mcp_*.c) and
 * the REST dialects of tools are two ways to the same rows; neither knows a tool by name.
 *
 * A call is checked against its row (enabled, scope, arguments), then run, then answered once. What
 * it does is done by the same calls of core as REST's: they decide, count and audit. A program that
 * failed is an answer (is_error); what could not be done is one too, and has @failure.
 *
 * On the loop only. Nothing here speaks HTTP.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/identity/scope.h"
#include "core/tenant/principal.h"
#include "driver/driver.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct router;
struct session;
struct tool;
struct tool_call;

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

typedef void tool_fn(struct tool_call *call);

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

/* Calling. */

/* Borrowed for the call of on_done. */
struct tool_result {
	json_t *content;    /* items as MCP has them; the first is text, for people and models */
	json_t *structured; /* an object; what REST dialects call metadata */
	bool is_error;      /* the program failed, or there was none: see @failure */
	const struct error *failure; /* why nothing was done; NULL: it was */
};

/** tool_result_text - the text of the first item; borrowed. */
const char *tool_result_text(const struct tool_result *result);

struct tool_events {
	void *ctx;
	/* Output of a program as it comes, as text; may be NULL. Never after on_done. */
	void (*on_output)(void *ctx, enum output_stream stream, const char *text, size_t len);
	/* Once; not after tool_cancel. It may come before tool_start returns. */
	void (*on_done)(void *ctx, const struct tool_result *result);
};

/* Borrowed for the call of tool_start. */
struct tool_request {
	const struct tool *tool;
	const struct principal *principal;
	const char *request_id; /* for logs and audit */
	json_t *arguments; /* an object, which may be changed; NULL: none. A reference is kept */
	bool whole;        /* a program reads the result: output in it is not shortened */
};

/**
 * tool_start - check and begin. Return: a handle for tool_cancel, valid until on_done; NULL:
 * on_done was called already. Refusals come by on_done too, so that there is one way to answer.
 */
struct tool_call *tool_start(struct router *r, const struct tool_request *request,
                             const struct tool_events *events);
/** tool_cancel - the caller has changed its mind: what runs for it is ended; no callback follows.
 */
void tool_cancel(struct tool_call *call);

/* For the functions of the rows. */

struct tool_call {
	struct router *router;
	const struct tool *tool;
	struct principal principal; /* its texts are the call's own */
	char *tenant, *key_id, *request_id;
	json_t *arguments; /* checked */
	struct tool_events events;
	/* Of the handler: what it waits for. @cancel ends that and frees @state; NULL: nothing. */
	void *state;
	void (*cancel)(void *state);
	bool starting, over, whole;
	uint64_t started_us;
};

/* Arguments by name. Those with a fallback in the row are always there. */
const char *tool_text(const struct tool_call *call, const char *name); /* NULL: not given */
double tool_number(const struct tool_call *call, const char *name);
bool tool_flag(const struct tool_call *call, const char *name);
const json_t *tool_value(const struct tool_call *call, const char *name);

/** tool_finish - the end of a call. @structured and @content are released; @content NULL: there is
 * only @text. */
void tool_finish(struct tool_call *call, const char *text, json_t *structured, json_t *content,
                 bool is_error);
/** tool_refuse - the end of one that could not be done. */
void tool_refuse(struct tool_call *call, const struct error *err);

typedef void tool_session_fn(struct tool_call *call, struct session *session);
/** tool_with_session - @fn is called with the session @id names, now or when it was read from the
 * store; where there is none the call is refused. */
void tool_with_session(struct tool_call *call, const char *id, tool_session_fn *fn);
