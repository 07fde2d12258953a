/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one row of denials[]: what was refused, by which rule, how often, and what would allow it
 * (remedy.h). Kinds and rules are literals of the tables in denial.c, also when a record is read
 * from the store.
 */

#include <stdbool.h>
#include <stdint.h>

#define DENIAL_KIND_SYSCALL "syscall"
#define DENIAL_KIND_LIMIT   "limit"
#define DENIAL_KIND_NETWORK "network"
#define DENIAL_KIND_TOOL    "mcp_tool"

#define DENIAL_RULE_SECCOMP     "seccomp"
#define DENIAL_RULE_DEADLINE    "deadline"
#define DENIAL_RULE_HOST_MEMORY "admission.memory_low"
#define DENIAL_RULE_MEMORY      "memory"
#define DENIAL_RULE_RLIMIT      "rlimit"
#define DENIAL_RULE_PIDS        "pids"
#define DENIAL_RULE_TMPFS       "tmpfs"
#define DENIAL_RULE_OUTPUT      "output"
#define DENIAL_RULE_ALLOW       "network.allow"
#define DENIAL_RULE_ADDRESS     "network.address"
#define DENIAL_RULE_TLS         "network.tls"
#define DENIAL_RULE_REQUEST     "network.request"
#define DENIAL_RULE_BYTES       "egress.max_bytes"
#define DENIAL_RULE_SECRETS     "network.secrets"
#define DENIAL_RULE_RANGES      "network.ranges"
#define DENIAL_RULE_BRIDGE      "bridge.allow"
#define DENIAL_RULE_MCP         "mcp"
#define DENIAL_RULE_SERVERS     "mcp.servers"
#define DENIAL_RULE_TOOLS       "mcp.tools"

struct denial {
	const char *kind; /* DENIAL_KIND_: literal */
	char what[96];    /* "mount", "processes", "example.com:443" */
	const char *rule; /* DENIAL_RULE_: literal */
	uint64_t count;
	uint64_t repeated; /* of @count: also in another run's result, which the metrics count */
	bool shared;       /* others ran in the box meanwhile: may be theirs */
	int error;    /* errno that the program saw; 0: a signal, an answer of the proxy, nothing */
	char *detail; /* owned; untrusted: a path, an address, a server name; NULL: none */
	char *remedy; /* owned; JSON (remedy.h); NULL: not known */
};

#define DENIALS_MAX 32

/** denial_word - the kind or rule that equals @text; "": none of ours. */
const char *denial_word(const char *text);
/** denial_network_rule - by enum egress_reason; NULL: not a denial, the program sees the error. */
const char *denial_network_rule(unsigned reason);
