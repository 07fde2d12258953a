/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/range.h"
#include "unit.h"

typedef int (*parse_fn)(const char *text, struct cidr *ret, struct error *err);

static bool accepts(parse_fn parse, const char *text)
{
	struct error err = {0};
	struct cidr c;

	return parse(text, &c, &err) == 0;
}

static void a_subnet_is_private_and_neither_large_nor_small(void **state)
{
	static const struct {
		const char *text;
		bool ok;
	} rows[] = {
		{"100.96.0.0/16", true},
		{"10.200.0.0/24", true},
		{"192.168.128.0/20", true},
		{"10.0.0.0/15", false},
		{"10.0.0.0/25", false},
		{"8.8.0.0/16", false},
		{"127.0.0.0/16", false},
		{"169.254.0.0/16", false},
		{"fd00::/64", false},
		{"10.0.0.1/24", false},
		{"", false},
		{"100.96.0.0", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(accepts(bridge_parse_subnet, rows[i].text), rows[i].ok);
}

static void a_range_opens_private_addresses_only(void **state)
{
	static const struct {
		const char *text;
		bool ok;
	} rows[] = {
		{"10.0.0.0/8", true},       {"172.16.3.4", true},   {"192.168.0.0/24", true},
		{"100.64.0.0/10", true},    {"0.0.0.0/0", false},   {"8.8.8.8", false},
		{"169.254.169.254", false}, {"127.0.0.1", false},   {"100.100.100.200", false},
		{"224.0.0.0/4", false},     {"10.0.0.0/7", false},  {"::1", false},
		{"10.0.0.0/8 ", false},     {"10.0.0.0/33", false}, {"10.0.0.0/8}", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(accepts(bridge_parse_range, rows[i].text), rows[i].ok);
}

static void a_resolver_is_one_address_that_a_box_can_reach(void **state)
{
	(void)state;
	assert_true(accepts(bridge_parse_resolver, "9.9.9.9"));
	assert_true(accepts(bridge_parse_resolver, "10.0.0.53"));
	assert_false(accepts(bridge_parse_resolver, "10.0.0.0/24"));
	assert_false(accepts(bridge_parse_resolver, "127.0.0.53"));
	assert_false(accepts(bridge_parse_resolver, "169.254.169.253"));
}

static void numbers_of_a_subnet(void **state)
{
	struct error err = {0};
	struct cidr c;

	(void)state;
	assert_int_equal(bridge_parse_subnet("100.96.0.0/24", &c, &err), 0);
	assert_int_equal(bridge_v4(&c), 0x64600000);
	assert_int_equal(bridge_v4_bits(&c), 24);
	assert_int_equal(bridge_boxes_max(&c), 253);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_subnet_is_private_and_neither_large_nor_small),
		cmocka_unit_test(a_range_opens_private_addresses_only),
		cmocka_unit_test(a_resolver_is_one_address_that_a_box_can_reach),
		cmocka_unit_test(numbers_of_a_subnet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
