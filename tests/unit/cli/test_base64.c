/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base64.h"

static void check(const char *data, size_t len, const char *expected)
{
	char *text = base64_encode(data, len);

	assert_string_equal(text, expected);
	free(text);
}

/* The vectors of RFC 4648. */
static void every_length_is_padded_right(void **state)
{
	(void)state;
	check("foobar", 0, "");
	check("foobar", 1, "Zg==");
	check("foobar", 2, "Zm8=");
	check("foobar", 3, "Zm9v");
	check("foobar", 4, "Zm9vYg==");
	check("foobar", 5, "Zm9vYmE=");
	check("foobar", 6, "Zm9vYmFy");
}

static void all_bits_are_used(void **state)
{
	(void)state;
	check("\0\0\0", 3, "AAAA");
	check("\xff\xff\xff", 3, "////");
	check("\xfb\xef\xbe", 3, "++++");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_is_padded_right),
		cmocka_unit_test(all_bits_are_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
