/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/plan.h"

#include <stdio.h>

#include "base/parse.h"

/*
 * Theory of operation. The order matters more than the list. Three phases:
 *
 *   prepare  the engine makes everything that limits the box, then the child, and maps its ids
 *   join     meanwhile the child enters the cgroups and checks that it is in them
 *   build    the child makes its root, leaves the old one and drops its privileges
 *
 * The child runs the engine's own code until the last step, so its own check can be trusted and
 * saves a round trip.
 *
 * Everything that an attacker could influence comes after the last step. The child reads no byte of
 * a request.
 */

typedef void (*what_fn)(const struct plan *plan, char *ret_text, size_t size);
typedef bool (*when_fn)(const struct plan_facts *facts);

struct row {
	const char *name;
	enum plan_phase phase;
	uint32_t layers;
	when_fn when;     /* NULL: always */
	uint32_t flags;   /* 0, or only with one of these of enum engine_flag */
	uint32_t without; /* not with these */
	what_fn what;     /* NULL: text */
	const char *text;
	const char *why;
};

static bool has_cgroup(const struct plan_facts *facts)
{
	return facts->cgroup != ENGINE_CGROUP_NONE;
}

static bool has_v1(const struct plan_facts *facts)
{
	return facts->has_v1;
}

static bool has_time_ns(const struct plan_facts *facts)
{
	return facts->has_time_ns;
}

static bool is_native(const struct plan_facts *facts)
{
	return !facts->has_runtime;
}

static bool has_runtime(const struct plan_facts *facts)
{
	return facts->has_runtime;
}

static bool has_no_nesting(const struct plan_facts *facts)
{
	return !facts->nests;
}

static bool has_many_ids(const struct plan_facts *facts)
{
	return facts->ids != ENGINE_IDS_SINGLE;
}

static void describe_limits(const struct plan *plan, char *ret_text, size_t size)
{
	const uint32_t layers = plan->facts.cgroup_layers;
	char memory[32], cpu[32];

	format_size(plan->limits.memory_bytes, memory, sizeof(memory));
	format_cpu(plan->limits.cpu_millicores, cpu, sizeof(cpu));
	(void)snprintf(ret_text, size, "memory %s and no swap%s; %u processes%s; %s CPU%s", memory,
	               layers & LAYER_BIT(LAYER_CGROUP_MEMORY) ? "" : " (missing on this host)",
	               plan->limits.pids,
	               layers & LAYER_BIT(LAYER_CGROUP_PIDS) ? "" : " (missing on this host)", cpu,
	               layers & LAYER_BIT(LAYER_CGROUP_CPU) ? "" : " (missing on this host)");
}

static void describe_clone(const struct plan *plan, char *ret_text, size_t size)
{
	bool v2 = plan->facts.cgroup == ENGINE_CGROUP_V2 ||
	          plan->facts.cgroup == ENGINE_CGROUP_HYBRID;

	(void)snprintf(ret_text, size,
	               "clone3 with new user, pid, mount, ipc and uts namespaces and a pidfd%s%s",
	               v2 ? ", started in its v2 group" : "",
	               plan->flags & ENGINE_FLAG_HOST_NETWORK ? ", in the network of the host"
	                                                      : "");
}

static void describe_idmap(const struct plan *plan, char *ret_text, size_t size)
{
	(void)snprintf(ret_text, size, "setgroups deny, gid_map, uid_map: %s; read back",
	               has_many_ids(&plan->facts)
	                       ? "agent 0 and payload 1000, each with its own host id"
	                       : "1000 is the user who started the engine (no subordinate ids)");
}

static void describe_root(const struct plan *plan, char *ret_text, size_t size)
{
	(void)snprintf(
		ret_text, size, "%s",
		plan->flags & ENGINE_FLAG_IMAGE
			? "mount an overlay: a tmpfs of the box over the names that every box "
			  "has over the named root; system directories read-only; devices "
			  "and runners"
			: "clone the read-only template tree");
}

