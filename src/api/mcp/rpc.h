/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: JSON-RPC 2.0 as MCP has it: what a message is, and messages as text. Ids are strings or
 * whole numbers, never null, and of bounded size: they are kept and told again. Pure.
 */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>
#include <stddef.h>

enum rpc_kind {
	RPC_REQUEST,
	RPC_NOTIFICATION,
	RPC_RESPONSE, /* to a question of ours; we ask none */
	RPC_INVALID,
	RPC_KIND_COUNT
};

#define RPC_PARSE_ERROR        (-32700)
#define RPC_INVALID_REQUEST    (-32600)
#define RPC_METHOD_NOT_FOUND   (-32601)
#define RPC_INVALID_PARAMS     (-32602)
#define RPC_INTERNAL_ERROR     (-32603)
#define RPC_RESOURCE_NOT_FOUND (-32002)

#define RPC_ID_MAX     256 /* bytes of one that is a string */
#define RPC_METHOD_MAX 128

/* Borrowed from the JSON it was made of. */
struct rpc_message {
	enum rpc_kind kind;
	json_t *id; /* NULL: none that could be told */
	const char *method;
	json_t *params;    /* an object; NULL: none */
	const char *wrong; /* INVALID: why; a literal */
};

/** rpc_classify - @value: anything. */
void rpc_classify(json_t *value, struct rpc_message *ret_message);

/* Messages as text. Return: owned. @id NULL: null. Values are released. */
char *rpc_result(json_t *id, json_t *result, size_t *ret_len) attr_must_check;
char *rpc_error(json_t *id, int code, const char *message, json_t *data,
                size_t *ret_len) attr_must_check;
char *rpc_notification(const char *method, json_t *params, size_t *ret_len) attr_must_check;
/** rpc_failure - an error of ours: its JSON-RPC code, its words, what to do. */
char *rpc_failure(json_t *id, const struct error *err, const char *request_id,
                  size_t *ret_len) attr_must_check;
