/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the daemon may ask of millibox-engine, the only privileged program. Requests and
 * replies are structs of fixed layout, one per message of a SOCK_SEQPACKET socket: nothing to
 * parse. The engine re-validates every field (request.c), because it trusts the daemon only as far
 * as making boxes goes.
 *
 * Requests are answered in order of completion. For a box that means:
 *   - FAILED with the seq of its CREATE: nothing of it is left or will be; no GONE follows.
 *   - CREATED: it is being built. FAILED with seq 0 may follow when that goes wrong, and then GONE.
 *   - DESTROY is answered by GONE, also for a box that is not there (any more); where it overtakes
 *     CREATED, that GONE is the only answer to both.
 *   - When PID 1 ends by itself (the pidfd tells), its groups stay until DESTROY, so that counters
 *     can still be read.
 * An engine that cannot start answers the first request with FAILED and exits. When the daemon's
 * end closes, the engine ends all boxes that were not made to be kept, and exits when none is left.
 *
 * Custody. Boxes made with ENGINE_FLAG_KEEP outlive their daemon for a while (--lease): the engine
 * stays as their custodian and listens at a Unix socket in the runtime directory (--handover, a
 * name that only the daemons of one state directory know). Whoever connects there as the engine's
 * own user is its new daemon: PROBE as always, then either ADOPT, answered by a KEPT for every box
 * that is still there and an ADOPTED, or END. When nobody comes in time everything ends.
 */

#include "base/error.h"
#include "wire/layer.h"
#include <stdint.h>

/*
 * How the daemon starts it: an empty environment, the socket as descriptor ENGINE_SOCKET_FD, 0 and
 * 1 on /dev/null, 2 for its log, nothing else, and
 *   millibox-engine --agent FILE --runners DIR --runtime-dir DIR --uid-base N --log-level L
 *                   --log-format F --max-memory BYTES --max-disk BYTES --max-pids N --max-cpu N
 *                   --handover NAME --lease MS --identity N
 *                   [--zygote FILE --zygote-forks N --zygote-memory BYTES] [--roots DIR]...
 * Each DIR of --roots has roots of boxes as its subdirectories. They are all that the daemon can
 * name as one: it gives a name, never a path.
 */
#define ENGINE_SOCKET_FD 3

#define ENGINE_VERSION   3
#define ENGINE_ID_LEN    32 /* box ids: [a-z0-9]{1,31} and NUL */
#define ENGINE_ROOT_LEN  65 /* names of roots: [a-z0-9._-]{1,64}, no dot first, and NUL */
#define ENGINE_BASES_MAX 8  /* --roots */

#define ENGINE_ZYGOTES_MAX 16
#define ENGINE_COMMAND_LEN 64  /* FOLDER/FILE, each [a-z0-9._-], no dot first, and NUL */
#define ENGINE_MODULES_LEN 512 /* names of [A-Za-z0-9_.] with a space between, and NUL */

enum engine_op {
	ENGINE_OP_NONE,
	/* requests */
	ENGINE_PROBE,   /* what can this host do; answered by ENGINE_PROBED */
	ENGINE_CREATE,  /* make a box; answered by ENGINE_CREATED or ENGINE_FAILED */
	ENGINE_DESTROY, /* end a box; answered by ENGINE_GONE */
	ENGINE_FREEZE,  /* freeze or thaw a box; answered by ENGINE_FROZEN or ENGINE_FAILED */
	/* replies and events */
	ENGINE_PROBED,
	ENGINE_CREATED, /* carries descriptors; the box is being built */
	ENGINE_FROZEN,
	ENGINE_FAILED, /* of a request, or of a box while it was being built (then GONE follows) */
	ENGINE_GONE,   /* nothing of the box is left */
	/* handover; numbers never change, because daemon and engine may be of different builds */
	ENGINE_ADOPT,   /* request: whose daemon died, once; answered by KEPT... ADOPTED */
	ENGINE_END,     /* request: end all boxes and exit; the end of the socket is the answer */
	ENGINE_KEPT,    /* as CREATED, of a box that was kept; its agent has a new stream */
	ENGINE_ADOPTED, /* there are no more */
	ENGINE_ZYGOTE,  /* request: have a zygote from now on; no answer unless it is refused */
	ENGINE_CLAIM, /* request: a box with ENGINE_FLAG_SPARE is somebody's from now on; no answer
	               */
	ENGINE_OP_COUNT
};

/* Resource limits; all are required and range-checked by the engine. */
struct engine_limits {
	uint64_t memory_bytes;
	uint64_t workspace_bytes;
	uint64_t tmp_bytes;
	uint64_t shm_bytes;
	uint32_t workspace_inodes;
	uint32_t tmp_inodes;
	uint32_t pids;
	uint32_t cpu_millicores;
};

