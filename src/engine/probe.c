/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/probe.h"

#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire/layer.h"

/* The daemon's default; here only whether it is mapped matters. */
#define PROBE_UID_BASE 0x70000000ULL

uint32_t probe_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (uint32_t)abi;
}

bool probe_has_time_ns(void)
{
	return access("/proc/self/timens_offsets", F_OK) == 0;
}

static void print_line(const char *name, enum probe_state state, const char *value)
{
	static const char *const states[PROBE_STATE_COUNT] = {
		[PROBE_OK] = "ok",
		[PROBE_MISSING] = "missing",
		[PROBE_INFO] = "info",
	};

	(void)printf("%s\t%s\t%s\n", name, states[state], value);
}

static void print_layer(enum wire_layer layer, bool there, const char *value)
{
	print_line(layer_name(layer), there ? PROBE_OK : PROBE_MISSING, value);
}

static void print_namespaces(const struct trial *trial)
{
	for (unsigned layer = LAYER_USER; layer <= LAYER_TIME; layer++) {
		bool made = trial->namespaces & LAYER_BIT(layer);

		print_layer((enum wire_layer)layer, made,
		            made                ? "works"
		            : trial->entered    ? "cannot be made"
		            : trial->err.msg[0] ? trial->err.msg
		                                : "cannot be tried");
	}
}

static void print_ids(const struct trial *trial)
{
	static const char *const texts[ENGINE_IDS_COUNT] = {
		[ENGINE_IDS_RANGE] = "root: separate ids for every box",
		[ENGINE_IDS_SUBID] = "subordinate ids of the user",
		[ENGINE_IDS_SINGLE] = "no subordinate ids in /etc/subuid and /etc/subgid",
	};
	bool there = trial->entered && trial->ids != ENGINE_IDS_SINGLE;

	print_layer(LAYER_UID_RANGE, there, trial->entered ? texts[trial->ids] : "cannot be tried");
}

static void print_trial(const struct trial *trial)
{
	print_namespaces(trial);
	print_ids(trial);
	print_line("procfs", trial->proc ? PROBE_OK : PROBE_MISSING,
	           trial->proc ? "a new /proc can be mounted in a box"
	                       : "something is mounted over the outer /proc, or it is hidden");
	print_line("tmpfs_inodes", trial->inodes ? PROBE_OK : PROBE_MISSING,
	           trial->inodes ? "nr_inodes" : "no inode limit");
	print_line("mount_api", trial->mounts ? PROBE_OK : PROBE_MISSING,
	           trial->mounts ? "open_tree, move_mount, mount_setattr"
	                         : "the kernel is too old");
}

static void print_agent_layers(void)
{
	uint32_t abi = probe_landlock_abi(), kill = SECCOMP_RET_KILL_PROCESS;
	bool seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &kill) == 0;
	struct rlimit files = {0};
	char value[PROBE_VALUE_MAX];

	(void)getrlimit(RLIMIT_NOFILE, &files);
	print_layer(LAYER_CAPS, true, "supported");
	print_layer(LAYER_NO_NEW_PRIVS, true, "supported");
	print_layer(LAYER_SECCOMP, seccomp, seccomp ? "filters work" : "no filters");
	(void)snprintf(value, sizeof(value), "ABI %u", abi);
	print_layer(LAYER_LANDLOCK, abi > 0, value);
	(void)snprintf(value, sizeof(value), "hard limit of open files %llu",
	               (unsigned long long)files.rlim_max);
	print_layer(LAYER_RLIMITS, true, value);
}

static void print_cgroups(void)
{
	static const struct {
		enum wire_layer layer;
		enum cgroup_kind kind;
	} rows[] = {
		{LAYER_CGROUP_MEMORY, CGROUP_MEMORY},
		{LAYER_CGROUP_PIDS, CGROUP_PIDS},
		{LAYER_CGROUP_CPU, CGROUP_CPU},
		{LAYER_CGROUP_IO, CGROUP_IO},
	};
	struct cgroup_report reports[CGROUP_KIND_COUNT];

	cgroups_probe(geteuid() == 0, reports);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		print_layer(rows[i].layer, reports[rows[i].kind].usable,
		            reports[rows[i].kind].text);
	print_line("cgroup.kill", reports[CGROUP_UNIFIED].usable ? PROBE_OK : PROBE_INFO,
	           reports[CGROUP_UNIFIED].text);
}

int probe_print(const struct options *options)
{
	struct options used = *options;
	struct trial trial;
	char value[PROBE_VALUE_MAX];

	if (used.uid_base == 0)
		used.uid_base = PROBE_UID_BASE;
	trial_run(&used, &trial);
	print_trial(&trial);
	print_cgroups();
	print_agent_layers();
	for (const struct probe_fact *fact = probe_facts; fact->name; fact++) {
		enum probe_state state = probe_fact_read(fact, value, sizeof(value));

		print_line(fact->name, state, value);
	}
	return ferror(stdout) || fflush(stdout) != 0;
}
