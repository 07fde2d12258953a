/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/facts.h"

#include "base/alloc.h"
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct driver driver = {
	.caps = {.landlock_abi = 4, .filter_sha256 = "ab", .runtime = "runc", .release = "1.1.5"}};

static struct box_spec spec_of(unsigned pids)
{
	return (struct box_spec){.limits = {.memory_bytes = 1 << 20, .pids = pids}};
}

static const char *network_of(const struct facts *f)
{
	return json_string_value(json_object_get(f->object, "network"));
}

static void runs_with_the_same_facts_share_them(void **state)
{
	struct facts_maker *maker = facts_maker_new();
	struct policy_decision decision = {.timeout_us = 5000, .output_bytes = 7};
	struct box_spec spec = spec_of(3), other = spec_of(4);
	struct facts *one = facts_make(maker, &decision, &driver, &spec, BOX_NETWORK_NONE);
	struct facts *same = facts_make(maker, &decision, &driver, &spec, BOX_NETWORK_NONE);
	struct facts *limits = facts_make(maker, &decision, &driver, &other, BOX_NETWORK_NONE);
	struct facts *network = facts_make(maker, &decision, &driver, &spec, BOX_NETWORK_BRIDGE);
	struct facts *timeout;

	(void)state;
	decision.timeout_us = 6000;
	timeout = facts_make(maker, &decision, &driver, &spec, BOX_NETWORK_NONE);
	facts_maker_free(maker);
	assert_ptr_equal(one, same);
	assert_ptr_not_equal(one, limits);
	assert_ptr_not_equal(one, network);
	assert_ptr_not_equal(one, timeout);
	assert_string_equal(network_of(one), "none");
	assert_string_equal(network_of(network), "bridge");
	assert_non_null(strstr(one->members, "\"timeout_ms\":5,"));
	assert_non_null(strstr(timeout->members, "\"timeout_ms\":6,"));
	assert_non_null(strstr(limits->members, "\"processes\":4,"));
	facts_unref(one);
	assert_string_equal(network_of(same), "none"); /* its own reference */
	facts_unref(same);
	facts_unref(limits);
	facts_unref(network);
	facts_unref(timeout);
}

/* Equal facts are not equal pointers then, but nothing old is handed out. */
static void more_kinds_than_are_remembered_stay_right(void **state)
{
	struct facts_maker *maker = facts_maker_new();
	struct policy_decision decision = {.timeout_us = 5000};

	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		struct box_spec spec = spec_of(i % 20);
		struct facts *f = facts_make(maker, &decision, &driver, &spec, BOX_NETWORK_NONE);
		char expected[32];

		(void)snprintf(expected, sizeof(expected), "\"processes\":%u,", i % 20);
		assert_non_null(strstr(f->members, expected));
		facts_unref(f);
	}
	facts_maker_free(maker);
}

static void rules_of_the_network_are_hashed_each_time(void **state)
{
	struct facts_maker *maker = facts_maker_new();
	struct policy_decision decision = {0};
	struct box_spec spec = spec_of(1);
	struct box_rules *rules = xcalloc(1, sizeof(*rules) + sizeof(char *));
	char text[] = "a.test";
	struct facts *before, *after;

	(void)state;
	rules->count = 1;
	rules->texts[0] = text;
	spec.rules = rules;
	before = facts_make(maker, &decision, &driver, &spec, BOX_NETWORK_ALLOWLIST);
	text[0] = 'b';
	after = facts_make(maker, &decision, &driver, &spec, BOX_NETWORK_ALLOWLIST);
	assert_string_not_equal(before->members, after->members);
	facts_unref(before);
	facts_unref(after);
	facts_maker_free(maker);
	free(rules);
}

static void stored_facts_have_every_member(void **state)
{
	json_t *stored = json_pack("{s:s, s:i}", "network", "none", "other", 1);
	struct facts *f = facts_read(stored);

	(void)state;
	assert_string_equal(f->members,
	                    "\"policies\":null,\"filter_sha256\":null,\"network\":\"none\","
	                    "\"network_rules_sha256\":null,\"limits\":null,\"versions\":null");
	json_decref(stored);
	facts_unref(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_with_the_same_facts_share_them),
		cmocka_unit_test(more_kinds_than_are_remembered_stay_right),
		cmocka_unit_test(rules_of_the_network_are_hashed_each_time),
		cmocka_unit_test(stored_facts_have_every_member),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
