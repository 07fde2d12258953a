/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "api/json/json.h"
#include "api/tools/tool.h"
#include "base/alloc.h"
#include "base/str.h"

/*
 * Theory of operation. A call of a tool is answered when it is over. What its program prints comes
 * as progress, to clients that have asked for some (progressToken): the message is the text, the
 * number counts its bytes. Arguments that are wrong are a result like others, because a model can
 * correct them; only a tool that is not there is an error of the protocol.
 */

#define LOG_INFO    1
#define LOG_WARNING 3

static bool is_shown(const struct mcp_request *q, const struct tool *tool)
{
	return tool_is_enabled(q->session->mcp->router->config, tool) &&
	       scope_allows(q->principal->scopes, tool->scope);
}

static json_t *view(const struct tool *tool, enum mcp_version version)
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

void mcp_tools_list(struct mcp_request *q)
{
	json_t *result = json_object(), *list = json_array();
	const struct tool *tool;
	uint64_t offset;

	if (mcp_cursor_read(q, &offset) < 0) {
		json_decref(result);
		json_decref(list);
		return;
	}
	for (; (tool = tool_at(offset)) && json_array_size(list) < MCP_PAGE; offset++)
		if (is_shown(q, tool))
			(void)!json_array_append_new(list, view(tool, q->session->version));
	json_set(result, "tools", list);
	if (tool)
		mcp_cursor_set(result, offset);
	mcp_request_result(q, result);
}

static void on_output(void *ctx, enum output_stream stream, const char *text, size_t len)
{
	struct mcp_request *q = ctx;
	json_t *params = json_object();

	(void)stream; /* for a person who watches they are one */
	q->progress += len;
	json_set(params, "progressToken", json_incref(q->token));
	json_set(params, "progress", json_integer((json_int_t)q->progress));
	if (q->session->version >= MCP_2025_03_26)
		json_set(params, "message", json_text(text, len));
	mcp_request_tell(q, "notifications/progress", params);
}

/* Kinds of items that older clients would stumble over are told in the text anyway. */
static json_t *content_for(enum mcp_version version, const json_t *content)
{
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(content); i++) {
		json_t *item = json_array_get(content, i);
		const char *type = json_string_value(json_object_get(item, "type"));

		if (version >= MCP_2025_06_18 || !str_equal(type, "resource_link"))
			(void)!json_array_append(list, item);
	}
	return list;
}

static void log_end(struct mcp_request *q, const struct tool_result *result)
{
	const char *id = json_string_value(json_object_get(result->structured, "execution_id"));
	int level = result->is_error ? LOG_WARNING : LOG_INFO;
	json_t *params, *data;

	if (!id || level < q->session->log_level)
		return;
	data = json_object();
	json_set(data, "execution_id", json_string(id));
	json_set(data, "outcome", json_incref(json_object_get(result->structured, "outcome")));
	json_set(data, "duration", json_incref(json_object_get(result->structured, "duration")));
	params = json_object();
	json_set(params, "level", json_string(result->is_error ? "warning" : "info"));
	json_set(params, "logger", json_string("millibox"));
	json_set(params, "data", data);
	mcp_request_tell(q, "notifications/message", params);
}

static void on_done(void *ctx, const struct tool_result *result)
{
	struct mcp_request *q = ctx;
	json_t *j = json_object();

	log_end(q, result);
	json_set(j, "content", content_for(q->session->version, result->content));
	if (q->session->version >= MCP_2025_06_18)
		json_set(j, "structuredContent", json_incref(result->structured));
	json_set(j, "isError", json_boolean(result->is_error));
	q->work = NULL;
	mcp_request_result(q, j);
}

static void cancel(void *work)
{
	tool_cancel(work);
}

void mcp_tools_call(struct mcp_request *q)
{
	const char *name = mcp_request_text(q, "name");
	json_t *arguments = json_object_get(q->params, "arguments");
	struct router *r = q->session->mcp->router;
	const struct tool *tool = name ? tool_find(r->config, name) : NULL;
	const struct tool_request request = {tool, q->principal, q->request_id, arguments};
	const struct tool_events events = {
		.ctx = q, .on_output = q->token ? on_output : NULL, .on_done = on_done};
	struct tool_call *call;

	if (!tool || (arguments && !json_is_object(arguments))) {
		char text[160];

		(void)snprintf(text, sizeof(text), "%s%.100s",
		               tool ? "arguments must be an object of " : "Unknown tool: ",
		               name ? name : "(none named)");
		mcp_request_error(q, RPC_INVALID_PARAMS, text, NULL);
		return;
	}
	call = tool_start(r, &request, &events);
	if (!call)
		return; /* answered, and gone */
	q->work = call;
	q->cancel = cancel;
}
