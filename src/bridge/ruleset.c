/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/bridge.h"
#include "bridge/order.h"

#include <string.h>

/*
 * Theory of operation. Every box has its own pair of interfaces and a route of its own on the host
 * (link.c), so one set of rules for all interfaces of our prefix is enough; nothing is added for a
 * box.
 *
 *   from_box   IPv4 only, and the source must be the address whose route leads to the interface
 *              that the packet came from
 *   input      nothing of the host itself can be reached
 *   outward    no other box, nothing that is not public, except what the operator opened
 *   private    what the operator opened, and of that what the group of the interface says
 *   opening    the host's table of connections is one for all: so many for a box, and so many a
 *              second. Only packets that would add an entry, not those of a flow without answers
 *   forward,   towards a box only answers
 *   output
 *   refuse     the kernel reports some of what a box may not reach (refusal.c), before the answer
 *   source     boxes appear under the host's address
 *
 * Refusals are answered, so that programs fail at once. Other tables of the host still apply: what
 * they drop is dropped.
 */

#define PORTS  "\"" BRIDGE_PREFIX "*\""
#define REJECT "reject with icmp type admin-prohibited"
#define REFUSE "goto refuse"

static const char head[] = "table inet " BRIDGE_TABLE "\n"
			   "delete table inet " BRIDGE_TABLE "\n"
			   "table inet " BRIDGE_TABLE " {\n";

static const char chains[] =
	"  chain from_box {\n"
	"    meta nfproto != ipv4 drop\n"
	"    fib saddr . iif oif missing drop\n"
	"  }\n"
	"  chain prerouting {\n"
	"    type filter hook prerouting priority raw; policy accept;\n"
	"    iifname " PORTS " jump from_box\n"
	"  }\n"
	"  chain input {\n"
	"    type filter hook input priority filter - 10; policy accept;\n"
	"    iifname " PORTS " " REFUSE "\n"
	"  }\n"
	"  chain outward {\n"
	"    ct state invalid drop\n"
	"    ct status & confirmed == 0 jump opening\n"
	"    oifname " PORTS " " REFUSE "\n"
	"    meta l4proto != { tcp, udp, icmp } " REFUSE "\n"
	"    ip daddr @never " REFUSE "\n"
	"    ip daddr @resolvers meta l4proto { tcp, udp } th dport 53 accept\n"
	"    jump private\n"
	"    ip daddr @refused " REFUSE "\n"
	"  }\n"
	"  chain forward {\n"
	"    type filter hook forward priority filter - 10; policy accept;\n"
	"    iifname " PORTS " jump outward\n"
	"    oifname " PORTS " ct state { established, related } accept\n"
	"    oifname " PORTS " drop\n"
	"  }\n"
	"  chain output {\n"
	"    type filter hook output priority filter - 10; policy accept;\n"
	"    oifname " PORTS " icmp type { destination-unreachable, time-exceeded } accept\n"
	"    oifname " PORTS " ct state { established, related } accept\n"
	"    oifname " PORTS " drop\n"
	"  }\n";

static int add_range(struct buf *to, const struct cidr *c, bool is_first)
{
	uint32_t a = bridge_v4(c);

	return buf_addf(to, "%s %u.%u.%u.%u/%u", is_first ? "elements = {" : ",", a >> 24,
	                a >> 16 & 0xff, a >> 8 & 0xff, a & 0xff, bridge_v4_bits(c));
}

static int begin_set(struct buf *to, const char *name)
{
	return buf_addf(to, "  set %s { type ipv4_addr; flags interval; auto-merge; ", name);
}

static int end_set(struct buf *to, bool is_empty)
{
	return buf_add_str(to, is_empty ? "}\n" : " } }\n");
}

static int add_set(struct buf *to, const char *name, const struct cidr *ranges, size_t count)
{
	int r = begin_set(to, name);

	for (size_t i = 0; i < count && r >= 0; i++)
		r = add_range(to, &ranges[i], i == 0);
	return r < 0 ? r : end_set(to, count == 0);
}

