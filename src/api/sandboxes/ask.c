/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/json.h"
#include "api/mcp/internal.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/config/config.h"
#include <string.h>

/*
 * Theory of operation. Resources and prompts are those of MCP: a request becomes one or more
 * messages in an MCP session of its own, which nobody else sees and which ends with the answer. So
 * there is one code that reads and lists them, and one that decides who may.
 */

#define ITEMS_MAX 2000 /* of a list */
#define ASKS_MAX  500  /* pages of MCP that one list is made of */

struct asking;

/* What the answer of MCP is made into; @result is borrowed. Return: what a->method is to be asked
 * next, owned; NULL: the asking is over. */
typedef json_t *result_fn(struct asking *a, json_t *result);

struct asking {
	struct http_request *req; /* the server's */
	struct mcp_session *session;
	struct principal principal; /* its texts are the asking's own */
	char *tenant, *key_id;
	size_t max_bytes;
	const char *method;
	result_fn *on_result;
	json_t *items; /* of a list */
	size_t asked;
};

static struct asking *asking_new(struct router *r, struct http_request *req,
                                 const struct principal *who, result_fn *on_result)
{
	struct asking *a = NEW(struct asking);

	a->req = req;
	a->tenant = xstrdup(who->tenant);
	a->key_id = who->key_id ? xstrdup(who->key_id) : NULL;
	a->principal = (struct principal){a->tenant, a->key_id, who->scopes};
	a->max_bytes = r->config->max_answers_bytes;
	a->on_result = on_result;
	a->items = json_array();
	a->session = mcp_session_once(r->mcp, who->tenant);
	return a;
}

static void asking_free(struct asking *a)
{
	a->session->sink = (struct mcp_sink){0}; /* nobody is told of its end */
	mcp_session_free(a->session);
	json_decref(a->items);
	free(a->tenant);
	free(a->key_id);
	free(a);
}

/* The end. @body is released. Return: always NULL. */
static json_t *finish(struct asking *a, json_t *body)
{
	struct http_request *req = a->req;

	http_set_gone(req, NULL, NULL);
	asking_free(a);
	reply_json(req, 200, body);
	return NULL;
}

static json_t *fail(struct asking *a, const struct error *err)
{
	struct http_request *req = a->req;

	http_set_gone(req, NULL, NULL);
	asking_free(a);
	reply_error(req, err);
	return NULL;
}

/* An error of ours is told with its own code; the others are MCP's. */
static void read_error(const json_t *error, struct error *ret_err)
{
	const json_t *data = json_object_get(error, "data");
	const char *text = json_string_value(json_object_get(data, "error_code"));
	const char *message = json_string_value(json_object_get(error, "message"));
	json_int_t number = json_integer_value(json_object_get(error, "code"));
	enum error_code code = ERR_INVALID;

	if (number == RPC_RESOURCE_NOT_FOUND)
		code = ERR_NOT_FOUND;
	for (int i = 0; text && i < ERR_COUNT; i++)
		if (str_equal(error_text((enum error_code)i), text))
			code = (enum error_code)i;
	(void)error_set(ret_err, code, 0, "%.200s", message ? message : "");
}

static json_t *take_answer(struct asking *a, const char *text, size_t len)
{
	cleanup_json json_t *message = json_loadb(text, len, 0, NULL);
	const json_t *error = json_object_get(message, "error");
	struct error err = {0};

	if (!error)
		return a->on_result(a, json_object_get(message, "result"));
	read_error(error, &err);
	return fail(a, &err);
}

/* @params is released. Return: what is to be asked next; NULL: the answer is yet to come, or @a is
 * gone. */
static json_t *send(struct asking *a, json_t *params)
{
	cleanup_json json_t *id = json_integer((json_int_t)++a->asked), *held = params;
	const struct rpc_message message = {
		.kind = RPC_REQUEST, .id = id, .method = a->method, .params = held};
	cleanup_buf struct buf answer = BUF_INIT(a->max_bytes);

	if (mcp_dispatch(a->session, &a->principal, http_request_id(a->req), &message, &answer))
		return NULL;
	return take_answer(a, answer.data ? answer.data : "", answer.len);
}

static void go_on(struct asking *a, json_t *params)
{
	while (params)
		params = send(a, params);
}

/* Also told what belongs to no request: that is nothing to us. */
static void on_message(void *ctx, const char *text, size_t len)
{
	cleanup_json json_t *message = json_loadb(text, len, 0, NULL);
	json_t *next = json_object_get(message, "id") ? take_answer(ctx, text, len) : NULL;

	if (next)
		go_on(ctx, next);
}

static void on_gone(void *ctx)
{
	asking_free(ctx);
}

/* @params is released. */
static void ask(struct asking *a, const char *method, json_t *params)
{
	a->method = method;
	a->session->sink = (struct mcp_sink){.send = on_message, .ctx = a};
	http_set_gone(a->req, on_gone, a);
	go_on(a, params);
}

/* Resources. */

static json_t *view_resource(const json_t *resource)
{
	static const char *const same[] = {"uri", "name", "description", "size"};
	json_t *j = json_object(), *type = json_object_get(resource, "mimeType");

	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		json_t *value = json_object_get(resource, same[i]);

		if (value)
			json_set(j, same[i], json_incref(value));
	}
	json_set(j, "mime_type", type ? json_incref(type) : json_string(""));
	json_set(j, "updated_at", sandboxes_now());
	return j;
}

