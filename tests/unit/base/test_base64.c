/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "base/base64.h"
#include <string.h>

static void every_length_and_byte_is_decoded(void **state)
{
	static const struct {
		const char *text, *data;
		size_t len;
	} good[] = {
		{"", "", 0},
		{"Zg==", "f", 1},
		{"Zm8=", "fo", 2},
		{"Zm9v", "foo", 3},
		{"Zm9vYmE=", "fooba", 5},
		{"AAECAw==", "\0\1\2\3", 4},
		{"+/+/", "\xfb\xff\xbf", 3},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		size_t len = 99;
		cleanup_free char *data = base64_decode(good[i].text, strlen(good[i].text), &len);

		assert_non_null(data);
		assert_int_equal(len, good[i].len);
		assert_memory_equal(data, good[i].data, len + 1);
	}
}

static void non_canonical_forms_are_refused(void **state)
{
	static const char *const bad[] = {"Z",    "Zg",   "Zg=",   "Zg===", "====",     "Z===",
	                                  "Zh==", "Zm9=", "Zm 8=", "Zm8\n", "Zm8=Zm8=", "Zm9v\n",
	                                  "_-_-", "Zm=v", "%%%%",  "=Zg=",  "Zg== "};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		size_t len = 99;

		assert_null(base64_decode(bad[i], strlen(bad[i]), &len));
		assert_int_equal(len, 99);
	}
}

static void check_encoded(const char *data, size_t len, const char *expected)
{
	char *text = base64_encode(data, len);

	assert_string_equal(text, expected);
	free(text);
}

/* The vectors of RFC 4648. */
static void every_length_is_padded_right(void **state)
{
	(void)state;
	check_encoded("foobar", 0, "");
	check_encoded("foobar", 1, "Zg==");
	check_encoded("foobar", 2, "Zm8=");
	check_encoded("foobar", 3, "Zm9v");
	check_encoded("foobar", 4, "Zm9vYg==");
	check_encoded("foobar", 5, "Zm9vYmE=");
	check_encoded("foobar", 6, "Zm9vYmFy");
}

static void all_bits_are_used(void **state)
{
	(void)state;
	check_encoded("\0\0\0", 3, "AAAA");
	check_encoded("\xff\xff\xff", 3, "////");
	check_encoded("\xfb\xef\xbe", 3, "++++");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_is_padded_right),
		cmocka_unit_test(all_bits_are_used),
		cmocka_unit_test(every_length_and_byte_is_decoded),
		cmocka_unit_test(non_canonical_forms_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