/* Those of the table that no rule opens, or the others. */
static int add_table(struct buf *to, const char *name, bool never)
{
	const struct cidr *range;
	bool is_never, is_first = true;
	int r = begin_set(to, name);

	for (size_t i = 0; (range = address_range(i, &is_never)) && r >= 0; i++)
		if (is_never == never && IN6_IS_ADDR_V4MAPPED(&range->base)) {
			r = add_range(to, range, is_first);
			is_first = false;
		}
	return r < 0 ? r : end_set(to, is_first);
}

static int add_source(const struct bridge_options *o, struct buf *to)
{
	uint32_t a = bridge_v4(&o->subnet);

	return buf_addf(to,
	                "  chain source {\n"
	                "    type nat hook postrouting priority srcnat; policy accept;\n"
	                "    ip saddr %u.%u.%u.%u/%u oifname != " PORTS " masquerade\n"
	                "  }\n}\n",
	                a >> 24, a >> 16 & 0xff, a >> 8 & 0xff, a & 0xff,
	                bridge_v4_bits(&o->subnet));
}

/* Those that a policy can name; others come with all. */
static int add_private(const struct bridge_options *o, struct buf *to)
{
	int r = buf_addf(to,
	                 "  chain private {\n"
	                 "    iifgroup & %u == %u ip daddr @opened accept\n",
	                 BRIDGE_RANGES_ALL, BRIDGE_RANGES_ALL);

	for (size_t i = 0; i < o->allow_count && i < BRIDGE_RANGES_NAMED && r >= 0; i++) {
		uint32_t a = bridge_v4(&o->allow[i]);

		r = buf_addf(to, "    iifgroup & %u == %u ip daddr %u.%u.%u.%u/%u accept\n",
		             1U << i, 1U << i, a >> 24, a >> 16 & 0xff, a >> 8 & 0xff, a & 0xff,
		             bridge_v4_bits(&o->allow[i]));
	}
	return r < 0 ? r : buf_add_str(to, "  }\n");
}

/* A box with too many connections gets an answer; answers to a flood would be another one. */
static int add_limits(struct buf *to)
{
	return buf_addf(to,
	                "  set connections { type ipv4_addr; size 65536; flags dynamic; }\n"
	                "  set rates { type ipv4_addr; size 65536; flags dynamic,timeout; "
	                "timeout 1m; }\n"
	                "  chain opening {\n"
	                "    update @rates { ip saddr limit rate over %d/second burst %d packets } "
	                "drop\n"
	                "    add @connections { ip saddr ct count over %d } " REJECT "\n"
	                "  }\n",
	                BRIDGE_RATE, BRIDGE_BURST, BRIDGE_CONNECTIONS);
}

/* A box cannot fill the queue of reports for the others. */
static int add_refuse(struct buf *to)
{
	return buf_addf(to,
	                "  set noted { type ipv4_addr; size 65536; flags dynamic,timeout; "
	                "timeout 1m; }\n"
	                "  chain refuse {\n"
	                "    meta l4proto { tcp, udp } update @noted { ip saddr limit rate "
	                "%d/second burst %d packets } log group %d snaplen 64\n"
	                "    " REJECT "\n"
	                "  }\n",
	                BRIDGE_NOTED_RATE, BRIDGE_NOTED_BURST, BRIDGE_NOTED_GROUP);
}

int ruleset_write(const struct bridge_options *options, struct buf *to)
{
	int r = buf_add_str(to, head);

	if (r >= 0)
		r = add_table(to, "never", true);
	if (r >= 0)
		r = add_table(to, "refused", false);
	if (r >= 0)
		r = add_set(to, "opened", options->allow, options->allow_count);
	if (r >= 0)
		r = add_set(to, "resolvers", options->resolvers, options->resolver_count);
	if (r >= 0)
		r = add_refuse(to);
	if (r >= 0)
		r = add_limits(to);
	if (r >= 0)
		r = add_private(options, to);
	if (r >= 0)
		r = buf_add_str(to, chains);
	return r < 0 ? r : add_source(options, to);
}
