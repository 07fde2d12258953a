/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the backend-neutral description of a box: the output of policy, the input of every driver.
 * Nothing later looks at the request again.
 */

#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

#define BOX_ID_LEN      32  /* [a-z0-9]{1,31} and NUL */
#define BOX_ROOT_LEN    65  /* [a-z0-9._-]{1,64}, no dot first, and NUL */
#define BOX_ZYGOTE_LEN  64  /* FOLDER/FILE of the runners, and NUL */
#define BOX_MODULES_LEN 512 /* names separated by spaces, and NUL */

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

/* What a box can reach, in ascending order. */
enum box_network {
	BOX_NETWORK_NONE,
	BOX_NETWORK_ALLOWLIST, /* named hosts, through the daemon */
	BOX_NETWORK_BRIDGE,    /* its own network, and what it is routed to */
	BOX_NETWORK_HOST,
	BOX_NETWORK_COUNT
};

/** box_network_name - "none", "allowlist", ... */
const char *box_network_name(enum box_network network);

struct box_spec {
	char id[BOX_ID_LEN];
	char request_id[BOX_REQUEST_LEN]; /* for logs; "": none */
	char root[BOX_ROOT_LEN];          /* a root that the driver knows; "": the host's */
	struct box_limits limits;
	uint32_t required_layers; /* mask of enum wire_layer; a box that lacks one is not used */
	enum box_network network;
	bool exec_tmp; /* programs in /tmp may be executed */
	bool keep;     /* outlives the daemon if the driver can; see box_adopt */
	bool spare;    /* with keep: outlives the daemon only after box_give */
	/* Fork the first program from a zygote, if the driver has them: the command that starts the
	 * zygote, and its modules. "": no. */
	char zygote[BOX_ZYGOTE_LEN];
	char modules[BOX_MODULES_LEN];
};

/* How the first program of a box was started. */
enum box_start {
	BOX_START_COLD,        /* executed: no zygote was requested, or the driver has none */
	BOX_START_ZYGOTE,      /* a zygote's child */
	BOX_START_NOT_YET,     /* executed: the zygote is still starting */
	BOX_START_UNAVAILABLE, /* executed: no zygote could be started */
	BOX_START_ROOT,        /* executed: zygotes exist for the host's root only */
	BOX_START_LOST,        /* executed: the zygote ended meanwhile */
	BOX_START_COUNT
};

/** box_start_reason - why the start was cold although a zygote was requested; else NULL. */
const char *box_start_reason(enum box_start start);

/** box_spec_is_like - equal except for ids. */
bool box_spec_is_like(const struct box_spec *a, const struct box_spec *b);
/** box_spec_check - ranges that hold for every driver. */
int box_spec_check(const struct box_spec *spec, struct error *err) attr_must_check;

void box_spec_make_id(char ret_id[BOX_ID_LEN]);
