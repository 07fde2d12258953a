/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/tools/sandbox_uri.h"
#include "base/alloc.h"
#include <string.h>

static void uris_are_parsed(void **state)
{
	static const struct {
		const char *text;
		enum sandbox_uri_kind kind;
		const char *id, *path;
	} rows[] = {
		{"sandbox://s1/a/b.txt", SANDBOX_URI_IS_FILE, "s1", "a/b.txt"},
		{"sandbox://s1/", SANDBOX_URI_IS_FILE, "s1", ""},
		{"sandbox://s1", SANDBOX_URI_IS_FILE, "s1", ""},
		{"sandbox://s1/a%20b%2Fc", SANDBOX_URI_IS_FILE, "s1", "a b/c"},
		{"execution://e_1/stdout", SANDBOX_URI_IS_EXECUTION, "e_1", "stdout"},
		{"log://s1", SANDBOX_URI_IS_LOG, "s1", ""},
		{"template://python-basic", SANDBOX_URI_IS_TEMPLATE, "python-basic", ""},
		{"policy://strict", SANDBOX_URI_IS_POLICY, "strict", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sandbox_uri uri;

		assert_int_equal(sandbox_uri_read(rows[i].text, &uri), 0);
		assert_int_equal(uri.kind, rows[i].kind);
		assert_string_equal(uri.id, rows[i].id);
		assert_string_equal(uri.path, rows[i].path);
	}
}

static void malformed_and_escaping_uris_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"sandbox://",
		"sandbox:///etc/passwd",
		"sandbox://a b/x",
		"sandbox://s1/../s2/x",
		"sandbox://s1/a/%2e%2e/b",
		"sandbox://s1/%00",
		"sandbox://s1/%zz",
		"sandbox://s1/%2",
		"file:///etc/passwd",
		"SANDBOX://s1/x",
		"template://python-basic/x",
		("sandbox://"
	         "sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss/"
	         "x"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct sandbox_uri uri;

		assert_int_equal(sandbox_uri_read(bad[i], &uri), -1);
	}
}

static void made_uris_are_parsed_again(void **state)
{
	static const char *const paths[] = {"a", "a b", "\xc3\xa9/%", "x?y#z", "\xff"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		cleanup_free char *text = sandbox_uri_file("s1", paths[i]);
		struct sandbox_uri uri;

		assert_int_equal(sandbox_uri_read(text, &uri), 0);
		assert_string_equal(uri.path, paths[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uris_are_parsed),
		cmocka_unit_test(malformed_and_escaping_uris_are_refused),
		cmocka_unit_test(made_uris_are_parsed_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
