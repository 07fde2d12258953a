/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the daemon's interface to its engines: millibox-engine and millibox-oci, the only privileged
 * programs, and millibox-remote. Requests and replies are fixed-layout structs, one per message on
 * a SOCK_SEQPACKET socket, so there is nothing to parse. Each engine validates every field
 * (request.c).
 *
 * Requests are answered in order of completion. For a box:
 *   - FAILED with the seq of its CREATE: nothing of the box exists; no GONE follows.
 *   - CREATED: the box is being built. If that fails, FAILED with seq 0 follows, then GONE.
 *   - DESTROY is answered by GONE, also when the box does not exist. If DESTROY overtakes CREATED,
 *     GONE is the only answer to both.
 *   - When PID 1 exits by itself (its pidfd becomes readable), the cgroups stay until DESTROY, so
 *     that the daemon can still read counters.
 * An engine that cannot start answers the first request with FAILED and exits. When the daemon
 * closes its end, the engine ends every box without ENGINE_FLAG_KEEP and exits when none is left.
 *
 * Handover. Boxes with ENGINE_FLAG_KEEP outlive their daemon for --lease milliseconds: the engine
 * listens on a Unix socket in the runtime directory (--handover, a name specific to one state
 * directory). A process of the engine's own user that connects there becomes the new daemon. It
 * sends PROBE, then either ADOPT, answered by one KEPT per remaining box and then ADOPTED, or END.
 * When the lease ends, the engine ends all boxes.
 */

#include "base/error.h"
#include "wire/layer.h"
#include <stdint.h>

/*
 * How the daemon starts the engine: an empty environment, the socket as descriptor
 * ENGINE_SOCKET_FD, 0 and 1 on /dev/null, 2 for the log, no other descriptors, and
 *   millibox-engine --agent FILE --runners DIR --runtime-dir DIR --uid-base N --log-level L
 *                   --log-format F --max-memory BYTES --max-disk BYTES --max-pids N --max-cpu N
 *                   --handover NAME --lease MS --identity N
 *                   [--zygote FILE --zygote-forks N --zygote-memory BYTES --zygote-age MS]
 *                   [--roots DIR]...
 *                   [--bridge FILE --bridge-subnet RANGE [--bridge-allow RANGE]...]
 *                   [--host-network 1 --daemon-uid N] [--resolver ADDRESS]...
 * With --host-network all its boxes share the network of the host, and it makes no others (ADR 12);
 * --daemon-uid is then the owner of images, an id of the first engine.
 *
 * Each subdirectory of a --roots DIR can be the root of a box. The daemon selects one by name,
 * never by path.
 */
#define ENGINE_SOCKET_FD 3

#define ENGINE_VERSION      16
#define ENGINE_ID_LEN       32 /* box ids: [a-z0-9]{1,31} and NUL */
#define ENGINE_TENANT_LEN   65 /* tenants: [A-Za-z0-9_-]{1,64} and NUL */
#define ENGINE_ROOT_LEN     65 /* names of roots: [a-z0-9._-]{1,64}, no dot first, and NUL */
#define ENGINE_BASES_MAX    8  /* --roots */
#define ENGINE_RUNNERS_MAX  8  /* --runners */
#define ENGINE_RANGES_MAX   64 /* --bridge-allow, --resolver */
#define ENGINE_RANGES_ALL   0x8000U
#define ENGINE_RANGES_NAMED 15
/* Where a box with ENGINE_FLAG_EGRESS finds its proxy. */
#define ENGINE_EGRESS_PORT 3128
/* The interface of a box with ENGINE_FLAG_BRIDGE. */
#define ENGINE_INTERFACE "eth0"
/* Where a box with ENGINE_FLAG_GATEWAY finds the tools of MCP servers: the path of its clients. */
#define ENGINE_GATEWAY_NAME "tmp/mcp.sock"

#define ENGINE_ZYGOTES_MAX 64
#define ENGINE_COMMAND_LEN 64  /* FOLDER/FILE, each [a-z0-9._-], no dot first, and NUL */
#define ENGINE_MODULES_LEN 512 /* names of [A-Za-z0-9_.] with a space between, and NUL */
#define ENGINE_RUNTIME_LEN 32  /* "native", "runc": [a-z0-9-], and NUL */
#define ENGINE_RELEASE_LEN 64  /* its version, as it says: printable ASCII, and NUL */