/* @items is released. The asking is over. Return: always NULL. */
static json_t *finish_list(struct asking *a, json_t *items)
{
	struct http_request *req = a->req;

	http_set_gone(req, NULL, NULL);
	asking_free(a);
	sandboxes_reply_list(req, items);
	return NULL;
}

static json_t *on_resources(struct asking *a, json_t *result)
{
	json_t *list = json_object_get(result, "resources");
	json_t *cursor = json_object_get(result, "nextCursor");

	for (size_t i = 0; i < json_array_size(list); i++)
		(void)!json_array_append_new(a->items, view_resource(json_array_get(list, i)));
	if (cursor && a->asked < ASKS_MAX && json_array_size(a->items) < ITEMS_MAX)
		return json_pack("{s:O}", "cursor", cursor);
	return finish_list(a, json_incref(a->items));
}

void sandboxes_resources(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct sandboxes_page page;
	struct error err = {0};

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	if (sandboxes_page(req, &page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	ask(asking_new(r, req, args->principal, on_resources), "resources/list", json_object());
}

static json_t *on_resource(struct asking *a, json_t *result)
{
	const json_t *one = json_array_get(json_object_get(result, "contents"), 0);
	json_t *j = view_resource(one), *text = json_object_get(one, "text");
	json_t *blob = json_object_get(one, "blob"), *content = text ? text : blob;
	const char *uri = json_string_value(json_object_get(one, "uri"));
	const char *slash = uri ? strrchr(uri, '/') : NULL;

	json_set(j, "name", json_string(slash ? slash + 1 : ""));
	json_set(j, "encoding", json_string(text ? "utf8" : "base64"));
	json_set(j, "content", content ? json_incref(content) : json_string(""));
	json_set(j, "size", json_integer((json_int_t)json_string_length(content)));
	return finish(a, j);
}

void sandboxes_resource(struct router *r, struct http_request *req, const struct route_args *args)
{
	json_t *params;

	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	params = json_object();
	json_set(params, "uri", json_text(args->rest, strlen(args->rest)));
	ask(asking_new(r, req, args->principal, on_resource), "resources/read", params);
}

/* Prompts. */

static json_t *on_prompts(struct asking *a, json_t *result)
{
	return finish_list(a, json_incref(json_object_get(result, "prompts")));
}

void sandboxes_prompts(struct router *r, struct http_request *req, const struct route_args *args)
{
	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	ask(asking_new(r, req, args->principal, on_prompts), "prompts/list", json_object());
}

/* Those of its arguments that the query has. Return: owned; NULL: none. */
static json_t *read_arguments(const struct http_request *req, const json_t *prompt)
{
	const json_t *known = json_object_get(prompt, "arguments");
	json_t *given = NULL;

	for (size_t i = 0; i < json_array_size(known); i++) {
		const char *name =
			json_string_value(json_object_get(json_array_get(known, i), "name"));
		const char *value = http_query(req, name);

		if (!value)
			continue;
		given = given ? given : json_object();
		json_set(given, name, json_text(value, strlen(value)));
	}
	return given;
}

/* Its text, filled in; its description was kept. */
static json_t *on_filled(struct asking *a, json_t *result)
{
	json_t *j = json_deep_copy(json_array_get(a->items, 0)), *list = json_array();
	const json_t *messages = json_object_get(result, "messages");

	for (size_t i = 0; i < json_array_size(messages); i++) {
		const json_t *from = json_array_get(messages, i);
		json_t *to = json_object();

		json_set(to, "role", json_incref(json_object_get(from, "role")));
		json_set(to, "content",
		         json_incref(json_object_get(json_object_get(from, "content"), "text")));
		(void)!json_array_append_new(list, to);
	}
	json_set(j, "messages", list);
	json_set(j, "timestamp", sandboxes_now());
	return finish(a, j);
}

static json_t *fill(struct asking *a, json_t *prompt)
{
	json_t *given = read_arguments(a->req, prompt), *params;

	if (!given)
		return finish(a, json_deep_copy(prompt));
	(void)!json_array_append(a->items, prompt);
	a->on_result = on_filled;
	params = json_object();
	json_set(params, "name", json_incref(json_object_get(prompt, "name")));
	json_set(params, "arguments", given);
	a->method = "prompts/get";
	return params;
}

/* All, of which one is wanted. */
static json_t *on_found(struct asking *a, json_t *result)
{
	json_t *list = json_object_get(result, "prompts");
	const char *path = http_path(a->req), *wanted = strrchr(path, '/') + 1;
	struct error err = {0};

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *prompt = json_array_get(list, i);

		if (str_equal(json_string_value(json_object_get(prompt, "name")), wanted))
			return fill(a, prompt);
	}
	(void)error_set(&err, ERR_NOT_FOUND, 0, "no prompt has this name");
	return fail(a, &err);
}

void sandboxes_prompt(struct router *r, struct http_request *req, const struct route_args *args)
{
	if (sandboxes_begin(req, SANDBOXES_V1) < 0)
		return;
	ask(asking_new(r, req, args->principal, on_found), "prompts/list", json_object());
}
