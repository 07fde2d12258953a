/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/rpc.h"

#include "api/json/json.h"
#include "api/reply.h"
#include "base/str.h"
#include <string.h>

static bool is_id(const json_t *id)
{
	return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= RPC_ID_MAX);
}

static const char *find_fault(const json_t *value)
{
	const json_t *version = json_object_get(value, "jsonrpc");
	const json_t *id = json_object_get(value, "id");
	const json_t *params = json_object_get(value, "params");

	if (!json_is_object(value))
		return "a message must be an object";
	if (!json_is_string(version) || !str_equal(json_string_value(version), "2.0"))
		return "jsonrpc must be \"2.0\"";
	if (id && !is_id(id))
		return "id must be a whole number, or a string of at most 256 bytes";
	if (params && !json_is_object(params))
		return "params must be an object";
	return NULL;
}

void rpc_classify(json_t *value, struct rpc_message *ret_message)
{
	json_t *id = json_object_get(value, "id"), *method = json_object_get(value, "method");

	*ret_message = (struct rpc_message){
		.kind = RPC_INVALID,
		.id = is_id(id) ? id : NULL,
		.wrong = find_fault(value),
	};
	if (ret_message->wrong)
		return;
	if (!method && id &&
	    (json_object_get(value, "result") || json_object_get(value, "error"))) {
		ret_message->kind = RPC_RESPONSE;
		return;
	}
	/* A string without NUL. */
	if (!json_is_string(method) || json_string_length(method) > RPC_METHOD_MAX ||
	    strlen(json_string_value(method)) != json_string_length(method)) {
		ret_message->wrong = "method must be a string of at most 128 bytes";
		return;
	}
	ret_message->kind = id ? RPC_REQUEST : RPC_NOTIFICATION;
	ret_message->method = json_string_value(method);
	ret_message->params = json_object_get(value, "params");
}

char *rpc_result(json_t *id, json_t *result, size_t *ret_len)
{
	json_t *j = json_pack("{s:s}", "jsonrpc", "2.0");

	json_set(j, "id", id ? json_incref(id) : json_null());
	json_set(j, "result", result);
	return json_write(j, ret_len);
}

char *rpc_error(json_t *id, int code, const char *message, json_t *data, size_t *ret_len)
{
	json_t *j = json_pack("{s:s}", "jsonrpc", "2.0"), *error = json_object();

	json_set(error, "code", json_integer(code));
	json_set(error, "message", json_text(message, strlen(message)));
	if (data)
		json_set(error, "data", data);
	json_set(j, "id", id ? json_incref(id) : json_null());
	json_set(j, "error", error);
	return json_write(j, ret_len);
}

char *rpc_notification(const char *method, json_t *params, size_t *ret_len)
{
	json_t *j = json_pack("{s:s}", "jsonrpc", "2.0");

	json_set(j, "method", json_string(method));
	if (params)
		json_set(j, "params", params);
	return json_write(j, ret_len);
}

char *rpc_failure(json_t *id, const struct error *err, const char *request_id, size_t *ret_len)
{
	json_t *data = reply_error_object(err, request_id);
	const char *detail = json_string_value(json_object_get(data, "error_detail"));
	/* rpc_error releases @data before it copies the message. */
	cleanup_json json_t *kept = json_incref(data);

	(void)kept;
	return rpc_error(id, error_jsonrpc(err->code), detail ? detail : "", data, ret_len);
}