static void describe_writable(const struct plan *plan, char *ret_text, size_t size)
{
	char workspace[32], tmp[32], shm[32];

	format_size(plan->limits.workspace_bytes, workspace, sizeof(workspace));
	format_size(plan->limits.tmp_bytes, tmp, sizeof(tmp));
	format_size(plan->limits.shm_bytes, shm, sizeof(shm));
	(void)snprintf(ret_text, size,
	               "%s /workspace %s, %u inodes; /tmp %s, %u inodes%s; /dev/shm %s; "
	               "/run/millibox for the agent",
	               plan->flags & ENGINE_FLAG_IMAGE ? "the upper layer and" : "tmpfs", workspace,
	               plan->limits.workspace_inodes, tmp, plan->limits.tmp_inodes,
	               plan->flags & ENGINE_FLAG_EXEC_TMP ? "" : ", noexec", shm);
}

#define NAMESPACES                                                                                 \
	(LAYER_BIT(LAYER_USER) | LAYER_BIT(LAYER_PID) | LAYER_BIT(LAYER_IPC) | LAYER_BIT(LAYER_UTS))

/* clang-format off */
static const struct row rows[STEP_COUNT] = {
	[STEP_RESERVE] = {
		.name = "reserve", .phase = PLAN_PREPARE,
		.text = "take an id slot that no live or dying box uses",
		.why = "first: everything later is named after it or owned by its ids",
	},
	[STEP_CGROUP_MAKE] = {
		.name = "cgroup-make", .phase = PLAN_PREPARE, .when = has_cgroup,
		.text = "make the box's group in every cgroup tree in use",
		.why = "needs the slot, so that it never shares the group of a dying box",
	},
	[STEP_CGROUP_LIMIT] = {
		.name = "cgroup-limit", .phase = PLAN_PREPARE, .when = has_cgroup, .what = describe_limits,
		.why = "needs the groups; before the first process, so that none runs without limits",
	},
	[STEP_CHANNELS] = {
		.name = "channels", .phase = PLAN_PREPARE,
		.text = "make the agent's socket and the status socket (and a reattach socket, if the box is kept)",
		.why = "the child inherits its ends",
	},
	[STEP_NET] = {
		.name = "net", .phase = PLAN_PREPARE, .layers = LAYER_BIT(LAYER_NET),
		.without = ENGINE_FLAG_HOST_NETWORK,
		.text = "take a network namespace from the pool: loopback up, no other interface",
		.why = "the child is created in it; it belongs to the engine, so the box cannot change it",
	},
	[STEP_EGRESS] = {
		.name = "egress", .phase = PLAN_PREPARE, .flags = ENGINE_FLAG_EGRESS,
		.text = "listen on loopback of the network namespace, for the proxy outside",
		.why = "needs the namespace; before the clone, so that no program takes the port first",
	},
	[STEP_BRIDGE] = {
		.name = "bridge", .phase = PLAN_PREPARE, .flags = ENGINE_FLAG_BRIDGE,
		.text = "have millibox-bridge put an interface into the network namespace; address, default route",
		.why = "needs the namespace; before the clone, so that programs find it ready",
	},
	[STEP_GATEWAY] = {
		.name = "gateway", .phase = PLAN_PREPARE, .flags = ENGINE_FLAG_GATEWAY,
		.text = "make a Unix socket for tools of MCP servers, one end for the gateway outside",
		.why = "the child inherits it and gives it a name",
	},
	[STEP_DESCRIBE] = {
		.name = "describe", .phase = PLAN_PREPARE, .when = has_runtime,
		.text = "write down for the runtime what it is to make",
		.why = "the child inherits it; it reads no byte of a request",
	},
	[STEP_LAYERS] = {
		.name = "layers", .phase = PLAN_PREPARE, .flags = ENGINE_FLAG_IMAGE,
		.text = "bind the named root to a fixed place, read-only",
		.why = "the box may not search the directory above it; the child inherits the mount, and the "
		       "engine unmounts it after the clone",
	},
	[STEP_PACKAGES] = {
		.name = "packages", .phase = PLAN_PREPARE, .flags = ENGINE_FLAG_PACKAGES,
		.text = "bind the named layer of packages to a fixed place, read-only",
		.why = "like the named root: the child inherits the mount and puts it below /opt/millibox",
	},
	[STEP_CLONE] = {
		.name = "clone", .phase = PLAN_PREPARE, .layers = NAMESPACES, .what = describe_clone,
		.why = "needs everything that the child inherits; if a later step fails, the child is killed",
	},
	[STEP_INJECT] = {
		.name = "inject", .phase = PLAN_PREPARE, .flags = ENGINE_FLAG_INJECT,
		.text = "ask the zygote for a child in the box's pid namespace and groups; it waits for the agent",
		.why = "needs the pid namespace; early, so that the zygote forks while the box is built",
	},
	[STEP_IDMAP] = {
		.name = "idmap", .phase = PLAN_PREPARE, .what = describe_idmap,
		.why = "needs the child: the maps can be written only from outside, and only once; the child "
		       "uses its ids only after the release",
	},
	[STEP_OOM_SCORE] = {
		.name = "oom-score", .phase = PLAN_PREPARE,
		.text = "raise oom_score_adj, so that the host kills boxes before anything else",
		.why = "before the release; inside, /proc is read-only, so the box cannot lower it",
	},
	[STEP_RELEASE] = {
		.name = "release", .phase = PLAN_PREPARE,
		.text = "let the child continue once it has joined; pass its descriptors to the daemon",
		.why = "needs the mapped ids; last step from outside",
	},
	[STEP_DEATHSIG] = {
		.name = "deathsig", .phase = PLAN_JOIN,
		.text = "die with the engine",
		.why = "first step of the child: if the engine dies from now on, nothing is left behind",
	},
	[STEP_CGROUP_JOIN] = {
		.name = "cgroup-join", .phase = PLAN_JOIN, .when = has_v1,
		.text = "join the v1 groups through inherited descriptors",
		.why = "needs the process; from inside it costs microseconds, from outside an RCU grace period",
	},
	[STEP_CGROUP_VERIFY] = {
		.name = "cgroup-verify", .phase = PLAN_JOIN, .when = has_cgroup,
		.text = "read back from /proc that it is in every group",
		.why = "after joining; before anything else, so that the child never runs without limits",
	},
	[STEP_WAIT] = {
		.name = "wait", .phase = PLAN_JOIN,
		.text = "block until released",
		.why = "the following steps need the ids, which only the engine can map",
	},
	[STEP_BECOME] = {
		.name = "become", .phase = PLAN_BUILD,
		.text = "take the agent's ids; renew the death signal, check that the engine is alive",
		.why = "needs the maps; a change of ids clears the death signal",
	},
	[STEP_SESSION] = {
		.name = "session", .phase = PLAN_BUILD,
		.text = "setsid; new keyring; default signal actions; empty signal mask; umask 022",
		.why = "before anything is made that would inherit a terminal, keys or a mask",
	},
	[STEP_CGROUP_NS] = {
		.name = "cgroup-ns", .phase = PLAN_BUILD, .layers = LAYER_BIT(LAYER_CGROUP_NS),
		.text = "unshare the cgroup namespace",
		.why = "after joining: the namespace's root becomes the box's own group",
	},
	[STEP_TIME_NS] = {
		.name = "time-ns", .phase = PLAN_BUILD, .when = has_time_ns,
		.layers = LAYER_BIT(LAYER_TIME),
		.text = "unshare the time namespace; its clocks start at zero",
		.why = "needs the engine's /proc; the offsets are fixed once the first process enters, at exec",
	},
	[STEP_NESTING] = {
		.name = "nesting", .phase = PLAN_BUILD, .when = has_no_nesting,
		.text = "allow no further user namespaces inside",
		.why = "needs root in the box's user namespace, and the engine's /proc: the box's own is "
		       "read-only",
	},
	[STEP_HOSTNAME] = {
		.name = "hostname", .phase = PLAN_BUILD,
		.text = "set the host name to millibox",
		.why = "needs root in the box's user namespace",
	},
	[STEP_ROOT] = {
		.name = "root", .phase = PLAN_BUILD, .layers = LAYER_BIT(LAYER_MNT),
		.what = describe_root,
		.why = "needs the ids: mounts belong to the box's user namespace",
	},
	[STEP_WRITABLE] = {
		.name = "writable", .phase = PLAN_BUILD, .what = describe_writable,
		.why = "needs the mount points in the attached tree",
	},
	[STEP_RESOLVER] = {
		.name = "resolver", .phase = PLAN_BUILD,
		.flags = ENGINE_FLAG_BRIDGE | ENGINE_FLAG_HOST_NETWORK,
		.text = "bind the files that name the operator's name servers over those in /etc",
		.why = "needs the attached tree; before the pivot, which puts the files out of reach",
	},
	[STEP_TERMINALS] = {
		.name = "terminals", .phase = PLAN_BUILD, .flags = ENGINE_FLAG_KEEP,
		.text = "devpts of the box's own at /dev/pts: at most 17 terminals; only the agent makes them",
		.why = "needs its mount point; only boxes of sessions have terminals",
	},
	[STEP_LISTEN] = {
		.name = "listen", .phase = PLAN_BUILD, .flags = ENGINE_FLAG_GATEWAY,
		.text = "listen at /tmp/mcp.sock, open to every process of the box",
		.why = "needs /tmp; before any program, so that none takes the name first",
	},
	[STEP_PROC] = {
		.name = "proc", .phase = PLAN_BUILD, .when = is_native,
		.text = "new /proc, read-only, other users' processes hidden",
		.why = "needs its mount point; before the pivot, because the kernel allows a new /proc only "
		       "while the outer one is fully visible",
	},
	[STEP_MASKS] = {
		.name = "masks", .phase = PLAN_BUILD, .when = is_native,
		.text = "cover kernel-wide files of /proc with objects from outside the tree",
		.why = "needs /proc; before the pivot, which puts the covers out of reach",
	},
	[STEP_ENCLOSE] = {
		.name = "enclose", .phase = PLAN_BUILD, .when = has_runtime,
		.text = "put the root into a tree with the runtime's program and its libraries, and a /proc",
		.why = "needs the finished root; before the pivot, because the kernel allows a new /proc only "
		       "while the outer one is fully visible",
	},
	[STEP_PIVOT] = {
		.name = "pivot", .phase = PLAN_BUILD,
		.text = "pivot_root into the tree, detach the old root, check that /.. is /",
		.why = "after the last step that needs something outside",
	},
	[STEP_RLIMITS] = {
		.name = "rlimits", .phase = PLAN_BUILD,
		.text = "no core dumps, the usual priority",
		.why = "late: small limits would break earlier steps",
	},
	[STEP_DESCRIPTORS] = {
		.name = "descriptors", .phase = PLAN_BUILD, .when = is_native,
		.text = "0, 1, 2 on the box's /dev/null, 3 the agent's socket (4 its reattach socket, 5 a socket "
		        "to the zygote's child), all others closed",
		.why = "after the last step that needs a descriptor; uses the box's /dev/null",
	},
	[STEP_CAPS] = {
		.name = "caps", .phase = PLAN_BUILD, .when = is_native,
		.text = "keep SETUID, SETGID, KILL, SETPCAP for the agent, drop all others for good; "
		        "no_new_privs",
		.why = "the steps above need more",
	},
	[STEP_EXEC] = {
		.name = "exec", .phase = PLAN_BUILD, .when = is_native,
		.text = "execute the agent from its sealed copy with an empty environment; it drops the "
		        "rest and filters system calls before any payload",
		.why = "last",
	},
	[STEP_LAUNCH] = {
		.name = "launch", .phase = PLAN_BUILD, .when = has_runtime,
		.text = "execute the runtime's program, with capabilities over the box only; it executes the "
		        "agent in its container; wait for all processes of both",
		.why = "last",
	},
};
/* clang-format on */