enum engine_op {
	ENGINE_OP_NONE,
	/* requests */
	ENGINE_PROBE,   /* answered by ENGINE_PROBED */
	ENGINE_CREATE,  /* answered by ENGINE_CREATED or ENGINE_FAILED */
	ENGINE_DESTROY, /* answered by ENGINE_GONE */
	ENGINE_FREEZE,  /* freeze or thaw; answered by ENGINE_FROZEN or ENGINE_FAILED */
	/* replies and events */
	ENGINE_PROBED, /* carries a descriptor per tree of cgroups: writing a process id there moves
	                * the process into the group of millibox-import */
	ENGINE_CREATED, /* carries descriptors; the box is being built */
	ENGINE_FROZEN,
	ENGINE_FAILED, /* of a request, or of a box being built (then GONE follows) */
	ENGINE_GONE,   /* nothing of the box is left */
	/* Fixed numbers: daemon and engine may come from different builds. */
	ENGINE_ADOPT,   /* request: take over the boxes, once; answered by KEPT..., ADOPTED */
	ENGINE_END,     /* request: end all boxes and exit; answered by EOF */
	ENGINE_KEPT,    /* like CREATED, for a kept box; its agent gets a new stream */
	ENGINE_ADOPTED, /* end of the list of KEPT */
	ENGINE_ZYGOTE,  /* request: keep a zygote running; answered only by FAILED */
	ENGINE_CLAIM,   /* request: clear ENGINE_FLAG_SPARE of a box; not answered */
	ENGINE_REACH,   /* request: what a box with ENGINE_FLAG_BRIDGE reaches from now on; not
	                 * answered. A box whose network cannot be changed is ended */
	ENGINE_OP_COUNT
};

/* All are required; the engine checks their ranges. */
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
	ENGINE_FLAG_KEEP = 1u << 2,           /* outlives its daemon: see Handover above */
	ENGINE_FLAG_IMAGE = 1u << 3,          /* on the named root instead of the host's */
	ENGINE_FLAG_SPARE = 1u << 4,          /* in a pool: KEEP takes effect after CLAIM */
	ENGINE_FLAG_EGRESS = 1u << 5,   /* a socket listens at ENGINE_EGRESS_PORT of its loopback */
	ENGINE_FLAG_GATEWAY = 1u << 6,  /* a Unix socket listens at ENGINE_GATEWAY_NAME */
	ENGINE_FLAG_PACKAGES = 1u << 7, /* the named root is mounted as its packages, read-only */
	ENGINE_FLAG_BRIDGE = 1u << 8,   /* an interface, connected by millibox-bridge */
	ENGINE_FLAG_HOST_NETWORK =
		1u << 9, /* the network of the host: all boxes of an engine or none */
	ENGINE_FLAGS_ALL = (1u << 10) - 1,
	/* Internal, not valid in a request: a zygote makes the first program. */
	ENGINE_FLAG_INJECT = 1u << 31,
};

/* How the first program of a box starts. */
enum engine_start {
	ENGINE_START_COLD,    /* executed: the request named no zygote */
	ENGINE_START_ZYGOTE,  /* forked from a zygote, unless the zygote dies first */
	ENGINE_START_NOT_YET, /* cold: the zygote is still starting */
	ENGINE_START_BROKEN,  /* cold: the zygote cannot be started */
	ENGINE_START_ROOT,    /* cold: zygotes exist only for the host's root */
	ENGINE_START_QUOTA,   /* cold: with its CPU quota the box would delay the zygote */
	ENGINE_START_COUNT
};

struct engine_request {
	uint32_t op;
	uint32_t seq; /* echoed in the direct reply; not 0 */
	char box_id[ENGINE_ID_LEN];
	struct engine_limits limits; /* CREATE */
	uint32_t flags;              /* CREATE: enum engine_flag. REACH: ENGINE_FLAG_BRIDGE, or 0:
	                              * the box loses its interface */
	uint32_t frozen;             /* FREEZE: 0 or 1 */
	char root[ENGINE_ROOT_LEN];  /* CREATE with ENGINE_FLAG_IMAGE */
	char packages[ENGINE_ROOT_LEN]; /* CREATE with ENGINE_FLAG_PACKAGES */
	char tenant[ENGINE_TENANT_LEN]; /* CREATE: whose share of the CPU it uses; "": none */
	uint8_t zygote;                 /* CREATE: 0, or the number of an earlier ZYGOTE */
	uint16_t ranges; /* CREATE and REACH with ENGINE_FLAG_BRIDGE: which of --bridge-allow it
	                  * reaches: 0: none, ENGINE_RANGES_ALL, or a bit for each of the first
	                  * ENGINE_RANGES_NAMED */
	uint8_t unused[2];
};

/*
 * The ZYGOTE request: a file in the runners directory with the command, one word per line, and the
 * modules to import. The engine accepts no command lines.
 */
struct engine_zygote {
	uint32_t op; /* ENGINE_ZYGOTE */
	uint32_t seq;
	uint32_t zygote; /* 1 to ENGINE_ZYGOTES_MAX */
	uint32_t unused;
	char command[ENGINE_COMMAND_LEN];
	char modules[ENGINE_MODULES_LEN];
	char tenant[ENGINE_TENANT_LEN]; /* whose boxes it forks for */
	uint8_t padding[3];             /* 0 */
};

enum engine_cgroup {
	ENGINE_CGROUP_NONE, /* no usable controller: rlimits only */
	ENGINE_CGROUP_V1,
	ENGINE_CGROUP_V2,
	ENGINE_CGROUP_HYBRID, /* controllers on v1, kill and freeze on v2 */
	ENGINE_CGROUP_COUNT
};

