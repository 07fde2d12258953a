/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/bridge.h"
#include "unit.h"

#include <string.h>

static struct cidr range(const char *text)
{
	struct error err = {0};
	struct cidr c;

	if (cidr_parse(text, &c, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return c;
}

static char *write_rules(const struct bridge_options *options)
{
	struct buf text = BUF_INIT(65536);
	size_t len;

	assert_int_equal(ruleset_write(options, &text), 0);
	return buf_take(&text, &len);
}

/* Where @part is, which must be there. */
static const char *place(const char *text, const char *part)
{
	const char *at = strstr(text, part);

	if (!at)
		fail_msg("not in the rules: %s", part);
	return at;
}

static void the_table_is_replaced_as_a_whole(void **state)
{
	const struct bridge_options options = {.subnet = range("100.96.0.0/16")};
	char *text = write_rules(&options);

	(void)state;
	assert_int_equal(strncmp(text,
	                         "table inet millibox\ndelete table inet millibox\n"
	                         "table inet millibox {\n",
	                         strlen("table inet millibox\ndelete table inet millibox\n"
	                                "table inet millibox {\n")),
	                 0);
	(void)place(text, "ip saddr 100.96.0.0/16 oifname != \"millibox*\" masquerade");
	(void)place(text, "set opened { type ipv4_addr; flags interval; auto-merge; }\n");
	free(text);
}

/* What no rule opens is refused before what the operator opens. */
static void refusals_come_in_order(void **state)
{
	struct bridge_options options = {
		.subnet = range("100.96.0.0/16"),
		.allow = {range("10.1.0.0/16"), range("192.168.7.9")},
		.allow_count = 2,
		.resolvers = {range("10.0.0.53")},
		.resolver_count = 1,
	};
	char *text = write_rules(&options);

	(void)state;
	(void)place(text, "set opened { type ipv4_addr; flags interval; auto-merge; elements = { "
	                  "10.1.0.0/16, 192.168.7.9/32 } }\n");
	(void)place(text, "10.0.0.53/32 } }\n");
	assert_true(place(text, "ip daddr @never") < place(text, "ip daddr @resolvers"));
	assert_true(place(text, "oifname \"millibox*\" goto refuse") < place(text, "jump private"));
	assert_true(place(text, "ip daddr @never") < place(text, "jump private"));
	assert_true(place(text, "jump private") < place(text, "ip daddr @refused"));
	/* Each by its bit in the group of the interface. */
	(void)place(text, "    iifgroup & 32768 == 32768 ip daddr @opened accept\n"
	                  "    iifgroup & 1 == 1 ip daddr 10.1.0.0/16 accept\n"
	                  "    iifgroup & 2 == 2 ip daddr 192.168.7.9/32 accept\n  }\n");
	/* The tables of the proxy: metadata services never, private networks unless opened. */
	assert_true(place(text, "169.254.169.254/32") < place(text, "set refused"));
	assert_true(place(text, "10.0.0.0/8") > place(text, "set refused"));
	free(text);
}

/* Before anything is accepted. */
static void connections_of_a_box_are_limited(void **state)
{
	const struct bridge_options options = {.subnet = range("100.96.0.0/16")};
	char *text = write_rules(&options);
	const char *jump = place(text, "ct status & confirmed == 0 jump opening");

	(void)state;
	(void)place(text, "{ ip saddr limit rate over 200/second burst 400 packets } drop");
	(void)place(text, "{ ip saddr ct count over 512 } reject");
	assert_true(place(text, "chain outward") < jump);
	assert_true(jump < place(text, "ip daddr @resolvers"));
	assert_true(jump < place(text, "jump private"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_replaced_as_a_whole),
		cmocka_unit_test(refusals_come_in_order),
		cmocka_unit_test(connections_of_a_box_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
