/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the backend-neutral description of a box: output of policy, input of every driver. Nothing
 * later reads the request.
 */

#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

#define BOX_ID_LEN      32  /* [a-z0-9]{1,31} and NUL */
#define BOX_ROOT_LEN    65  /* [a-z0-9._-]{1,64}, not starting with a dot, and NUL */
#define BOX_TENANT_LEN  65  /* [A-Za-z0-9_-]{1,64} and NUL */
#define BOX_ZYGOTE_LEN  64  /* FOLDER/FILE of the runners, and NUL */
#define BOX_MODULES_LEN 512 /* separated by spaces, and NUL */

struct box_limits {
	uint64_t memory_bytes;
	uint64_t workspace_bytes;
	uint64_t tmp_bytes;
	uint64_t shm_bytes;
	uint32_t workspace_inodes;
	uint32_t tmp_inodes;
	uint32_t pids;
	uint32_t cpu_millicores;
	uint32_t nofile;
};

#define BOX_REQUEST_LEN 64 /* letters, digits, - and _, and NUL */

/* In ascending order of reach. */
enum box_network {
	BOX_NETWORK_NONE,
	BOX_NETWORK_ALLOWLIST, /* named hosts, via the daemon */
	BOX_NETWORK_BRIDGE,    /* its own network, and its routes */
	BOX_NETWORK_HOST,      /* that of the host: LAYER_NET is missing */
	BOX_NETWORK_COUNT
};

const char *box_network_name(enum box_network network);

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

#define BOX_RANGES_ALL   0x8000U
#define BOX_RANGES_NAMED 15

struct box_spec {
	char id[BOX_ID_LEN];
	char request_id[BOX_REQUEST_LEN]; /* for logs; "": none */
	char root[BOX_ROOT_LEN];          /* a root of the driver's; "": the host's */
	char packages[BOX_ROOT_LEN];      /* a root of the driver's, mounted read-only; "": none */
	char tenant[BOX_TENANT_LEN];      /* whose share of the CPU it uses; "": none */
	struct box_limits limits;
	uint32_t required_layers; /* mask of enum wire_layer; a box lacking one is not used */
	enum box_network network;
	uint16_t
		ranges; /* BOX_NETWORK_BRIDGE: which of the operator's private ranges it reaches: 0:
	                 * none, BOX_RANGES_ALL, or a bit for each of the first BOX_RANGES_NAMED */
	struct box_rules
		*rules; /* BOX_NETWORK_ALLOWLIST; a reference, or NULL: nothing is allowed */
	/* Tools of MCP servers that it may call (gateway/allow.h); .connections and .bytes are of
	 * calls. A reference, or NULL: it has no socket for them. */
	struct box_rules *tools;
	bool exec_tmp; /* /tmp is executable */
	bool keep;     /* outlives the daemon if the driver can; see box_adopt */
	bool spare;    /* with keep: outlives the daemon only after box_give */
	/* Fork the first program from a zygote, if the driver has them: the command that starts it,
	 * and its modules. "": no. */
	char zygote[BOX_ZYGOTE_LEN];
	char modules[BOX_MODULES_LEN];
};

/* How a box's first program was started. */
enum box_start {
	BOX_START_COLD,        /* executed: no zygote requested, or none in the driver */
	BOX_START_ZYGOTE,      /* forked from a zygote */
	BOX_START_NOT_YET,     /* executed: the zygote is starting */
	BOX_START_UNAVAILABLE, /* executed: no zygote could start */
	BOX_START_ROOT,        /* executed: only the host's root has zygotes */
	BOX_START_LOST,        /* executed: the zygote ended */
	BOX_START_QUOTA,       /* executed: the CPU quota is small */
	BOX_START_COUNT
};

/** box_start_reason - why it was cold despite a requested zygote; else NULL. */
const char *box_start_reason(enum box_start start);

/** box_spec_is_like - equal except for ids. */
bool box_spec_is_like(const struct box_spec *a, const struct box_spec *b);
/** box_spec_check - ranges for every driver. */
int box_spec_check(const struct box_spec *spec, struct error *err) attr_must_check;

void box_spec_make_id(char ret_id[BOX_ID_LEN]);
