/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/denial.h"

#include <stddef.h>

#include "base/attr.h"
#include "base/str.h"
#include "egress/order.h"

static const char *const words[] = {
	DENIAL_KIND_SYSCALL, DENIAL_KIND_LIMIT,       DENIAL_KIND_NETWORK, DENIAL_KIND_TOOL,
	DENIAL_RULE_SECCOMP, DENIAL_RULE_DEADLINE,    DENIAL_RULE_MEMORY,  DENIAL_RULE_RLIMIT,
	DENIAL_RULE_PIDS,    DENIAL_RULE_TMPFS,       DENIAL_RULE_OUTPUT,  DENIAL_RULE_ALLOW,
	DENIAL_RULE_ADDRESS, DENIAL_RULE_TLS,         DENIAL_RULE_REQUEST, DENIAL_RULE_BYTES,
	DENIAL_RULE_SERVERS, DENIAL_RULE_HOST_MEMORY, DENIAL_RULE_TOOLS,   DENIAL_RULE_SECRETS,
	DENIAL_RULE_MCP,     DENIAL_RULE_RANGES,      DENIAL_RULE_BRIDGE,
};

static const char *const network_rules[EGRESS_REASON_COUNT] = {
	[EGRESS_BAD_REQUEST] = DENIAL_RULE_REQUEST, [EGRESS_BAD_NAME] = DENIAL_RULE_REQUEST,
	[EGRESS_NO_HOST] = DENIAL_RULE_ALLOW,       [EGRESS_PORT] = DENIAL_RULE_ALLOW,
	[EGRESS_TUNNEL] = DENIAL_RULE_ALLOW,        [EGRESS_METHOD] = DENIAL_RULE_ALLOW,
	[EGRESS_PATH] = DENIAL_RULE_ALLOW,          [EGRESS_ADDRESS] = DENIAL_RULE_ADDRESS,
	[EGRESS_NO_TLS] = DENIAL_RULE_TLS,          [EGRESS_NO_SNI] = DENIAL_RULE_TLS,
	[EGRESS_OTHER_SNI] = DENIAL_RULE_TLS,       [EGRESS_ECH] = DENIAL_RULE_TLS,
	[EGRESS_BYTES] = DENIAL_RULE_BYTES,         [EGRESS_SECRET_GONE] = DENIAL_RULE_SECRETS,
};

const char *denial_word(const char *text)
{
	for (size_t i = 0; text && i < ARRAY_SIZE(words); i++)
		if (str_equal(words[i], text))
			return words[i];
	return "";
}

const char *denial_network_rule(unsigned reason)
{
	return reason < EGRESS_REASON_COUNT ? network_rules[reason] : NULL;
}
