/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "core/identity/key.h"

#define GOOD "mb_abcdefghijkl_0123456789abcdefghijklmnopqrstuv"

static int setup(void **state)
{
	(void)state;
	return key_setup();
}

static void a_new_key_can_be_printed_and_recognised(void **state)
{
	struct key a, b, again;
	char text[KEY_TEXT_LEN + 1];
	uint8_t hash[KEY_HASH_LEN];

	(void)state;
	key_make(&a);
	key_make(&b);
	assert_string_not_equal(a.id, b.id);
	assert_string_not_equal(a.secret, b.secret);
	key_format(&a, text);
	assert_int_equal(strlen(text), KEY_TEXT_LEN);
	assert_int_equal(key_parse(text, &again), 0);
	key_hash(&a, hash);
	assert_true(key_matches(&again, hash));
	assert_false(key_matches(&b, hash));
	again.secret[KEY_SECRET_LEN - 1] ^= 1;
	assert_false(key_matches(&again, hash));
	/* The hash contains nothing of the text. */
	assert_null(memmem(hash, sizeof(hash), a.secret, 4));
	/* The same secret under another id is another key. */
	memcpy(a.id, b.id, sizeof(a.id));
	assert_false(key_matches(&a, hash));
	key_wipe(&a);
	assert_int_equal(a.secret[0], 0);
}

static void malformed_keys_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"mb_",
		"mb_abcdefghijkl",
		"mb_abcdefghijkl_",
		GOOD "x",
		"mb_abcdefghijkl_0123456789abcdefghijklmnopqrstu",
		"MB_abcdefghijkl_0123456789abcdefghijklmnopqrstuv",
		"mb_abcdefghijkL_0123456789abcdefghijklmnopqrstuv",
		"mb_abcdefghijkl_0123456789abcdefghijklmnopqrst v",
		"mb_abcdefghijkl-0123456789abcdefghijklmnopqrstuv",
		"mb_abcdefghij_l_0123456789abcdefghijklmnopqrstuv",
		"mb_abcdefghijkl_0123456789abcdefghijklmnopqrstu\xc3",
	};
	struct key key;

	(void)state;
	assert_int_equal(key_parse(GOOD, &key), 0);
	assert_string_equal(key.id, "abcdefghijkl");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(key_parse(bad[i], &key), -EINVAL);
}

static void both_headers_are_understood(void **state)
{
	static const char other[] = "mb_abcdefghijkl_0123456789abcdefghijklmnopqrstuw";
	struct key key;

	(void)state;
	assert_int_equal(key_from_headers(NULL, NULL, &key), 0);
	assert_int_equal(key_from_headers("Bearer " GOOD, NULL, &key), 1);
	assert_string_equal(key.secret, "0123456789abcdefghijklmnopqrstuv");
	assert_int_equal(key_from_headers("bearer \t" GOOD, NULL, &key), 1);
	assert_int_equal(key_from_headers(NULL, GOOD, &key), 1);
	assert_int_equal(key_from_headers("Bearer " GOOD, GOOD, &key), 1);
	assert_int_equal(key_from_headers("Bearer " GOOD, other, &key), -EEXIST);
	assert_int_equal(key_from_headers("Bearer " GOOD, "", &key), -EEXIST);
	assert_int_equal(key_from_headers("Basic " GOOD, GOOD, &key), -EEXIST);
	assert_int_equal(key_from_headers("Bearer", NULL, &key), -EINVAL);
	assert_int_equal(key_from_headers("Bearer" GOOD, NULL, &key), -EINVAL);
	assert_int_equal(key_from_headers("Basic dXNlcg==", NULL, &key), -EINVAL);
	assert_int_equal(key_from_headers("", NULL, &key), -EINVAL);
	assert_int_equal(key_from_headers(NULL, "nonsense", &key), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_key_can_be_printed_and_recognised),
		cmocka_unit_test(malformed_keys_are_refused),
		cmocka_unit_test(both_headers_are_understood),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