enum engine_ids {
	ENGINE_IDS_RANGE,  /* root: separate host ids for each box */
	ENGINE_IDS_SUBID,  /* user with subordinate ids: the same, from that range */
	ENGINE_IDS_SINGLE, /* user without: agent and payload share the user's id */
	ENGINE_IDS_COUNT
};

/* What stands between a program and the host's kernel, in ascending order. */
enum engine_grade {
	ENGINE_GRADE_NAMESPACE, /* the kernel is shared */
	ENGINE_GRADE_GVISOR,    /* a kernel in user space */
	ENGINE_GRADE_VM,        /* a kernel of its own, in a virtual machine */
	ENGINE_GRADE_COUNT
};

/* What boxes of an engine can have. A request for more is refused before anything starts. */
enum engine_feature {
	ENGINE_CAN_IMAGE = 1u << 0,    /* ENGINE_FLAG_IMAGE */
	ENGINE_CAN_PACKAGES = 1u << 1, /* ENGINE_FLAG_PACKAGES */
	ENGINE_CAN_ZYGOTE = 1u << 2,   /* ENGINE_ZYGOTE */
	ENGINE_CAN_EGRESS = 1u << 3,   /* ENGINE_FLAG_EGRESS */
	ENGINE_CAN_GATEWAY = 1u << 4,  /* ENGINE_FLAG_GATEWAY */
	ENGINE_CAN_BRIDGE = 1u << 5,   /* ENGINE_FLAG_BRIDGE */
	ENGINE_CAN_FREEZE = 1u << 6,   /* ENGINE_FREEZE */
	ENGINE_CAN_KEEP = 1u << 7,     /* ENGINE_FLAG_KEEP */
	ENGINE_CAN_ALL = (1u << 8) - 1,
};

struct engine_probe {
	uint32_t layers; /* mask of enum wire_layer of a box, the agent's layers and those that the
	                  * runtime vouches for included */
	uint32_t cgroup; /* enum engine_cgroup */
	uint32_t ids;    /* enum engine_ids */
	uint32_t landlock_abi;
	uint32_t uid; /* of the payload, inside the box */
	uint32_t gid;
	uint32_t daemon_uid; /* host id reserved for the daemon; 0 when not privileged */
	uint32_t boxes_max;  /* id slots: boxes alive at the same time */
	uint64_t identity;   /* --identity, of the daemon that started the engine */
	uint32_t features;   /* mask of enum engine_feature */
	uint32_t grade;      /* enum engine_grade */
	char runtime[ENGINE_RUNTIME_LEN];
	char release[ENGINE_RELEASE_LEN]; /* "": not known */
};

/* Descriptors of ENGINE_CREATED and ENGINE_KEPT, in this order; engine_created.fds is the mask of
 * those present. */
enum engine_fd {
	ENGINE_FD_AGENT,  /* stream socket to the agent, whose end is descriptor 3 */
	ENGINE_FD_PIDFD,  /* readable when the box's PID 1 has exited */
	ENGINE_FD_KILL,   /* cgroup.kill: "1" kills the box without the engine */
	ENGINE_FD_MEMORY, /* cgroup directories, for counters.h */
	ENGINE_FD_PIDS,
	ENGINE_FD_CPU,
	ENGINE_FD_NETWORK,  /* of ENGINE_FLAG_EGRESS the listening socket; of ENGINE_FLAG_BRIDGE the
	                     * table net/dev of its network namespace, to read */
	ENGINE_FD_GATEWAY,  /* that of ENGINE_FLAG_GATEWAY; listens once the box is ready */
	ENGINE_FD_REFUSALS, /* of ENGINE_FLAG_BRIDGE a socket of millibox-bridge: what the box was
	                     * refused (bridge/order.h) */
	ENGINE_FD_COUNT
};

struct engine_created {
	uint32_t fds;      /* mask of enum engine_fd */
	uint32_t layers;   /* mask of enum wire_layer that the engine applied */
	uint32_t vouched;  /* those that only the runtime's word shows, unless the agent measures
	                    * them; the agent's own may be among them */
	uint32_t host_uid; /* of the payload, on the host */
	uint32_t pid;      /* of the box's PID 1, on the host */
	uint32_t uid;      /* of the payload, in the box */
	uint32_t gid;
	uint32_t frozen; /* KEPT: 0 or 1 */
	uint32_t start;  /* enum engine_start */
};

struct engine_gone {
	int32_t wait_status; /* of PID 1 */
	uint32_t leftovers;  /* processes killed besides PID 1 */
};

struct engine_reply {
	uint32_t op;
	uint32_t seq; /* of the request; 0 for an event */
	char box_id[ENGINE_ID_LEN];
	union {
		struct engine_probe probe;
		struct engine_created created;
		struct engine_gone gone;
		struct error error; /* FAILED */
	};
};
