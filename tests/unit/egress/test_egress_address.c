/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/address.h"
#include "unit.h"

#include "base/str.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static struct in6_addr address(const char *text)
{
	struct in6_addr a;

	if (address_parse(text, strlen(text), &a) < 0)
		fail_msg("not an address: %s", text);
	return a;
}

static struct cidr range(const char *text)
{
	struct cidr c;
	struct error err = {0};

	if (cidr_parse(text, &c, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return c;
}

/* The first and last address of each range, and their neighbours. */
static void addresses_outside_of_the_public_internet_are_refused(void **state)
{
	static const struct {
		const char *address, *word;
	} rows[] = {
		{"0.0.0.0", "unspecified"},
		{"0.255.255.255", "unspecified"},
		{"1.0.0.0", NULL},
		{"9.255.255.255", NULL},
		{"10.0.0.0", "private"},
		{"10.255.255.255", "private"},
		{"11.0.0.0", NULL},
		{"100.63.255.255", NULL},
		{"100.64.0.0", "shared"},
		{"100.127.255.255", "shared"},
		{"100.100.100.200", "metadata"},
		{"100.128.0.0", NULL},
		{"126.255.255.255", NULL},
		{"127.0.0.1", "loopback"},
		{"127.255.255.255", "loopback"},
		{"128.0.0.0", NULL},
		{"168.63.129.16", "metadata"},
		{"168.63.129.17", NULL},
		{"169.253.255.255", NULL},
		{"169.254.0.0", "link-local"},
		{"169.254.169.254", "metadata"},
		{"169.254.170.2", "link-local"},
		{"169.254.255.255", "link-local"},
		{"169.255.0.0", NULL},
		{"172.15.255.255", NULL},
		{"172.16.0.0", "private"},
		{"172.31.255.255", "private"},
		{"172.32.0.0", NULL},
		{"192.0.0.192", "reserved"},
		{"192.0.1.0", NULL},
		{"192.0.2.1", "documentation"},
		{"192.88.99.1", "6to4"},
		{"192.167.255.255", NULL},
		{"192.168.0.0", "private"},
		{"192.168.255.255", "private"},
		{"192.169.0.0", NULL},
		{"198.17.255.255", NULL},
		{"198.18.0.0", "benchmarking"},
		{"198.19.255.255", "benchmarking"},
		{"198.20.0.0", NULL},
		{"198.51.100.1", "documentation"},
		{"203.0.113.1", "documentation"},
		{"223.255.255.255", NULL},
		{"224.0.0.1", "multicast"},
		{"239.255.255.255", "multicast"},
		{"240.0.0.0", "reserved"},
		{"255.255.255.254", "reserved"},
		{"255.255.255.255", "broadcast"},
		{"::", "unspecified"},
		{"::1", "loopback"},
		{"::2", "IPv4-compatible"},
		{"::127.0.0.1", "IPv4-compatible"},
		{"::8.8.8.8", "IPv4-compatible"},
		{"::fffe:8.8.8.8", "reserved"},
		{"::ffff:0:8.8.8.8", "reserved"}, /* IPv4-translated */
		{"64:ff9b::8.8.8.8", "NAT64"},
		{"64:ff9b::169.254.169.254", "NAT64"},
		{"64:ff9b:1::1", "NAT64"},
		{"64:ff9b:2::1", "reserved"},
		{"100::1", "discard"},
		{"100:0:0:1::1", "reserved"},
		{"1fff:ffff::1", "reserved"},
		{"2000::1", NULL},
		{"2001::1", "Teredo"},
		{"2001:1::1", "reserved"},
		{"2001:2::1", "benchmarking"},
		{"2001:2:1::1", "reserved"},
		{"2001:20::1", "reserved"},
		{"2001:1ff:ffff::1", "reserved"},
		{"2001:200::1", NULL},
		{"2001:4860:4860::8888", NULL},
		{"2001:db8::1", "documentation"},
		{"2001:db9::1", NULL},
		{"2002:7f00:1::", "6to4"},
		{"2003::1", NULL},
		{"3ffe::1", NULL},
		{"3fff:fff::1", "documentation"},
		{"3fff:1000::1", NULL},
		{"4000::1", "reserved"},
		{"5f00::1", "reserved"},
		{"fbff::1", "reserved"},
		{"fc00::1", "unique-local"},
		{"fd00:ec2::254", "metadata"},
		{"fd00:ec2::23", "metadata"},
		{"fd00:ec3::254", "unique-local"},
		{"fd20:ce::254", "metadata"},
		{"fdff:ffff::1", "unique-local"},
		{"fe00::1", "reserved"},
		{"fe80::1", "link-local"},
		{"febf::1", "link-local"},
		{"fec0::1", "site-local"},
		{"feff::1", "site-local"},
		{"ff02::1", "multicast"},
		{"ffff:ffff::1", "multicast"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct in6_addr a = address(rows[i].address);
		const char *word = address_refusal(&a);

		if (!word != !rows[i].word || (word && !str_equal(word, rows[i].word)))
			fail_msg("%s: %s", rows[i].address, word ? word : "public");
	}
}

static void mapped_addresses_are_judged_by_what_is_inside(void **state)
{
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr other = {.sa_family = AF_UNIX};
	struct in6_addr a, b;

	(void)state;
	assert_int_equal(inet_pton(AF_INET6, "::ffff:10.0.0.1", &mapped.sin6_addr), 1);
	assert_int_equal(inet_pton(AF_INET, "10.0.0.1", &v4.sin_addr), 1);
	assert_int_equal(address_from((struct sockaddr *)&mapped, &a), 0);
	assert_int_equal(address_from((struct sockaddr *)&v4, &b), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_string_equal(address_refusal(&a), "private");
	assert_int_equal(address_from(&other, &a), -EAFNOSUPPORT);
	assert_int_equal(address_parse("::ffff:10.0.0.1", 15, &a), -EINVAL);
	assert_int_equal(address_parse("10.0.0.1\0", 9, &a), -EINVAL);
}

static void ranges_contain_what_has_their_prefix(void **state)
{
	static const struct {
		const char *range, *address;
		bool contains;
	} rows[] = {
		{"10.0.0.0/8", "10.255.0.1", true},
		{"10.0.0.0/8", "11.0.0.0", false},
		{"10.1.2.3", "10.1.2.3", true},
		{"10.1.2.3", "10.1.2.2", false},
		{"10.1.2.2/31", "10.1.2.3", true},
		{"10.128.0.0/9", "10.127.255.255", false},
		{"0.0.0.0/0", "8.8.8.8", true},
		{"0.0.0.0/0", "::1", false},
		{"::/0", "2001:200::1", true},
		{"::/0", "8.8.8.8", false}, /* although it is ::ffff:8.8.8.8 here */
		{"::/80", "8.8.8.8", false},
		{"fd00::/8", "fdff::1", true},
		{"fd00::/8", "fc00::1", false},
		{"fe80::/10", "febf::1", true},
		{"2001:db8::1", "2001:db8::1", true},
		{"2001:db8::1/128", "2001:db8::2", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cidr c = range(rows[i].range);
		struct in6_addr a = address(rows[i].address);

		if (cidr_contains(&c, &a) != rows[i].contains)
			fail_msg("%s and %s", rows[i].range, rows[i].address);
	}
}

static void malformed_ranges_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"/",
		"/8",
		"10.0.0.0/",
		"10.0.0.0/33",
		"10/8",
		"10.0.0.0/08",
		"10.0.0.0/-1",
		"10.0.0.0/8/8",
		"10.0.0.0/ 8",
		"10.0.0.1/8",
		"10.0.0.0/8 ",
		"010.0.0.0/8",
		"fd00::/129",
		"fd00::1/64",
		"[fd00::]/8",
		"::ffff:0:0/96",
		"::ffff:10.0.0.0/104",
		"fe80::%1/64",
		"example.com/8",
		"10.0.0.0/4294967304",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct cidr c;
		struct error err = {0};

		if (cidr_parse(bad[i], &c, &err) != -1)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

static void range_opens_addresses_of_its_own_kind(void **state)
{
	static const struct {
		const char *range, *address;
		bool opens;
	} rows[] = {
		{"10.0.0.0/8", "10.1.2.3", true},
		{"10.1.0.0/16", "10.1.2.3", true},
		{"10.1.0.0/16", "10.2.2.3", false},
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.2", false},
		{"fd00::/8", "fd12::1", true},
		{"0.0.0.0/0", "10.1.2.3", false},
		{"0.0.0.0/0", "127.0.0.1", false},
		{"0.0.0.0/0", "169.254.169.254", false},
		{"8.0.0.0/6", "10.1.2.3", false},
		{"100.64.0.0/10", "100.64.0.1", true},
		{"100.64.0.0/10", "100.100.100.200", false},
		{"100.100.100.200", "100.100.100.200", false},
		{"169.254.0.0/16", "169.254.1.1", false},
		{"fd00::/8", "fd00:ec2::254", false},
		{"::/0", "fd12::1", false},
		{"64:ff9b::/96", "64:ff9b::a00:1", false},
		{"8.8.8.0/24", "8.8.8.8", false}, /* public: there is nothing to open */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cidr c = range(rows[i].range);
		struct in6_addr a = address(rows[i].address);

		if (address_opened_by(&a, &c) != rows[i].opens)
			fail_msg("%s and %s", rows[i].range, rows[i].address);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_outside_of_the_public_internet_are_refused),
		cmocka_unit_test(mapped_addresses_are_judged_by_what_is_inside),
		cmocka_unit_test(ranges_contain_what_has_their_prefix),
		cmocka_unit_test(malformed_ranges_are_refused),
		cmocka_unit_test(range_opens_addresses_of_its_own_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
