/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/plan.h"

#include <stdio.h>

#include "base/parse.h"

/*
 * Theory of operation. The order matters more than the list. Three phases:
 *
 *   prepare  everything that limits the box exists before the box does; the child gets its ids
 *   join     meanwhile the child puts itself under those limits, checks that it really is, and can
 *            do nothing else yet
 *   build    the child makes the world it will live in, leaves the old one, loses its powers
 *
 * The child is the engine's own code until the last step, so its word that it has joined is as good
 * as the engine's, and costs no turn of waking each other.
 *
 * Whatever an attacker could influence comes after the last step. No byte of a request is looked at
 * inside.
 */

typedef void (*what_fn)(const struct plan *plan, char *ret_text, size_t size);
typedef bool (*when_fn)(const struct plan_facts *facts);

struct row {
	const char *name;
	enum plan_phase phase;
	uint32_t layers;
	when_fn when;   /* NULL: always */
	uint32_t flags; /* only with all of these of enum engine_flag */
	what_fn what;   /* NULL: text */
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

static bool has_many_ids(const struct plan_facts *facts)
{
	return facts->ids != ENGINE_IDS_SINGLE;
}

static void tell_limits(const struct plan *plan, char *ret_text, size_t size)
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

static void tell_clone(const struct plan *plan, char *ret_text, size_t size)
{
	bool v2 = plan->facts.cgroup == ENGINE_CGROUP_V2 ||
	          plan->facts.cgroup == ENGINE_CGROUP_HYBRID;

	(void)snprintf(ret_text, size,
	               "clone3 with new user, pid, mount, ipc and uts namespaces and a pidfd%s",
	               v2 ? ", born in its v2 group" : "");
}

static void tell_idmap(const struct plan *plan, char *ret_text, size_t size)
{
	(void)snprintf(ret_text, size, "setgroups deny, gid_map, uid_map: %s; read back",
	               has_many_ids(&plan->facts)
	                       ? "agent 0 and payload 1000, each a host id of its own"
	                       : "1000 is the user who started the engine (no ids of its own)");
}

static void tell_root(const struct plan *plan, char *ret_text, size_t size)
{
	(void)snprintf(ret_text, size, "%s",
	               plan->flags & ENGINE_FLAG_IMAGE
	                       ? "take the layered tree; devices and runners onto it"
	                       : "clone the read-only template tree");
}

static void tell_writable(const struct plan *plan, char *ret_text, size_t size)
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
		.text = "take an id slot that no living or dying box has",
		.why = "first: everything later is named or owned by it",
	},
	[STEP_CGROUP_MAKE] = {
		.name = "cgroup-make", .phase = PLAN_PREPARE, .when = has_cgroup,
		.text = "make the box's group in every cgroup tree in use",
		.why = "the slot must be taken: a group of a dying box is not to be shared",
	},
	[STEP_CGROUP_LIMIT] = {
		.name = "cgroup-limit", .phase = PLAN_PREPARE, .when = has_cgroup, .what = tell_limits,
		.why = "needs the groups; before any process, so that none ever runs without limits",
	},
	[STEP_CHANNELS] = {
		.name = "channels", .phase = PLAN_PREPARE,
		.text = "make the agent's socket and the status socket (and a hot line, if it is to be kept)",
		.why = "the child inherits its ends: they must exist before it does",
	},
	[STEP_NET] = {
		.name = "net", .phase = PLAN_PREPARE, .layers = LAYER_BIT(LAYER_NET),
		.text = "take a network namespace that was made ahead: loopback up, no other interface",
		.why = "the child is born in it; it belongs to the engine, so nobody inside can change it",
	},
	[STEP_LAYERS] = {
		.name = "layers", .phase = PLAN_PREPARE, .flags = ENGINE_FLAG_IMAGE,
		.text = "a tmpfs of the box's own as the upper layer, over the names that every box has, over "
		        "the named root, which nobody can write",
		.why = "owners of files are known to the engine, not to the box; the child gets a copy with its "
		       "mount namespace, and the engine lets go of it then",
	},
	[STEP_CLONE] = {
		.name = "clone", .phase = PLAN_PREPARE, .layers = NAMESPACES, .what = tell_clone,
		.why = "everything it inherits is there; from here there is something to kill when a step fails",
	},
	[STEP_INJECT] = {
		.name = "inject", .phase = PLAN_PREPARE, .flags = ENGINE_FLAG_INJECT,
		.text = "ask the zygote for a child in the box's pid namespace and groups; it waits for the agent",
		.why = "needs the namespace; it is made while the box is built",
	},
	[STEP_IDMAP] = {
		.name = "idmap", .phase = PLAN_PREPARE, .what = tell_idmap,
		.why = "only from outside, and only once; done while the child joins its groups, because it "
		       "can use its ids only when it is released",
	},
	[STEP_OOM_SCORE] = {
		.name = "oom-score", .phase = PLAN_PREPARE,
		.text = "raise oom_score_adj, so that the host kills boxes before anything else",
		.why = "before the release: /proc is read-only inside, so nothing there can lower it again",
	},
	[STEP_RELEASE] = {
		.name = "release", .phase = PLAN_PREPARE,
		.text = "let the child go on as soon as it has joined; hand its descriptors to the daemon",
		.why = "ids are mapped: nothing else has to be done from outside",
	},
	[STEP_DEATHSIG] = {
		.name = "deathsig", .phase = PLAN_JOIN,
		.text = "die with the engine",
		.why = "first act of the child: an engine that dies from now on leaves nothing behind",
	},
	[STEP_CGROUP_JOIN] = {
		.name = "cgroup-join", .phase = PLAN_JOIN, .when = has_v1,
		.text = "write itself into the v1 groups through descriptors it was given",
		.why = "a process can only join when it exists; from inside it costs microseconds, from "
		       "outside a grace period of the kernel",
	},
	[STEP_CGROUP_VERIFY] = {
		.name = "cgroup-verify", .phase = PLAN_JOIN, .when = has_cgroup,
		.text = "read back from /proc that it is in every group",
		.why = "needs to have joined; before anything else, so that it never acts unlimited",
	},
	[STEP_WAIT] = {
		.name = "wait", .phase = PLAN_JOIN,
		.text = "block until released",
		.why = "what follows needs the ids, which only the engine can map",
	},
	[STEP_BECOME] = {
		.name = "become", .phase = PLAN_BUILD,
		.text = "take the agent's ids; renew the death signal, check that the engine lives",
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
		.why = "needs the engine's /proc; its offsets freeze when the first process enters at exec",
	},
	[STEP_NESTING] = {
		.name = "nesting", .phase = PLAN_BUILD,
		.text = "allow no further user namespaces inside",
		.why = "needs to be root of the box's user namespace, and the engine's /proc: the box's own "
		       "is read-only",
	},
	[STEP_HOSTNAME] = {
		.name = "hostname", .phase = PLAN_BUILD,
		.text = "the constant host name millibox",
		.why = "needs to be root of the box's uts namespace",
	},
	[STEP_ROOT] = {
		.name = "root", .phase = PLAN_BUILD, .layers = LAYER_BIT(LAYER_MNT),
		.what = tell_root,
		.why = "needs ids: mounts belong to the box's user namespace",
	},
	[STEP_WRITABLE] = {
		.name = "writable", .phase = PLAN_BUILD, .what = tell_writable,
		.why = "mount points are in the tree, which must be attached first",
	},
	[STEP_PROC] = {
		.name = "proc", .phase = PLAN_BUILD,
		.text = "new /proc, read-only, other users' processes invisible",
		.why = "the kernel grants a new one only while the outer /proc is in sight, so before the "
		       "pivot; its mount point must be there",
	},
	[STEP_MASKS] = {
		.name = "masks", .phase = PLAN_BUILD,
		.text = "cover kernel-wide files of /proc with objects from outside the tree",
		.why = "needs /proc attached; the covers are out of reach after the pivot",
	},
	[STEP_PIVOT] = {
		.name = "pivot", .phase = PLAN_BUILD,
		.text = "pivot_root into the tree, detach the old root, check that /.. is /",
		.why = "when nothing outside is needed any more",
	},
	[STEP_RLIMITS] = {
		.name = "rlimits", .phase = PLAN_BUILD,
		.text = "no core dumps",
		.why = "late: small limits would break earlier steps",
	},
	[STEP_DESCRIPTORS] = {
		.name = "descriptors", .phase = PLAN_BUILD,
		.text = "0, 1, 2 on the box's /dev/null, 3 the agent's socket (4 its hot line, 5 a socket to "
		        "the zygote's child), all others closed",
		.why = "after the last step that needed one; /dev/null is the one inside",
	},
	[STEP_CAPS] = {
		.name = "caps", .phase = PLAN_BUILD,
		.text = "keep SETUID, SETGID, KILL, SETPCAP for the agent, drop all others for ever; "
		        "no_new_privs",
		.why = "every step above needed more",
	},
	[STEP_EXEC] = {
		.name = "exec", .phase = PLAN_BUILD,
		.text = "execute the agent from its sealed copy with an empty environment; it drops the "
		        "rest and filters system calls before any payload",
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

static int check_required(const struct plan_facts *facts, uint32_t flags, struct error *err)
{
	uint32_t missing = CONTROLLERS & ~facts->cgroup_layers;

	if ((flags & ENGINE_FLAG_IMAGE) && !facts->has_images)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "overlayfs cannot be mounted here: only the host's root is there");
	if (!(flags & ENGINE_FLAG_REQUIRE_CGROUP) || missing == 0)
		return 0;
	return error_set(err, ERR_UNAVAILABLE, 0, "no usable cgroup controller for%s%s%s",
	                 missing & LAYER_BIT(LAYER_CGROUP_MEMORY) ? " memory" : "",
	                 missing & LAYER_BIT(LAYER_CGROUP_PIDS) ? " pids" : "",
	                 missing & LAYER_BIT(LAYER_CGROUP_CPU) ? " cpu" : "");
}

int plan_make(const struct plan_facts *facts, const struct engine_limits *limits, uint32_t flags,
              struct plan *ret_plan, struct error *err)
{
	struct plan plan = {.limits = *limits, .flags = flags, .facts = *facts};

	if (check_required(facts, flags, err) < 0)
		return -1;
	for (enum plan_step step = 0; step < STEP_COUNT; step++) {
		if ((rows[step].when && !rows[step].when(facts)) || (rows[step].flags & ~flags))
			continue;
		plan.steps[plan.count++] = step;
		plan.layers |= rows[step].layers;
	}
	plan.layers |= facts->cgroup_layers & CONTROLLERS;
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
