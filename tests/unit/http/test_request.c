/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "http/internal.h"

static void a_path_is_decoded_once_and_ends_at_the_query(void **state)
{
	static const struct {
		const char *target, *path;
	} good[] = {
		{"/", "/"},         {"/a/b", "/a/b"},
		{"/a?b=c", "/a"},   {"/%41%62", "/Ab"},
		{"/%2561", "/%61"}, {"/%2e%2E/x", "/../x"},
		{"/a%3Fb", "/a?b"}, {"/%C3%A4?%zz", "/\xc3\xa4"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		cleanup_free char *path = http_decode_path(good[i].target);

		assert_non_null(path);
		assert_string_equal(path, good[i].path);
	}
}

static void a_path_that_is_not_well_formed_is_refused(void **state)
{
	static const char *const bad[] = {"",      "x",    "*",      "http://x/", "/%",    "/%4",
	                                  "/%4g",  "/%00", "/a%00b", "/%0a",      "/\x7f", "/%7f",
	                                  "/a\tb", "?/",   "/%-1",   "/%?a"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_null(http_decode_path(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_decoded_once_and_ends_at_the_query),
		cmocka_unit_test(a_path_that_is_not_well_formed_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
