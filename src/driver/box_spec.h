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
	BOX_NETWORK_HOST,
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

/* What a box with BOX_NETWORK_ALLOWLIST may reach (egress/rules.h). Immutable and shared. */
struct box_rules {
	unsigned refs;
	struct box_network_limits limits, tenant_limits;
	size_t count;
	char *texts[];
};

/** box_rules_new - copies @texts. */
struct box_rules *box_rules_new(const char *const *texts, size_t count);
/** box_rules_ref - Return: @r, which may be NULL. */
struct box_rules *box_rules_ref(struct box_rules *r);
void box_rules_unref(struct box_rules *r);

/* A connection that the proxy refused. */
#define BOX_HOST_LEN   254
#define BOX_DETAIL_LEN 256
struct box_denial {
	unsigned reason; /* enum egress_reason */
	uint16_t port;
	uint64_t count;
	char host[BOX_HOST_LEN];     /* "": not even a name. Untrusted */
	char detail[BOX_DETAIL_LEN]; /* the rule, the address or the server name. Untrusted */
};

struct box_network_usage {
	uint64_t sent, received; /* bytes, as the box sees it */
	uint64_t connections, denied;
};

struct box_spec {
	char id[BOX_ID_LEN];
	char request_id[BOX_REQUEST_LEN]; /* for logs; "": none */
	char root[BOX_ROOT_LEN];          /* a root of the driver's; "": the host's */
	char tenant[BOX_TENANT_LEN];      /* whose share of the CPU it uses; "": none */
	struct box_limits limits;
	uint32_t required_layers; /* mask of enum wire_layer; a box lacking one is not used */
	enum box_network network;
	struct box_rules
		*rules; /* BOX_NETWORK_ALLOWLIST; a reference, or NULL: nothing is allowed */
	bool exec_tmp;  /* /tmp is executable */
	bool keep;      /* outlives the daemon if the driver can; see box_adopt */
	bool spare;     /* with keep: outlives the daemon only after box_give */
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
