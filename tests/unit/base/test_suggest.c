/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "base/suggest.h"

static void distances_count_typing_errors(void **state)
{
	static const struct {
		const char *a, *b;
		size_t distance;
	} cases[] = {
		{"", "", 0},
		{"abc", "abc", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"abc", "abd", 1},
		{"abc", "ab", 1},
		{"abc", "xabc", 1},
		{"abcd", "abdc", 1}, /* swapped neighbours are one error */
		{"ba", "ab", 1},
		{"kitten", "sitting", 3},
		{"timeuot", "timeout", 1},
		{"mmeory", "memory", 1},
		{"completely", "other", 8},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(suggest_distance(cases[i].a, cases[i].b), cases[i].distance);
		assert_int_equal(suggest_distance(cases[i].b, cases[i].a), cases[i].distance);
	}
}

static void longer_words_than_any_name_are_never_near(void **state)
{
	char word[66];

	(void)state;
	memset(word, 'a', 65);
	word[65] = '\0';
	assert_true(suggest_distance(word, word) == SIZE_MAX);
	word[64] = '\0';
	assert_int_equal(suggest_distance(word, word), 0);
}

static const char *nearest(const char *word)
{
	struct suggest s = {.word = word};

	suggest_offer(&s, "run");
	suggest_offer(&s, "doctor");
	suggest_offer(&s, "version");
	suggest_offer(&s, "help");
	return s.best;
}

static void the_nearest_is_kept(void **state)
{
	(void)state;
	assert_string_equal(nearest("rnu"), "run");
	assert_string_equal(nearest("docter"), "doctor");
	assert_string_equal(nearest("versioon"), "version");
	assert_string_equal(nearest("hlep"), "help");
}

static void a_beginning_is_near(void **state)
{
	(void)state;
	assert_string_equal(nearest("ver"), "version");
	assert_null(nearest("ve"));
}

static void distant_words_are_not_suggested(void **state)
{
	(void)state;
	assert_null(nearest("xyz"));
	assert_null(nearest(""));
	assert_null(nearest("frun1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances_count_typing_errors),
		cmocka_unit_test(longer_words_than_any_name_are_never_near),
		cmocka_unit_test(the_nearest_is_kept),
		cmocka_unit_test(a_beginning_is_near),
		cmocka_unit_test(distant_words_are_not_suggested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
