/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/tool.h"

#include "api/json/json.h"
#include "api/op/language_list.h"
#include "api/reply.h"
#include "api/sandboxes/sandboxes.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/config/config.h"
#include "http/status.h"
#include <string.h>

#define TOOLS_PATH "/mcp/tools"

struct execute_body {
	json_t *arguments, *options; /* owned */
};

const struct fields sandboxes_execute_fields = SANDBOXES_FIELDS(
	"SandboxToolRequest",
	{"arguments", FIELD_OBJECT, AT(struct execute_body, arguments), .fallback = "{}"},
	{"options", FIELD_OBJECT, AT(struct execute_body, options), .fallback = "{}",
         .description = "`timeout` for tools that have one, and `stream`; `async` and retries are "
                        "refused."});

// NOLINTNEXTLINE(readability-non-const-parameter): the dialect's type
json_t *sandboxes_tool_error_body(const struct error *err, const char *request_id, int *status)
{
	json_t *j = reply_error_object(err, request_id), *context = json_object();
	json_t *metadata = json_object();
	const char *code =
		err->code == ERR_TOO_LARGE ? "INVALID_PARAMETERS" : sandboxes_code(err->code);

	(void)status;
	json_set(context, "error_code", json_incref(json_object_get(j, "error_code")));
	json_set(context, "field", json_incref(json_object_get(j, "field")));
	json_set(context, "request_id", json_string(request_id));
	json_set(j, "code", json_string(code));
	json_set(j, "message", json_incref(json_object_get(j, "description")));
	json_set(j, "details", json_incref(json_object_get(j, "error_detail")));
	json_set(j, "context", json_incref(context));
	json_set(metadata, "code", json_string(code));
	json_set(metadata, "message", json_incref(json_object_get(j, "description")));
	json_set(metadata, "details", json_incref(json_object_get(j, "error_detail")));
	json_set(metadata, "context", context);
	json_set(j, "text",
	         json_sprintf("%s %s", json_string_value(json_object_get(j, "description")),
	                      json_string_value(json_object_get(j, "error_detail"))));
	json_set(j, "is_error", json_true());
	json_set(j, "metadata", metadata);
	return j;
}

/* Further items: figures and links. */
static json_t *render_plain(const struct sandboxes_done *done)
{
	json_t *content = json_object_get(done->result, "content");
	json_t *j = json_object();

	json_set(j, "text", json_string(tool_result_text(done->result)));
	json_set(j, "is_error", json_boolean(done->is_error));
	json_set(j, "metadata", sandboxes_metadata(done));
	if (json_array_size(content) > 1)
		json_set(j, "content", json_incref(content));
	return j;
}

/* /mcp only if MCP is enabled; /api/v1/tools always. */
static bool is_served(const struct router *r, struct http_request *req)
{
	struct error err = {0};

	if (r->config->mcp_enabled)
		return true;
	(void)error_set(&err, ERR_NOT_FOUND, 0, "MCP is not enabled here");
	reply_error(req, &err);
	return false;
}

void sandboxes_tool_call(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct sandboxes_call call = {.tool = args->id, .render = render_plain};
	struct error err = {0};
	size_t len;
	const char *text = http_body(req, &len);

	if (!is_served(r, req))
		return;
	call.arguments = json_read_object(text, len, &err);
	if (!call.arguments) {
		reply_error(req, &err);
		return;
	}
	http_drop_body(req);
	sandboxes_call(r, req, args, &call);
}

static void answer_names(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct tool_reader reader = {.router = r, .who = args->principal};
	json_t *j = json_object(), *list = json_array();
	const struct tool *tool;

	for (size_t i = 0; (tool = tool_at(i)); i++)
		if (tool_is_listed(r, tool))
			(void)!json_array_append_new(list, tool_view(tool, &reader));
	json_set(j, "total_count", json_integer((json_int_t)json_array_size(list)));
	json_set(j, "tools", list);
	reply_json(req, HTTP_OK, j);
}

void sandboxes_tool_names(struct router *r, struct http_request *req, const struct route_args *args)
{
	if (is_served(r, req))
		op_language_then_tools(r, req, args, answer_names);
}

static const char *category(const struct tool *tool)
{
	static const struct {
		enum scope scope;
		const char *name;
	} of[] = {
		{SCOPE_EXECUTE, "execution"}, {SCOPE_FILES, "files"}, {SCOPE_SESSIONS, "sandbox"}};

	for (size_t i = 0; i < ARRAY_SIZE(of); i++)
		if (tool->scope == of[i].scope)
			return of[i].name;
	return "information";
}

