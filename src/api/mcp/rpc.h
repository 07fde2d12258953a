/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: classifies and formats JSON-RPC 2.0 messages as MCP uses them. Ids are strings or whole
 * numbers, never null, and bounded: they are kept and echoed. Pure.
 */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>
#include <stddef.h>

enum rpc_kind {
	RPC_REQUEST,
	RPC_NOTIFICATION,
	RPC_RESPONSE, /* ignored: the server sends no requests */
	RPC_INVALID,
	RPC_KIND_COUNT
};

#define RPC_PARSE_ERROR        (-32700)
#define RPC_INVALID_REQUEST    (-32600)
#define RPC_METHOD_NOT_FOUND   (-32601)
#define RPC_INVALID_PARAMS     (-32602)
#define RPC_INTERNAL_ERROR     (-32603)
#define RPC_RESOURCE_NOT_FOUND (-32002)

#define RPC_ID_MAX     256 /* bytes of a string */
#define RPC_METHOD_MAX 128

/* Borrowed from the parsed JSON. */
struct rpc_message {
	enum rpc_kind kind;
	json_t *id; /* NULL: none, or not valid */
	const char *method;
	json_t *params;    /* an object; NULL: none */
	const char *wrong; /* why INVALID; a literal */
};

/** rpc_classify - @value: any JSON. */
void rpc_classify(json_t *value, struct rpc_message *ret_message);

/* Return: owned. @id NULL: null. JSON values are taken. */
char *rpc_result(json_t *id, json_t *result, size_t *ret_len) attr_must_check;
char *rpc_error(json_t *id, int code, const char *message, json_t *data,
                size_t *ret_len) attr_must_check;
char *rpc_notification(const char *method, json_t *params, size_t *ret_len) attr_must_check;
/** rpc_failure - with its JSON-RPC code; data has the common error object. */
char *rpc_failure(json_t *id, const struct error *err, const char *request_id,
                  size_t *ret_len) attr_must_check;
