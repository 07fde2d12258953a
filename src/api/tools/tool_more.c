/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/json.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/tenant/principal.h"
#include <string.h>

/*
 * Theory of operation. A model sees only the tools of its list, and many clients let it call no
 * others. more_tools describes them all, and calls one on request: the call is then that tool's,
 * with its scope, its arguments, its metrics and its result.
 */

#define TEXT_MAX (256u << 10)

static bool contains_word(const char *text, const char *word, size_t len)
{
	for (; *text; text++)
		if (strncasecmp(text, word, len) == 0)
			return true;
	return false;
}

static bool mentions(const struct tool *tool, const char *word, size_t len)
{
	if (contains_word(tool->name, word, len) || contains_word(tool->description, word, len))
		return true;
	for (const struct field *f = tool->input->rows; f->name; f++)
		if (f->shown != FIELD_SHOWN_NEVER && contains_word(f->name, word, len))
			return true;
	return false;
}

/* Every word of @query; an empty one matches. */
static bool matches(const struct tool *tool, const char *query)
{
	const char *at = query ? query : "";

	for (;;) {
		size_t len;

		at += strspn(at, " \t\n,");
		len = strcspn(at, " \t\n,");
		if (len == 0)
			return true;
		if (!mentions(tool, at, len))
			return false;
		at += len;
	}
}

static json_t *describe_argument(json_t *schema, bool required)
{
	const char *type = json_string_value(json_object_get(schema, "type"));
	const char *help = json_string_value(json_object_get(schema, "description"));
	cleanup_json json_t *words = json_incref(json_object_get(schema, "enum"));
	cleanup_buf struct buf b = BUF_INIT(TEXT_MAX);

	(void)!buf_addf(&b, "%s%s",
	                words  ? "one of"
	                : type ? type
	                       : "string or number",
	                words || !required ? "" : ", required");
	for (size_t i = 0; i < json_array_size(words); i++)
		(void)!buf_addf(&b, " %s", json_string_value(json_array_get(words, i)));
	if (words && required)
		(void)!buf_add_str(&b, ", required");
	if (help)
		(void)!buf_addf(&b, ". %s", help);
	return json_text(b.data, b.len);
}

static bool is_required(const json_t *schema, const char *name)
{
	const json_t *list = json_object_get(schema, "required");

	for (size_t i = 0; i < json_array_size(list); i++)
		if (str_equal(json_string_value(json_array_get(list, i)), name))
			return true;
	return false;
}

/* In fewer words than a schema. Return: owned. */
static json_t *describe_tool(const struct tool *tool, const struct tool_reader *reader)
{
	cleanup_json json_t *schema = tool_input_schema(tool, reader);
	json_t *j = json_object(), *arguments = json_object(), *value;
	const char *name;

	json_object_foreach (json_object_get(schema, "properties"), name, value)
		json_set(arguments, name, describe_argument(value, is_required(schema, name)));
	json_set(j, "name", json_string(tool->name));
	json_set(j, "description", json_string(tool->description));
	json_set(j, "arguments", arguments);
	return j;
}

static void print_tool(struct buf *text, const json_t *j, bool arguments)
{
	json_t *value;
	const char *name;

	(void)!buf_addf(text, "%s: %s\n", json_string_value(json_object_get(j, "name")),
	                json_string_value(json_object_get(j, "description")));
	if (!arguments)
		return;
	json_object_foreach (json_object_get(j, "arguments"), name, value)
		(void)!buf_addf(text, "  %s: %s\n", name, json_string_value(value));
}

static void list_tools(struct call *call)
{
	const struct tool_reader reader = {.router = call->router, .who = call->principal};
	const char *query = call->args.query;
	cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
	json_t *list = json_array(), *structured = json_object();
	bool all = !query || !*query;
	const struct tool *tool;

	for (size_t i = 0; (tool = tool_at(i)); i++) {
		json_t *j;

		if (tool == call->tool || !tool_is_listed(call->router, tool) ||
		    !scope_allows(call->principal->scopes, tool->scope) || !matches(tool, query))
			continue;
		j = describe_tool(tool, &reader);
		print_tool(&text, j, !all);
		if (all)
			(void)json_object_del(j, "arguments");
		json_append(list, j);
	}
	(void)!buf_add_str(&text,
	                   text.len == 0 ? "No tool matches; without query all are listed."
	                   : all ? "For the arguments of some give query. To call one give call "
	                           "and arguments."
	                         : "To call one of them give call and arguments.");
	json_set(structured, "tools", list);
	tool_finish(call, text.data, structured, NULL, false);
}

void tool_more_tools(struct call *call)
{
	cleanup_free char *name = TAKE_PTR(call->args.callee);
	cleanup_json json_t *arguments = TAKE_PTR(call->args.arguments), *none = json_object();
	const struct tool *tool = name ? tool_find(call->router->config, name) : NULL;
	struct error err = {0};

	if (!name) {
		list_tools(call);
		return;
	}
	if (!tool || tool == call->tool) {
		(void)tool_unknown(call->router, name, &err);
		(void)!str_copy(err.field, sizeof(err.field), "call");
		tool_refuse(call, &err);
		return;
	}
	tool_args_done(&call->args);
	tool_start(call, tool, arguments ? arguments : none);
}
