/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"

#define MANY 2000

static void freep_map(struct map **m)
{
	map_free(*m);
}
#define cleanup_map attr_cleanup(freep_map)

static int values[MANY];

static const char *key_of(int i)
{
	static char key[64];

	/* Lengths around the eight bytes that the hash takes at a time. */
	assert_int_equal(str_format(key, sizeof(key), "%.*s%d", i % 20, "xxxxxxxxxxxxxxxxxxxx", i),
	                 0);
	return key;
}

static void stored_keys_are_found(void **state)
{
	cleanup_map struct map *m = map_new();

	(void)state;
	assert_null(map_get(m, "a"));
	assert_int_equal(map_count(m), 0);
	assert_int_equal(map_put(m, "a", &values[0]), 0);
	assert_int_equal(map_put(m, "", &values[1]), 0);
	assert_ptr_equal(map_get(m, "a"), &values[0]);
	assert_ptr_equal(map_get(m, ""), &values[1]);
	assert_null(map_get(m, "b"));
	assert_int_equal(map_count(m), 2);
}

static void keys_are_copied(void **state)
{
	cleanup_map struct map *m = map_new();
	char key[] = "abc";

	(void)state;
	assert_int_equal(map_put(m, key, &values[0]), 0);
	key[0] = 'x';
	assert_ptr_equal(map_get(m, "abc"), &values[0]);
	assert_null(map_get(m, "xbc"));
}

static void a_key_is_put_once(void **state)
{
	cleanup_map struct map *m = map_new();

	(void)state;
	assert_int_equal(map_put(m, "a", &values[0]), 0);
	assert_int_equal(map_put(m, "a", &values[1]), -EEXIST);
	assert_ptr_equal(map_get(m, "a"), &values[0]);
	assert_int_equal(map_count(m), 1);
}

static void removal_gives_the_value_back_once(void **state)
{
	cleanup_map struct map *m = map_new();

	(void)state;
	assert_null(map_remove(m, "a"));
	assert_int_equal(map_put(m, "a", &values[0]), 0);
	assert_ptr_equal(map_remove(m, "a"), &values[0]);
	assert_null(map_remove(m, "a"));
	assert_null(map_get(m, "a"));
	assert_int_equal(map_count(m), 0);
	assert_int_equal(map_put(m, "a", &values[1]), 0);
}

/* Fills and empties in an order that creates runs of neighbours with holes. */
static void many_entries_survive_the_removal_of_others(void **state)
{
	cleanup_map struct map *m = map_new();

	(void)state;
	for (int i = 0; i < MANY; i++)
		assert_int_equal(map_put(m, key_of(i), &values[i]), 0);
	for (int i = 0; i < MANY; i += 3)
		assert_ptr_equal(map_remove(m, key_of(i)), &values[i]);
	for (int i = 0; i < MANY; i++)
		assert_ptr_equal(map_get(m, key_of(i)), i % 3 ? &values[i] : NULL);
	for (int i = 0; i < MANY; i += 3)
		assert_int_equal(map_put(m, key_of(i), &values[i]), 0);
	for (int i = MANY - 1; i >= 0; i--)
		assert_ptr_equal(map_remove(m, key_of(i)), &values[i]);
	assert_int_equal(map_count(m), 0);
}

static void iteration_meets_every_entry_once(void **state)
{
	cleanup_map struct map *m = map_new();
	bool seen[100] = {false};
	const char *key = NULL;
	size_t pos = 0, count = 0;

	(void)state;
	assert_null(map_next(m, &pos, &key));
	for (int i = 0; i < 100; i++)
		assert_int_equal(map_put(m, key_of(i), &values[i]), 0);
	pos = 0;
	for (int *v; (v = map_next(m, &pos, &key)); count++) {
		size_t i = (size_t)(v - values);

		assert_false(seen[i]);
		assert_string_equal(key, key_of((int)i));
		seen[i] = true;
	}
	assert_int_equal(count, 100);
	assert_null(map_next(m, &pos, NULL));
	pos = 0;
	assert_non_null(map_next(m, &pos, NULL));
}

/* With the same key in every map the order would be the same in every map. */
static void each_map_has_its_own_order(void **state)
{
	cleanup_map struct map *a = map_new();
	cleanup_map struct map *b = map_new();
	size_t pos_a = 0, pos_b = 0, same = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		assert_int_equal(map_put(a, key_of(i), &values[i]), 0);
		assert_int_equal(map_put(b, key_of(i), &values[i]), 0);
	}
	for (int i = 0; i < 200; i++)
		same += map_next(a, &pos_a, NULL) == map_next(b, &pos_b, NULL);
	assert_true(same < 100);
}

static void put_null(void *arg)
{
	int r = map_put(arg, "a", NULL);

	(void)r;
}

static void a_null_value_is_a_bug(void **state)
{
	cleanup_map struct map *m = map_new();

	(void)state;
	assert_true(unit_aborts(put_null, m));
	map_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stored_keys_are_found),
		cmocka_unit_test(keys_are_copied),
		cmocka_unit_test(a_key_is_put_once),
		cmocka_unit_test(removal_gives_the_value_back_once),
		cmocka_unit_test(many_entries_survive_the_removal_of_others),
		cmocka_unit_test(iteration_meets_every_entry_once),
		cmocka_unit_test(each_map_has_its_own_order),
		cmocka_unit_test(a_null_value_is_a_bug),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
