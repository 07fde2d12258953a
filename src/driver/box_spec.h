/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the backend-neutral description of a box: output of policy, input of every driver. Nothing
 * later reads the request.
 */

#include "base/error.h"
#include "service/reach.h"
#include <stdbool.h>
#include <stdint.h>

#define BOX_ID_LEN      32  /* [a-z0-9]{1,31} and NUL */
#define BOX_ROOT_LEN    65  /* [a-z0-9._-]{1,64}, not starting with a dot, and NUL */
#define BOX_ZYGOTE_LEN  64  /* FOLDER/FILE of the runners, and NUL */
#define BOX_MODULES_LEN 512 /* separated by spaces, and NUL */
#define BOX_ENGINE_LEN  32  /* name of an engine: [a-z0-9-]{1,31}, a letter first, and NUL */

/* What stands between a program and the host's kernel, in ascending order. */
enum box_grade {
	BOX_GRADE_NAMESPACE, /* the kernel is shared */
	BOX_GRADE_GVISOR,    /* a kernel in user space */
	BOX_GRADE_VM,        /* a kernel of its own, in a virtual machine */
	BOX_GRADE_COUNT
};

/** box_grade_name - "namespace", "gvisor", "vm"; a literal. */
const char *box_grade_name(enum box_grade grade);
/** box_grade_find - Return: BOX_GRADE_COUNT: there is no such word. */
enum box_grade box_grade_find(const char *name);

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

#define BOX_RANGES_ALL   0x8000U
#define BOX_RANGES_NAMED 15

struct box_spec {
	char id[BOX_ID_LEN];
	char engine[BOX_ENGINE_LEN];      /* that makes it; "": the default */
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