static json_t *view_tool(const struct tool *tool, const struct tool_reader *reader)
{
	json_t *j = tool_view(tool, reader), *tags = json_array();

	(void)!json_array_append_new(tags, json_string(category(tool)));
	if (tool->language)
		(void)!json_array_append_new(tags, json_string(tool->language));
	json_set(j, "schema", tool_input_schema(tool, reader));
	json_set(j, "version", json_string(MILLIBOX_VERSION));
	json_set(j, "category", json_string(category(tool)));
	json_set(j, "tags", tags);
	json_set(j, "deprecated", json_false());
	return j;
}

struct tool_query {
	struct sandboxes_page page;
	const char *name;
};

static const struct field query_rows[] = {
	SANDBOXES_PAGE_ROWS,
	{"filter_name", FIELD_STRING, AT(struct tool_query, name),
         .description = "A substring of the name."},
	FIELDS_END,
};
const struct fields sandboxes_tool_query = {.rows = query_rows};

static void answer_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct tool_reader reader = {.router = r, .who = args->principal};
	struct tool_query query = {0};
	struct error err = {0};
	json_t *list;
	const struct tool *tool;

	if (query_decode(req, args->query, &query, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	list = json_array();
	for (size_t i = 0; (tool = tool_at(i)); i++)
		if (tool_is_listed(r, tool) && (!query.name || strstr(tool->name, query.name)))
			(void)!json_array_append_new(list, view_tool(tool, &reader));
	sandboxes_reply_list(req, &query.page, list);
}

void sandboxes_tool_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	if (sandboxes_begin(req, SANDBOXES_V1) == 0)
		op_language_then_tools(r, req, args, answer_list);
}

static const struct tool *find_tool(const struct router *r, struct http_request *req,
                                    const char *name)
{
	const struct tool *tool = tool_find(r->config, name);
	struct error err = {0};

	if (tool)
		return tool;
	(void)error_set(&err, ERR_NOT_FOUND, 0, "no tool has this name");
	reply_error(req, &err);
	return NULL;
}

static void answer_tool(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct tool_reader reader = {.router = r, .who = args->principal};
	const struct tool *tool = find_tool(r, req, args->id);

	if (tool)
		reply_json(req, HTTP_OK, view_tool(tool, &reader));
}

void sandboxes_tool_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	if (sandboxes_begin(req, SANDBOXES_V1) == 0)
		op_language_then_tools(r, req, args, answer_tool);
}

static json_t *render_envelope(const struct sandboxes_done *done)
{
	json_t *id = json_object_get(done->structured, "execution_id");
	json_t *j = json_object();

	json_set(j, "result", json_string(tool_result_text(done->result)));
	json_set(j, "is_error", json_boolean(done->is_error));
	json_set(j, "execution_id",
	         json_is_string(id) ? json_incref(id) : json_string(done->request_id));
	/* Go's clients read whole nanoseconds. */
	json_set(j, "duration", json_integer((json_int_t)done->duration_us * 1000));
	json_set(j, "duration_ms", json_real((double)done->duration_us / 1000));
	json_set(j, "timestamp", sandboxes_now());
	json_set(j, "metadata", sandboxes_metadata(done));
	return j;
}

/* `timeout` becomes an argument. Refuses asynchronous calls and retries. */
static int take_options(const struct tool *tool, const json_t *options, json_t *arguments,
                        struct error *err)
{
	const json_t *timeout = json_object_get(options, "timeout");
	const json_t *retry = json_object_get(options, "retry_policy");
	double seconds;

	if (json_is_true(json_object_get(options, "async")))
		return error_field(err, "options.async",
		                   "must be false: a response waits for its tool, or streams");
	if (retry && !json_is_null(retry) &&
	    json_integer_value(json_object_get(retry, "max_retries")) > 0)
		return error_field(err, "options.retry_policy",
		                   "is not supported: a tool is never run twice");
	if (!timeout || json_is_null(timeout))
		return 0;
	if (sandboxes_seconds(timeout, "options.timeout", &seconds, err) < 0)
		return -1;
	if (fields_find(tool->input, "timeout") && !json_object_get(arguments, "timeout"))
		json_set(arguments, "timeout", json_real(seconds));
	return 0;
}

void sandboxes_tool_execute(struct router *r, struct http_request *req,
                            const struct route_args *args)
{
	struct sandboxes_call call = {.tool = args->id, .render = render_envelope};
	struct execute_body body = {0};
	const struct tool *tool;
	struct error err = {0};

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	tool = find_tool(r, req, args->id);
	if (!tool)
		return;
	if (sandboxes_decode(r, req, args, &sandboxes_execute_fields, &body) == 0) {
		call.stream = json_is_true(json_object_get(body.options, "stream"));
		call.arguments = TAKE_PTR(body.arguments);
		http_drop_body(req);
		if (take_options(tool, body.options, call.arguments, &err) == 0) {
			sandboxes_call(r, req, args, &call);
		} else {
			json_decref(call.arguments);
			reply_error(req, &err);
		}
	}
	fields_done(&sandboxes_execute_fields, &body);
}
