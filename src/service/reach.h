/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what a box may reach outside, what it was refused, and how much it has used, in the words of
 * all services. Every driver describes its boxes with these.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOX_TENANT_LEN 65 /* [A-Za-z0-9_-]{1,64} and NUL */

#define BOX_RULES_MAX   1024 /* rules of a box */
#define BOX_RULES_BYTES (128u * 1024)

struct box_network_limits {
	uint32_t connections; /* at the same time */
	uint32_t idle_ms;     /* a connection without a byte ends */
	uint32_t opened;      /* new connections per second; 0: no limit */
	uint64_t bytes;       /* both directions, over the life of the box; 0: no limit */
	uint64_t rate;        /* bytes per second; 0: no limit */
};

#define BOX_SECRETS_MAX 8 /* of a box */

/* What a box with BOX_NETWORK_ALLOWLIST may reach (egress/rules.h). Immutable and shared. */
struct box_rules {
	unsigned refs;
	struct box_network_limits limits, tenant_limits;
	char **secrets;     /* names of its tenant's secrets that it uses; NULL: none */
	char **env;         /* variables that its programs need for them; NULL: none */
	const char *bundle; /* certificates for BOX_BUNDLE_PATH; outlives the driver. NULL: none */
	size_t count;
	char *texts[];
};

/* Where the proxy of a box with BOX_NETWORK_ALLOWLIST listens, on its loopback. */
#define BOX_PROXY_PORT 3128

/* In a box that uses secrets over TLS. */
#define BOX_BUNDLE_NAME "ca.pem"
#define BOX_BUNDLE_PATH "/run/millibox/" BOX_BUNDLE_NAME

/** box_rules_new - copies @texts. */
struct box_rules *box_rules_new(const char *const *texts, size_t count);
/** box_rules_ref - Return: @r, which may be NULL. */
struct box_rules *box_rules_ref(struct box_rules *r);
void box_rules_unref(struct box_rules *r);

/* What refused a connection. */
enum box_refused_by {
	BOX_REFUSED_BY_PROXY,
	/* Rules of network bridge, because the address */
	BOX_REFUSED_ADDRESS, /* is not public, and not opened for the box */
	BOX_REFUSED_HOST,    /* is the host's own */
	BOX_REFUSED_BOX,     /* is of the boxes' subnet */
};

/* A connection that was refused. */
#define BOX_HOST_LEN   254
#define BOX_DETAIL_LEN 256
struct box_denial {
	enum box_refused_by by;
	unsigned reason; /* BOX_REFUSED_BY_PROXY: enum egress_reason */
	bool is_udp;     /* of network bridge; else TCP */
	uint16_t port;
	uint64_t count;
	char host[BOX_HOST_LEN];      /* "": not even a name. Untrusted */
	char detail[BOX_DETAIL_LEN];  /* the rule, the address or the server name. Untrusted */
	char request[BOX_DETAIL_LEN]; /* "GET /path"; "": a tunnel. Untrusted */
};

/* A call of a tool that is not on the list of the box. */
#define BOX_TOOL_LEN 129
struct box_tool_denial {
	uint64_t count;
	char server[BOX_TOOL_LEN]; /* "": none that the box may know of */
	char tool[BOX_TOOL_LEN];   /* of [A-Za-z0-9._/-]; untrusted */
	char rule[32];             /* "mcp", "mcp.servers", "mcp.tools" */
};

struct box_network_usage {
	uint64_t sent, received; /* bytes, as the box sees it */
	uint64_t connections, denied;
};
