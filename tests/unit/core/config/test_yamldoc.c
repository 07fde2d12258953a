/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/config/yamldoc.h"

static struct yamldoc_node *parse(const char *text, struct error *err)
{
	return yamldoc_parse(text, strlen(text), "f.yaml", err);
}

static void tree_keeps_order_kinds_and_lines(void **state)
{
	struct error err = {0};
	struct yamldoc_node *root = parse("# top\na: 1\nb:\n  c: \"\"\n  d: [x, y]\ne:\n", &err);
	struct yamldoc_node *b;

	(void)state;
	assert_non_null(root);
	assert_int_equal(root->kind, YAMLDOC_MAPPING);
	assert_int_equal(root->count, 3);
	assert_string_equal(root->first->key, "a");
	assert_string_equal(root->first->value, "1");
	assert_int_equal(root->first->line, 2);
	b = root->first->next;
	assert_int_equal(b->kind, YAMLDOC_MAPPING);
	assert_int_equal(b->line, 3);
	assert_true(b->first->quoted);
	assert_string_equal(b->first->value, "");
	assert_int_equal(b->first->next->kind, YAMLDOC_LIST);
	assert_int_equal(b->first->next->count, 2);
	assert_null(b->first->next->first->key);
	assert_string_equal(b->first->next->last->value, "y");
	assert_ptr_equal(b->first->parent, b);
	assert_false(b->next->quoted);
	assert_string_equal(b->next->value, "");
	assert_int_equal(b->next->line, 6);
	yamldoc_free(root);
}

static void nothing_is_an_empty_mapping(void **state)
{
	static const char *const texts[] = {"", "\n\n", "# only a comment\n", "---\n", "{}"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct error err = {0};
		struct yamldoc_node *root = parse(texts[i], &err);

		assert_non_null(root);
		assert_int_equal(root->kind, YAMLDOC_MAPPING);
		assert_int_equal(root->count, 0);
		yamldoc_free(root);
	}
}

static void wrong_files_are_refused_with_their_line(void **state)
{
	static const struct {
		const char *text, *where, *what;
	} rows[] = {
		{"a: 1\na: 2\n", "f.yaml:2:", "'a' is given twice (first in line 1)"},
		{"x:\n  b: 1\n  c: 1\n  b: 2\n", "f.yaml:4:", "'b' is given twice"},
		{"a: 1\nb: *x\n", "f.yaml:2:", "anchors"},
		{"a: &x 1\n", "f.yaml:1:", "anchors"},
		{"a: &x [1]\n", "f.yaml:1:", "anchors"},
		{"a: &x {b: 1}\n", "f.yaml:1:", "anchors"},
		{"a: !!str 1\n", "f.yaml:1:", "tags"},
		{"a: !!seq [1]\n", "f.yaml:1:", "tags"},
		{"a: !!map {b: 1}\n", "f.yaml:1:", "tags"},
		{"a: 1\n---\nb: 2\n", "f.yaml:2:", "more than one document"},
		{"- 1\n- 2\n", "f.yaml:1:", "found a list"},
		{"\nhello\n", "f.yaml:2:", "found a value"},
		{"'a b': 1\n", "f.yaml:1:", "a key is"},
		{"'': 1\n", "f.yaml:1:", "a key is"},
		{"x: 1\na.b: 1\n",
	         "f.yaml:2:", "a dot means nesting: write 'a:' and, indented below it, 'b:'"},
		{".b: 1\n", "f.yaml:1:", "a key is"},
		{"'a b.c': 1\n", "f.yaml:1:", "a key is"},
		{"? [a]\n: 1\n", "f.yaml:1:", "a key can't be a list"},
		{"? {a: b}\n: 1\n", "f.yaml:1:", "a key can't be a mapping"},
		{"a: [1\n", "f.yaml:2:", "not YAML"},
		{"a: \"\\0\"\n", "f.yaml:1:", "NUL"},
		{"a: \xff\n", "f.yaml:1:", "not YAML"},
		{"a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}\n", "f.yaml:1:", "deeper"},
		{"\tb: 1\n", "f.yaml:1:", "not YAML"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err = {0};

		assert_null(parse(rows[i].text, &err));
		assert_int_equal(err.code, ERR_CONFIG);
		if (!strstr(err.msg, rows[i].where) || !strstr(err.msg, rows[i].what))
			fail_msg("row %zu: %s", i, err.msg);
	}
}

static void too_many_values_are_refused(void **state)
{
	static char text[8 + 3 * (YAMLDOC_NODES_MAX + 1)];
	size_t n = (size_t)snprintf(text, sizeof(text), "a: [");
	struct error err = {0};

	(void)state;
	for (int i = 0; i < YAMLDOC_NODES_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "1, ");
	text[n - 2] = ']';
	assert_null(yamldoc_parse(text, n, "f.yaml", &err));
	assert_non_null(strstr(err.msg, "more than"));
}

static void long_key_is_refused(void **state)
{
	char text[80];
	struct error err = {0};

	(void)state;
	memset(text, 'k', sizeof(text));
	assert_int_equal(str_copy(text + 65, 8, ": 1\n"), 0);
	assert_null(parse(text, &err));
	assert_non_null(strstr(err.msg, "a key is"));
	error_clear(&err);
	memmove(text + 64, text + 65, 5);
	yamldoc_free(parse(text, &err));
	assert_false(error_is_set(&err));
}

static void a_missing_file_is_reported(void **state)
{
	struct error err = {0};

	(void)state;
	assert_null(yamldoc_load("/nonexistent/x.yaml", &err));
	assert_int_equal(err.code, ERR_CONFIG);
	assert_int_not_equal(err.sys, 0);
	assert_non_null(strstr(err.msg, "/nonexistent/x.yaml"));
}

static void kinds_have_names(void **state)
{
	(void)state;
	for (int kind = 0; kind < YAMLDOC_KIND_COUNT; kind++)
		assert_non_null(yamldoc_kind_name((enum yamldoc_kind)kind));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tree_keeps_order_kinds_and_lines),
		cmocka_unit_test(nothing_is_an_empty_mapping),
		cmocka_unit_test(wrong_files_are_refused_with_their_line),
		cmocka_unit_test(too_many_values_are_refused),
		cmocka_unit_test(long_key_is_refused),
		cmocka_unit_test(a_missing_file_is_reported),
		cmocka_unit_test(kinds_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
