/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/allow.h"
#include "unit.h"

#include <stdlib.h>

#define LIST(...) ((char *[]){__VA_ARGS__, NULL})
#define T(text)   ((char *)(uintptr_t)(text))

static void nothing_is_allowed_without_a_request(void **state)
{
	char *none[] = {NULL};

	(void)state;
	assert_string_equal(allow_tool(none, "a", "b"), "mcp");
	assert_string_equal(allow_tool(LIST(T("1*/*")), "a", "b"), "mcp");
	assert_false(allow_server(none, "a"));
}

static void every_layer_must_agree(void **state)
{
	char **texts = LIST(T("0a/x*"), T("0b/*"), T("1a/*"), T("1/*"), T("2a/x1"));

	(void)state;
	assert_null(allow_tool(texts, "a", "x1"));
	assert_string_equal(allow_tool(texts, "a", "x2"), "mcp.tools");
	assert_string_equal(allow_tool(texts, "a", "y"), "mcp");
	assert_string_equal(allow_tool(texts, "b", "x1"), "mcp.servers");
	assert_true(allow_server(texts, "a"));
	assert_false(allow_server(texts, "b"));
	assert_false(allow_server(texts, "c"));
}

static void an_empty_layer_grants_nothing(void **state)
{
	char **texts = LIST(T("0a/*"), T("1/*"));

	(void)state;
	assert_string_equal(allow_tool(texts, "a", "x"), "mcp.servers");
	assert_false(allow_server(texts, "a"));
}

static void names_are_not_patterns(void **state)
{
	(void)state;
	assert_non_null(allow_tool(LIST(T("0a/x")), "a", "*"));
	assert_non_null(allow_tool(LIST(T("0a/x")), "*", "x"));
	/* A tool cannot pretend to be of another server. */
	assert_non_null(allow_tool(LIST(T("0b/x")), "a", "b/x"));
}

static void an_asterisk_stands_for_no_slash(void **state)
{
	char **texts = LIST(T("0a/read_*"), T("0b*/x"));

	(void)state;
	assert_null(allow_tool(texts, "a", "read_file"));
	assert_non_null(allow_tool(texts, "a", "read_file/delete"));
	assert_null(allow_tool(texts, "bc", "x"));
	assert_non_null(allow_tool(texts, "bc", "y/x"));
	assert_null(allow_tool(LIST(T("0a/read_*/*")), "a", "read_file/delete"));
	/* All tools of a server. */
	assert_null(allow_tool(LIST(T("0a/*")), "a", "read_file/delete"));
}

static void patterns_are_checked_and_completed(void **state)
{
	static const char *const good[] = {"a", "a/b", "a/*", "a/b/c", "a-b_c.d/x*"};
	static const char *const bad[] = {"",     "/",     "a/", "/b",      "a b",
	                                  "a\nb", "a/[x]", "a?", "\xc3\xa9"};
	char *text = allow_text(ALLOW_REQUEST, "a");

	(void)state;
	assert_string_equal(text, "0a/*");
	free(text);
	text = allow_text(ALLOW_TOOLS_CHOSEN, "a/b");
	assert_string_equal(text, "4a/b");
	free(text);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(allow_is_pattern(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(allow_is_pattern(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_allowed_without_a_request),
		cmocka_unit_test(every_layer_must_agree),
		cmocka_unit_test(an_empty_layer_grants_nothing),
		cmocka_unit_test(names_are_not_patterns),
		cmocka_unit_test(an_asterisk_stands_for_no_slash),
		cmocka_unit_test(patterns_are_checked_and_completed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
