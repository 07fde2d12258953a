/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "core/run/build_cache.h"

#define MAX 1000

static struct build_key key_of(uint8_t number)
{
	struct build_key key = {{0}};

	key.digest[0] = number;
	return key;
}

static bool has(struct build_cache *c, uint8_t number)
{
	const struct build_key key = key_of(number);
	size_t len = 0;

	return build_cache_get(c, &key, &len) != NULL;
}

static void put(struct build_cache *c, uint8_t number, const char *tenant, size_t len)
{
	static const char data[MAX + 1] = "data";
	const struct build_key key = key_of(number);

	build_cache_put(c, &key, tenant, data, len);
}

static void value_is_found_by_its_key_only(void **state)
{
	struct build_cache *c = build_cache_new(MAX);
	const struct build_key key = key_of(1);
	struct build_cache_stats stats;
	size_t len = 0;

	(void)state;
	put(c, 1, "a", 5);
	assert_memory_equal(build_cache_get(c, &key, &len), "data", 5);
	assert_int_equal(len, 5);
	assert_false(has(c, 2));
	build_cache_stats(c, &stats);
	assert_int_equal(stats.hits, 1);
	assert_int_equal(stats.misses, 1);
	assert_int_equal(stats.bytes, 5);
	build_cache_free(c);
}

static void least_recently_used_goes_first(void **state)
{
	struct build_cache *c = build_cache_new(MAX);

	(void)state;
	put(c, 1, "a", 400);
	put(c, 2, "b", 400);
	assert_true(has(c, 1));
	put(c, 3, "c", 400);
	assert_false(has(c, 2));
	assert_true(has(c, 1));
	assert_true(has(c, 3));
	build_cache_free(c);
}

static void tenant_has_at_most_half(void **state)
{
	struct build_cache *c = build_cache_new(MAX);

	(void)state;
	put(c, 1, "other", 400);
	for (uint8_t i = 10; i < 50; i++)
		put(c, i, "greedy", 100);
	assert_true(has(c, 1));
	assert_true(has(c, 49));
	assert_false(has(c, 10));
	put(c, 60, "greedy", 501);
	assert_false(has(c, 60));
	build_cache_free(c);
}

static void cache_of_nothing_keeps_nothing(void **state)
{
	struct build_cache *c = build_cache_new(0);

	(void)state;
	put(c, 1, "a", 1);
	assert_false(has(c, 1));
	build_cache_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(value_is_found_by_its_key_only),
		cmocka_unit_test(least_recently_used_goes_first),
		cmocka_unit_test(tenant_has_at_most_half),
		cmocka_unit_test(cache_of_nothing_keeps_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
