/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "api/json/json.h"
#include "api/tools/tool.h"
#include "base/alloc.h"
#include "base/str.h"

/*
 * Theory of operation. A tool call is answered when it ends. Clients that sent a progressToken
 * get the output of the program as progress: the message is the text, the number counts bytes.
 * Invalid arguments are a result with isError, because a model can correct them; an unknown tool
 * is an error of the protocol.
 */

#define LOG_INFO    1
#define LOG_WARNING 3

static json_t *view_tool(const struct tool *tool, enum mcp_version version)
{
	json_t *j = tool_view(tool);

	if (version < MCP_2025_06_18) {
		(void)json_object_del(j, "outputSchema");
		(void)json_object_del(j, "title");
	}
	if (version < MCP_2025_03_26)
		(void)json_object_del(j, "annotations");
	return j;
}

json_t *mcp_tools_list(struct mcp_request *q, struct error *err)
{
	json_t *result, *list;
	const struct tool *tool;
	uint64_t offset;

	if (mcp_request_offset(q, &offset, err) < 0)
		return NULL;
	result = json_object();
	list = json_array();
	for (; (tool = tool_at(offset)) && json_array_size(list) < MCP_PAGE; offset++)
		if (tool_is_enabled(q->call.router->config, tool) &&
		    scope_allows(q->call.principal->scopes, tool->scope))
			(void)!json_array_append_new(list, view_tool(tool, q->session->version));
	json_set(result, "tools", list);
	if (tool)
		mcp_request_set_cursor(result, offset);
	return result;
}

static void on_output(void *ctx, enum output_stream stream, const char *text, size_t len)
{
	struct mcp_request *q = ctx;
	json_t *params = json_object();

	(void)stream; /* progress does not tell them apart */
	q->progress += len;
	json_set(params, "progressToken", json_incref(q->token));
	json_set(params, "progress", json_integer((json_int_t)q->progress));
	if (q->session->version >= MCP_2025_03_26)
		json_set(params, "message", json_text(text, len));
	mcp_request_notify(q, "notifications/progress", params);
}

/* Older clients do not know links; the text names them too. */
static void drop_links(json_t *content)
{
	for (size_t i = json_array_size(content); i-- > 0;) {
		const json_t *item = json_array_get(content, i);

		if (str_equal(json_string_value(json_object_get(item, "type")), "resource_link"))
			(void)json_array_remove(content, i);
	}
}

static void log_end(struct mcp_request *q, const json_t *result)
{
	const json_t *structured = json_object_get(result, "structuredContent");
	const char *id = json_string_value(json_object_get(structured, "execution_id"));
	bool is_error = json_is_true(json_object_get(result, "isError"));
	json_t *params, *data;

	if (!id || (is_error ? LOG_WARNING : LOG_INFO) < q->session->log_level)
		return;
	data = json_object();
	json_set(data, "execution_id", json_string(id));
	json_set(data, "outcome", json_incref(json_object_get(structured, "outcome")));
	json_set(data, "duration", json_incref(json_object_get(structured, "duration")));
	params = json_object();
	json_set(params, "level", json_string(is_error ? "warning" : "info"));
	json_set(params, "logger", json_string("millibox"));
	json_set(params, "data", data);
	mcp_request_notify(q, "notifications/message", params);
}

static void on_done(void *ctx, json_t *result, const struct error *failure)
{
	struct mcp_request *q = ctx;

	(void)failure; /* in the result as well */
	log_end(q, result);
	if (q->session->version < MCP_2025_06_18) {
		drop_links(json_object_get(result, "content"));
		(void)json_object_del(result, "structuredContent");
	}
	mcp_request_result(q, json_incref(result));
}

void mcp_tools_call(struct mcp_request *q)
{
	const char *name = mcp_request_text(q, "name");
	cleanup_json json_t *none = json_object();
	const json_t *arguments = json_object_get(q->params, "arguments");
	const struct tool *tool = name ? tool_find(q->call.router->config, name) : NULL;
	struct error err = {0};

	if (!tool || (arguments && !json_is_object(arguments))) {
		(void)error_set(&err, ERR_INVALID, 0, "%s%.100s",
		                tool ? "arguments must be an object of " : "Unknown tool: ",
		                name ? name : "(none named)");
		mcp_request_fail(q, &err);
		return;
	}
	q->call.events.on_output = q->token ? on_output : NULL;
	q->call.events.on_done = on_done;
	tool_start(&q->call, tool, arguments ? arguments : none);
}
