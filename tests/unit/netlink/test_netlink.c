/* SPDX-License-Identifier: Apache-2.0 */
#include "netlink/netlink.h"
#include "unit.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "base/fd.h"

static void attributes_are_aligned_and_nested(void **state)
{
	const struct ifinfomsg body = {.ifi_index = 7};
	const struct nlattr *outer;
	struct netlink_message m;
	size_t nest;

	(void)state;
	netlink_begin(&m, RTM_NEWLINK, 0, &body, sizeof(body));
	netlink_add_text(&m, IFLA_IFNAME, "ab");
	nest = netlink_nest(&m, IFLA_LINKINFO, NULL, 0);
	netlink_add_u32(&m, IFLA_INFO_KIND, 0x01020304);
	netlink_unnest(&m, nest);
	assert_false(m.is_full);
	assert_int_equal(m.head.nlmsg_len, NLMSG_LENGTH(sizeof(body)) + 8 + 4 + 8);
	assert_string_equal(netlink_find(&m.head, sizeof(body), IFLA_IFNAME, 3), "ab");
	assert_null(netlink_find(&m.head, sizeof(body), IFLA_IFNAME, 4));
	assert_null(netlink_find(&m.head, sizeof(body), IFLA_MTU, 0));
	outer = (const void *)(m.bytes + nest);
	assert_int_equal(outer->nla_len, 12);
}

static void what_does_not_fit_is_never_sent(void **state)
{
	static const char large[NETLINK_MESSAGE_MAX];
	struct netlink_message m;

	(void)state;
	netlink_begin(&m, RTM_NEWLINK, 0, NULL, 0);
	netlink_add(&m, IFLA_IFNAME, large, sizeof(large) - NLMSG_HDRLEN - NLA_HDRLEN);
	assert_false(m.is_full);
	netlink_add_u32(&m, IFLA_MTU, 1);
	assert_true(m.is_full);
	netlink_unnest(&m, netlink_nest(&m, IFLA_LINKINFO, NULL, 0));
	assert_int_equal(netlink_talk(-1, &m), -ENOBUFS);
	assert_int_equal(netlink_batch(-1, &m), -ENOBUFS);
}

/* Attributes of hostile length end the search. */
static void a_broken_attribute_is_not_found(void **state)
{
	static const uint16_t lengths[] = {0, 3, 9, 65535};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct netlink_message m;
		struct nlattr *at = (struct nlattr *)(void *)(m.bytes + NLMSG_HDRLEN);

		netlink_begin(&m, RTM_NEWROUTE, 0, NULL, 0);
		netlink_add_u32(&m, RTA_DST, 1);
		at->nla_len = lengths[i];
		assert_null(netlink_find(&m.head, 0, RTA_DST, 4));
	}
}

static int count_message(void *ctx, const struct nlmsghdr *head)
{
	int *count = ctx;

	assert_int_equal(head->nlmsg_type, RTM_NEWLINK);
	++*count;
	return 0;
}

/* Any user may ask for interfaces; a change of one that does not exist is refused. */
static void the_kernel_answers(void **state)
{
	const struct ifinfomsg none = {.ifi_index = 0x7ffffff0};
	cleanup_close int sock = netlink_open(NETLINK_ROUTE);
	struct netlink_message m;
	int count = 0;

	(void)state;
	assert_true(sock >= 0);
	netlink_begin(&m, RTM_GETLINK, 0, &none, sizeof(none));
	assert_int_equal(netlink_talk(sock, &m), -ENODEV);
	netlink_begin(&m, RTM_GETLINK, 0, &(struct ifinfomsg){0}, sizeof(none));
	assert_int_equal(netlink_list(sock, &m, count_message, &count), 0);
	assert_true(count > 0);
	assert_true(netlink_set_up(sock, 0x7ffffff0) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_are_aligned_and_nested),
		cmocka_unit_test(what_does_not_fit_is_never_sent),
		cmocka_unit_test(a_broken_attribute_is_not_found),
		cmocka_unit_test(the_kernel_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
