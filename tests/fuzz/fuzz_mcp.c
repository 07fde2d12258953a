/* SPDX-License-Identifier: Apache-2.0 */
/* An MCP message: classified, dispatched to the methods that need only the daemon's own tables,
 * its arguments checked against every tool. */
#include <string.h>

#include "api/json/json.h"
#include "api/mcp/internal.h"
#include "api/tools/sandbox_uri.h"
#include "api/tools/tool.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/config/config.h"
#include "daemon/dialects.h"
#include "fuzz.h"

#define ANSWER_MAX (1u << 24)

/* Others need core, which is not linked. */
static const char *const methods[] = {
	"initialize",
	"ping",
	"tools/list",
	"resources/templates/list",
	"prompts/list",
	"prompts/get",
	"logging/setLevel",
	"resources/subscribe",
	"resources/unsubscribe",
	"shutdown",
	"no/such",
};

/* An answer is one line of JSON, with the id of the request. */
static void check_answer(const struct buf *answer, json_t *id)
{
	json_t *j = json_loadb(answer->data, answer->len, JSON_ALLOW_NUL, NULL);

	require(j && json_is_object(j));
	require(!memchr(answer->data, '\n', answer->len) &&
	        utf8_is_valid(answer->data, answer->len));
	require(json_equal(json_object_get(j, "id"), id));
	require(!json_object_get(j, "result") != !json_object_get(j, "error"));
	json_decref(j);
}

static void keep_answer(void *ctx, const char *text, size_t len)
{
	require(buf_add(ctx, text, len) == 0);
}

static void ask(struct mcp_session *s, const struct rpc_message *m)
{
	static const struct principal who = {TENANT_DEFAULT, NULL, SCOPES_ALL};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		struct rpc_message same = *m;
		cleanup_buf struct buf answer = BUF_INIT(ANSWER_MAX);

		/* The input's words decide, and each method sees its parameters. */
		if (!str_equal(m->method, methods[i]) && i != m->method[0] % ARRAY_SIZE(methods))
			continue;
		same.method = methods[i];
		s->sink = (struct mcp_sink){.send = keep_answer, .ctx = &answer};
		mcp_dispatch(s, NULL, &who, "id", &same);
		s->sink = (struct mcp_sink){0};
		check_answer(&answer, m->id);
	}
}

static void check_tools(json_t *params)
{
	json_t *arguments = json_object_get(params, "arguments");
	const struct tool *tool;

	for (size_t i = 0; json_is_object(arguments) && (tool = tool_at(i)); i++) {
		const struct decode_limits limits = {1u << 20};
		struct tool_args decoded = {0};
		struct error err = {0};

		if (fields_decode(tool->input, arguments, &limits, &decoded, &err) < 0)
			require(err.field[0] && err.msg[0]);
		tool_args_done(&decoded);
	}
}

static void check_uri(const json_t *params)
{
	const char *text = json_string_value(json_object_get(params, "uri"));
	struct sandbox_uri uri;

	if (!text || sandbox_uri_read(text, &uri) < 0)
		return;
	require(uri.id[0] && uri.path[0] != '/' && strncmp(uri.path, "../", 3) != 0 &&
	        !strstr(uri.path, "/../"));
}

static void take(struct mcp_session *s, json_t *value)
{
	struct rpc_message m;

	rpc_classify(value, &m);
	require(m.kind < RPC_KIND_COUNT);
	require((m.kind == RPC_INVALID) == (m.wrong != NULL));
	check_tools(m.params);
	check_uri(m.params);
	if (m.kind == RPC_REQUEST)
		ask(s, &m);
	if (m.kind == RPC_NOTIFICATION)
		mcp_dispatch_notification(s, &m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config config = {.mcp_enabled = true,
	                        .mcp_sessions = 4,
	                        .mcp_tenant_sessions = 4,
	                        .mcp_buffers_bytes = 65536,
	                        .mcp_text_bytes = 256};
	struct router *r =
		router_new(&(struct router_config){.config = &config, .dialects = dialects});
	struct error err = {0};
	struct mcp_session *s = mcp_session_new(r->mcp, TENANT_DEFAULT, &err);
	json_t *value = json_read((const char *)data, size, &err);

	require(value || (error_is_set(&err) && err.code == ERR_BAD_JSON));
	s->ready = size % 2;
	s->version = (enum mcp_version)(size % MCP_VERSION_COUNT);
	if (json_is_object(value))
		take(s, value);
	for (size_t i = 0; json_is_array(value) && i < json_array_size(value); i++)
		take(s, json_array_get(value, i));
	json_decref(value);
	router_free(r);
	return 0;
}
