/* SPDX-License-Identifier: Apache-2.0 */
#include "base/plain.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

static void expect(const char *text, bool keeps_layout, const char *wanted)
{
	cleanup_buf struct buf b = BUF_INIT(256);

	assert_int_equal(plain_add(&b, text, strlen(text), keeps_layout), 0);
	assert_string_equal(b.data, wanted);
}

static void nothing_controls_the_terminal(void **state)
{
	(void)state;
	expect("a\x1b]0;title\x07z", true, "a?]0;title?z");
	expect("\x1b[2J\r\b\x7f", true, "?[2J???");
	/* The same as C1 controls, in UTF-8 and as bytes; marks of direction. */
	expect("\xc2\x9b"
	       "2J \x9b"
	       "2J",
	       true, "?2J ?2J");
	expect("\xe2\x80\xae"
	       "txt.\xe2\x81\xa6\xd8\x9c",
	       true, "?txt.??");
}

static void other_text_stays(void **state)
{
	(void)state;
	expect("a\tb\n\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", true,
	       "a\tb\n\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
	expect("a\tb\nc", false, "a b c");
}

static void the_buffer_bounds_it(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(2);

	(void)state;
	assert_int_equal(plain_add(&b, "abc", 3, true), -ENOBUFS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_controls_the_terminal),
		cmocka_unit_test(other_text_stays),
		cmocka_unit_test(the_buffer_bounds_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
