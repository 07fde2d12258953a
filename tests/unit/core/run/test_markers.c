/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "core/run/markers.h"
#include <string.h>

#define BEGIN "===SANDBOX_RESULT==="
#define END   "===SANDBOX_RESULT_END==="

static void expect(const char *text, const char *stripped)
{
	size_t len = 99;
	cleanup_free char *out = markers_strip(text, strlen(text), &len);

	if (!stripped) {
		assert_null(out);
		return;
	}
	assert_non_null(out);
	assert_string_equal(out, stripped);
	assert_int_equal(len, strlen(stripped));
}

static void text_between_markers_is_removed(void **state)
{
	(void)state;
	expect("a\n" BEGIN "\n{\"x\":1}\n" END "\nb\n", "a\nb\n");
	expect(BEGIN END, "");
	expect("a" BEGIN "1" END BEGIN "2" END "b", "ab");
	expect("===SANDBOX_ERROR===\nno\n===SANDBOX_ERROR_END===\nb", "b");
}

static void a_begin_without_an_end_hides_nothing(void **state)
{
	(void)state;
	expect("a\n" BEGIN "\nb\n", "a\nb\n");
	expect(END "\n" BEGIN, END "\n");
}

static void other_text_stays(void **state)
{
	(void)state;
	expect("", NULL);
	expect("===SANDBOX", NULL);
	expect("===SANDBOX_OTHER=== x", "===SANDBOX_OTHER=== x");
	expect("===SANDBOX_===SANDBOX_RESULT===\n", "===SANDBOX_");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_between_markers_is_removed),
		cmocka_unit_test(a_begin_without_an_end_hides_nothing),
		cmocka_unit_test(other_text_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
