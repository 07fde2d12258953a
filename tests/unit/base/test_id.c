/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/id.h"

/* What getrandom does next: 0: the real call, a positive maximum of bytes, or a negative errno. */
static int next_getrandom;
static unsigned char fixed_byte;
static bool fixed;

ssize_t __real_getrandom(void *data, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *data, size_t len, unsigned flags);

ssize_t __wrap_getrandom(void *data, size_t len, unsigned flags)
{
	int next = next_getrandom;

	next_getrandom = next == -EINTR ? 0 : next;
	if (next < 0) {
		errno = -next;
		return -1;
	}
	if (next > 0 && (size_t)next < len)
		len = (size_t)next;
	if (!fixed)
		return __real_getrandom(data, len, flags);
	for (size_t i = 0; i < len; i++)
		((unsigned char *)data)[i] = fixed_byte++;
	return (ssize_t)len;
}

static int reset(void **state)
{
	(void)state;
	next_getrandom = 0;
	fixed = false;
	return 0;
}

static void identifiers_have_the_length_and_letters_promised(void **state)
{
	char id[201];

	(void)state;
	memset(id, '!', sizeof(id));
	id_random(id, 200);
	assert_int_equal(strlen(id), 200);
	assert_int_equal(strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789"), 200);
	id_random(id, 0);
	assert_string_equal(id, "");
}

static void two_identifiers_differ(void **state)
{
	char a[33], b[33];

	(void)state;
	id_random(a, 32);
	id_random(b, 32);
	assert_string_not_equal(a, b);
}

static void no_letter_is_favoured(void **state)
{
	char id[253];
	unsigned counts[256] = {0};

	(void)state;
	/* All bytes in turn: 252 of them are used, seven for each letter, and four discarded. */
	fixed = true;
	fixed_byte = 0;
	id_random(id, 252);
	for (size_t i = 0; i < 252; i++)
		counts[(unsigned char)id[i]]++;
	for (const char *c = "abcdefghijklmnopqrstuvwxyz0123456789"; *c; c++)
		assert_int_equal(counts[(unsigned char)*c], 7);
}

static void bytes_outside_the_alphabet_are_thrown_away(void **state)
{
	char id[3];

	(void)state;
	fixed = true;
	fixed_byte = 254;
	id_random(id, 2);
	assert_string_equal(id, "ab");
}

static void short_and_interrupted_answers_are_continued(void **state)
{
	unsigned char data[100];

	(void)state;
	fixed = true;
	fixed_byte = 1;
	next_getrandom = 7;
	id_random_bytes(data, sizeof(data));
	for (size_t i = 0; i < sizeof(data); i++)
		assert_int_equal(data[i], i + 1);

	next_getrandom = -EINTR;
	fixed_byte = 1;
	id_random_bytes(data, sizeof(data));
	assert_int_equal(data[99], 100);
}

static void ask(void *arg)
{
	id_random(arg, 10);
}

static void without_randomness_there_is_no_identifier(void **state)
{
	char id[11];

	(void)state;
	next_getrandom = -ENOSYS;
	assert_true(unit_aborts(ask, id));
}

static void only_plain_identifiers_are_valid(void **state)
{
	(void)state;
	assert_true(id_is_valid("a", 1));
	assert_true(id_is_valid("exec_20261115_Ab-9", 64));
	assert_true(id_is_valid("12345678", 8));
	assert_false(id_is_valid("123456789", 8));
	assert_false(id_is_valid("", 8));
	assert_false(id_is_valid("a", 0));
	assert_false(id_is_valid("../x", 8));
	assert_false(id_is_valid("a b", 8));
	assert_false(id_is_valid("a\n", 8));
	assert_false(id_is_valid("\xC3\xA9", 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(identifiers_have_the_length_and_letters_promised, reset),
		cmocka_unit_test_setup(two_identifiers_differ, reset),
		cmocka_unit_test_setup(no_letter_is_favoured, reset),
		cmocka_unit_test_setup(bytes_outside_the_alphabet_are_thrown_away, reset),
		cmocka_unit_test_setup(short_and_interrupted_answers_are_continued, reset),
		cmocka_unit_test_setup(without_randomness_there_is_no_identifier, reset),
		cmocka_unit_test_setup(only_plain_identifiers_are_valid, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