enum engine_flag {
	ENGINE_FLAG_REQUIRE_CGROUP = 1u << 0, /* fail without one of memory, pids and cpu */
	ENGINE_FLAG_EXEC_TMP = 1u << 1,       /* /tmp may hold programs */
	ENGINE_FLAG_KEEP = 1u << 2,           /* outlives its daemon: see handover */
	ENGINE_FLAG_IMAGE = 1u << 3,          /* on the root that is named, not on the host's */
	ENGINE_FLAG_SPARE = 1u << 4, /* with KEEP: nobody's yet, and is not kept until CLAIM */
	ENGINE_FLAGS_ALL = (1u << 5) - 1,
	/* Never of a request: a zygote is ready to make the first program of this box. */
	ENGINE_FLAG_INJECT = 1u << 31,
};

/* How the first program of a box will come to be, where its request named a zygote. */
enum engine_start {
	ENGINE_START_COLD,    /* none was named */
	ENGINE_START_ZYGOTE,  /* by a zygote, unless that dies meanwhile */
	ENGINE_START_NOT_YET, /* cold, because the zygote is being started */
	ENGINE_START_BROKEN,  /* cold, because it cannot be started here */
	ENGINE_START_ROOT,    /* cold, because zygotes live on the host's root only */
	ENGINE_START_COUNT
};

struct engine_request {
	uint32_t op;
	uint32_t seq; /* echoed in the direct reply; not 0 */
	char box_id[ENGINE_ID_LEN];
	struct engine_limits limits; /* CREATE */
	uint32_t flags;              /* CREATE: enum engine_flag */
	uint32_t frozen;             /* FREEZE: 0 or 1 */
	char root[ENGINE_ROOT_LEN];  /* CREATE with ENGINE_FLAG_IMAGE */
	uint8_t zygote;              /* CREATE: 0, or a number that a ZYGOTE gave */
	uint8_t unused[2];
};

/*
 * The whole of a ZYGOTE: a file in the directory of runners that says what to execute, one word a
 * line, and what that is to import. The engine takes no command from anybody.
 */
struct engine_zygote {
	uint32_t op; /* ENGINE_ZYGOTE */
	uint32_t seq;
	uint32_t zygote; /* 1 to ENGINE_ZYGOTES_MAX */
	uint32_t unused;
	char command[ENGINE_COMMAND_LEN];
	char modules[ENGINE_MODULES_LEN];
};

enum engine_cgroup {
	ENGINE_CGROUP_NONE, /* no controller can be used: rlimits only */
	ENGINE_CGROUP_V1,
	ENGINE_CGROUP_V2,
	ENGINE_CGROUP_HYBRID, /* controllers on v1, kill and freeze on v2 */
	ENGINE_CGROUP_COUNT
};

enum engine_ids {
	ENGINE_IDS_RANGE,  /* privileged: ids of its own for each box */
	ENGINE_IDS_SUBID,  /* ordinary user with subordinate ids: the same, out of those */
	ENGINE_IDS_SINGLE, /* ordinary user: agent and payload share the user's id */
	ENGINE_IDS_COUNT
};

struct engine_probe {
	uint32_t layers; /* mask of enum wire_layer a box will have (agent's layers included) */
	uint32_t cgroup; /* enum engine_cgroup */
	uint32_t ids;    /* enum engine_ids */
	uint32_t landlock_abi;
	uint32_t uid; /* payload's ids inside the box */
	uint32_t gid;
	uint32_t daemon_uid; /* an id reserved for the daemon itself; 0 when not privileged */
	uint32_t boxes_max;  /* id slots: boxes alive at the same time */
	uint64_t identity;   /* --identity: what the daemon that started it would have it be */
	uint32_t images;     /* 1: ENGINE_FLAG_IMAGE is possible here */
	uint32_t zygotes;    /* 1: ENGINE_ZYGOTE is possible here */
};

/* Descriptors that come with ENGINE_CREATED and ENGINE_KEPT, in this order; the mask says which are
 * there. */
enum engine_fd {
	ENGINE_FD_AGENT,  /* stream socket to the agent, which has its end as descriptor 3 */
	ENGINE_FD_PIDFD,  /* readable when the box's PID 1 has ended */
	ENGINE_FD_KILL,   /* cgroup.kill, open for writing: "1" ends the box without the engine */
	ENGINE_FD_MEMORY, /* cgroup directories, for counters.h */
	ENGINE_FD_PIDS,
	ENGINE_FD_CPU,
	ENGINE_FD_COUNT
};

struct engine_created {
	uint32_t fds;      /* mask of enum engine_fd */
	uint32_t layers;   /* mask of enum wire_layer this box has from the engine */
	uint32_t host_uid; /* of the payload, outside */
	uint32_t pid;      /* of the box's PID 1, outside */
	uint32_t uid;      /* of the payload, inside */
	uint32_t gid;
	uint32_t frozen; /* KEPT: 0 or 1 */
	uint32_t start;  /* enum engine_start */
};

struct engine_gone {
	int32_t wait_status; /* of PID 1 */
	uint32_t leftovers;  /* processes that had to be killed besides PID 1; 0 or more */
};

struct engine_reply {
	uint32_t op;
	uint32_t seq; /* of the request it answers; 0 for an event */
	char box_id[ENGINE_ID_LEN];
	union {
		struct engine_probe probe;
		struct engine_created created;
		struct engine_gone gone;
		struct error error; /* FAILED */
	};
};
