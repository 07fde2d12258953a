/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/json/json.h"
#include "api/mcp/rpc.h"
#include "base/alloc.h"
#include <string.h>

static void messages_are_classified(void **state)
{
	static const struct {
		const char *text;
		enum rpc_kind kind;
	} rows[] = {
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", RPC_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\",\"params\":{}}",
	         RPC_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}", RPC_NOTIFICATION},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", RPC_RESPONSE},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", RPC_RESPONSE},
		{"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", RPC_INVALID},
		{"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", RPC_INVALID},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", RPC_INVALID},
		{"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", RPC_INVALID},
		{"{\"jsonrpc\":\"2.0\",\"id\":1}", RPC_INVALID},
		{"{\"jsonrpc\":\"2.0\",\"result\":{}}", RPC_INVALID},
		{"{}", RPC_INVALID},
		{"[]", RPC_INVALID},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_json json_t *j = json_loads(rows[i].text, 0, NULL);
		struct rpc_message m;

		assert_non_null(j);
		rpc_classify(j, &m);
		assert_int_equal(m.kind, rows[i].kind);
		assert_int_equal(m.wrong != NULL, m.kind == RPC_INVALID);
	}
}

static void an_invalid_message_keeps_a_valid_id(void **state)
{
	cleanup_json json_t *j = json_loads("{\"id\":\"x\"}", 0, NULL);
	struct rpc_message m;

	(void)state;
	rpc_classify(j, &m);
	assert_int_equal(m.kind, RPC_INVALID);
	assert_string_equal(json_string_value(m.id), "x");
}

static void answers_are_one_line(void **state)
{
	cleanup_json json_t *id = json_string("a\nb");
	size_t len;
	cleanup_free char *text = rpc_error(id, RPC_INVALID_PARAMS, "x\ny\xff", NULL, &len);

	(void)state;
	assert_int_equal(strlen(text), len);
	assert_null(strchr(text, '\n'));
	assert_string_equal(text,
	                    "{\"jsonrpc\":\"2.0\",\"id\":\"a\\nb\",\"error\":{\"code\":-32602,"
	                    "\"message\":\"x\\ny\xef\xbf\xbd\"}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_classified),
		cmocka_unit_test(an_invalid_message_keeps_a_valid_id),
		cmocka_unit_test(answers_are_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