enum plan_phase plan_phase(enum plan_step step)
{
	return rows[step].phase;
}

const char *plan_step_name(enum plan_step step)
{
	return rows[step].name;
}

const char *plan_step_why(enum plan_step step)
{
	return rows[step].why;
}

void plan_step_what(const struct plan *plan, enum plan_step step, char *ret_text, size_t size)
{
	if (rows[step].what)
		rows[step].what(plan, ret_text, size);
	else
		(void)snprintf(ret_text, size, "%s", rows[step].text);
}

#define CONTROLLERS                                                                                \
	(LAYER_BIT(LAYER_CGROUP_MEMORY) | LAYER_BIT(LAYER_CGROUP_PIDS) |                           \
	 LAYER_BIT(LAYER_CGROUP_CPU))

/* Of two engines each makes boxes of one kind: a request that comes to the wrong one fails. */
static int check_host_network(const struct plan_facts *facts, uint32_t flags, struct error *err)
{
	bool wanted = flags & ENGINE_FLAG_HOST_NETWORK;

	if (wanted && !facts->host_network)
		return error_set(
			err, ERR_UNAVAILABLE, 0,
			"network host is not enabled: see the setting host_network.enabled");
	if (!wanted && facts->host_network)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "this engine makes only boxes with network host");
	return 0;
}

