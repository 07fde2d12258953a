/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/base64.h"
#include "base/alloc.h"
#include <string.h>

static void every_length_and_byte_is_decoded(void **state)
{
	static const struct {
		const char *text, *data;
		size_t len;
	} good[] = {
		{"",         "",             0},
		{"Zg==",     "f",            1},
		{"Zm8=",     "fo",           2},
		{"Zm9v",     "foo",          3},
		{"Zm9vYmE=", "fooba",        5},
		{"AAECAw==", "\0\1\2\3",     4},
		{"+/+/",     "\xfb\xff\xbf", 3},
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

static void what_is_not_canonical_is_refused(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_and_byte_is_decoded),
		cmocka_unit_test(what_is_not_canonical_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