/* What a box of a runtime cannot have, it must not lack silently. */
static int check_features(const struct plan_facts *facts, uint32_t flags, struct error *err)
{
	static const struct {
		uint32_t flag, feature;
		const char *what;
	} needs[] = {
		{ENGINE_FLAG_IMAGE, ENGINE_CAN_IMAGE, "roots of images"},
		{ENGINE_FLAG_PACKAGES, ENGINE_CAN_PACKAGES, "packages"},
		{ENGINE_FLAG_EGRESS, ENGINE_CAN_EGRESS, "network allowlist"},
		{ENGINE_FLAG_GATEWAY, ENGINE_CAN_GATEWAY, "tools of MCP servers"},
		{ENGINE_FLAG_BRIDGE, ENGINE_CAN_BRIDGE, "network bridge"},
		{ENGINE_FLAG_KEEP, ENGINE_CAN_KEEP, "sessions that outlive the daemon"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(needs) && facts->has_runtime; i++)
		if ((flags & needs[i].flag) && !(facts->features & needs[i].feature))
			return error_set(err, ERR_UNAVAILABLE, 0,
			                 "boxes of this engine cannot have %s", needs[i].what);
	return 0;
}

static int check_required(const struct plan_facts *facts, uint32_t flags, struct error *err)
{
	uint32_t missing = CONTROLLERS & ~facts->cgroup_layers;

	if ((flags & ENGINE_FLAG_IMAGE) && !facts->has_images)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "overlayfs cannot be mounted: only the host's root is available");
	if ((flags & ENGINE_FLAG_BRIDGE) && !facts->has_bridge)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "network bridge is not enabled: see the setting bridge.enabled");
	if (check_host_network(facts, flags, err) < 0 || check_features(facts, flags, err) < 0)
		return -1;
	if (!(flags & ENGINE_FLAG_REQUIRE_CGROUP) || missing == 0)
		return 0;
	return error_set(err, ERR_UNAVAILABLE, 0, "no usable cgroup controller for%s%s%s",
	                 missing & LAYER_BIT(LAYER_CGROUP_MEMORY) ? " memory" : "",
	                 missing & LAYER_BIT(LAYER_CGROUP_PIDS) ? " pids" : "",
	                 missing & LAYER_BIT(LAYER_CGROUP_CPU) ? " cpu" : "");
}

static bool is_left_out(const struct row *row, const struct plan_facts *facts, uint32_t flags)
{
	return (row->when && !row->when(facts)) || (row->flags && !(row->flags & flags)) ||
	       (row->without & flags);
}

int plan_make(const struct plan_facts *facts, const struct engine_limits *limits, uint32_t flags,
              struct plan *ret_plan, struct error *err)
{
	struct plan plan = {.limits = *limits, .flags = flags, .facts = *facts};

	if (check_required(facts, flags, err) < 0)
		return -1;
	for (enum plan_step step = 0; step < STEP_COUNT; step++) {
		if (is_left_out(&rows[step], facts, flags))
			continue;
		plan.steps[plan.count++] = step;
		plan.layers |= rows[step].layers;
	}
	plan.layers |= facts->cgroup_layers & (CONTROLLERS | LAYER_BIT(LAYER_CGROUP_IO));
	if (has_many_ids(facts))
		plan.layers |= LAYER_BIT(LAYER_UID_RANGE);
	*ret_plan = plan;
	return 0;
}

uint32_t plan_agent_layers(uint32_t landlock_abi)
{
	uint32_t layers = LAYER_BIT(LAYER_CAPS) | LAYER_BIT(LAYER_NO_NEW_PRIVS) |
	                  LAYER_BIT(LAYER_SECCOMP) | LAYER_BIT(LAYER_RLIMITS);

	if (landlock_abi > 0)
		layers |= LAYER_BIT(LAYER_LANDLOCK);
	return layers;
}
