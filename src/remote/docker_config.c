/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/docker_config.h"

#include <assert.h>
#include <stdio.h>

#include "base/size.h"
#include "remote/docker.h"
#include "wire/container.h"

/*
 * Theory of operation. All processes of a box have one id, which no other box has and which has no
 * capability from its first instruction on. An agent with an id of its own would have to begin as
 * root with CAP_SETUID: without a user namespace, which Docker has only if its operator wants one,
 * that is root of the host. What then keeps the payload off the agent is that PID 1 cannot be
 * traced or signalled, the payload's filter, and Landlock.
 *
 * An id for each box, not one for all: the kernel counts processes, keys and message queues by id.
 */

#define RUN_BYTES  (8 * MIB)
#define RUN_INODES 256

struct area {
	const char *path, *flags;
	uint64_t bytes;
	uint32_t inodes;
	unsigned mode;
};

static void add_area(json_t *areas, const struct area *area, uint32_t owner)
{
	char options[160];

	(void)snprintf(options, sizeof(options),
	               "rw,nosuid,nodev,%s,size=%llu,nr_inodes=%u,mode=%o,uid=%u,gid=%u",
	               area->flags, (unsigned long long)area->bytes, area->inodes, area->mode,
	               owner, owner);
	(void)json_object_set_new(areas, area->path, json_string(options));
}

static json_t *areas_of(const struct docker_plan *plan)
{
	const struct engine_limits *l = plan->limits;
	const char *tmp = plan->flags & ENGINE_FLAG_EXEC_TMP ? "exec" : "noexec";
	/* The workspace allows exec: compiled languages run their output there. */
	const struct area rows[] = {
		{"/workspace", "exec", l->workspace_bytes, l->workspace_inodes, 0755},
		{"/tmp", tmp, l->tmp_bytes, l->tmp_inodes, 01777},
		{"/run/millibox", "noexec", RUN_BYTES, RUN_INODES, 0755},
	};
	json_t *areas = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		add_area(areas, &rows[i], plan->uid);
	return areas;
}

/* Read-only, and without what is mounted beneath, which would not be. */
static void add_mount(json_t *mounts, const char *source, const char *target)
{
	json_t *mount = json_pack("{s:s, s:s, s:s, s:b, s:{s:b, s:s}}", "Type", "bind", "Source",
	                          source, "Target", target, "ReadOnly", 1, "BindOptions",
	                          "NonRecursive", 1, "Propagation", "rprivate");

	assert(mount);
	(void)json_array_append_new(mounts, mount);
}

static json_t *mounts_of(const struct docker_plan *plan)
{
	json_t *mounts = json_array();

	for (size_t i = 0; i < plan->more_mounts_count; i++)
		add_mount(mounts, plan->more_mounts[i].source, plan->more_mounts[i].target);
	for (size_t i = 0; i < plan->mounts_count; i++)
		add_mount(mounts, plan->mounts[i].source, plan->mounts[i].target);
	if (plan->packages)
		add_mount(mounts, plan->packages, REMOTE_PACKAGES);
	return mounts;
}

/* The server refuses more CPUs than it has, which are no limit. */
static json_int_t nano_cpus(const struct docker_plan *plan)
{
	uint64_t most = plan->cpus * 1000ULL;
	uint64_t wanted = plan->limits->cpu_millicores;
	uint64_t nano = (wanted < most ? wanted : most) * 1000000;

	return (json_int_t)nano;
}

static json_t *host_config(const struct docker_plan *plan)
{
	const struct engine_limits *l = plan->limits;
	uint64_t bytes = l->memory_bytes + plan->own_memory;
	json_int_t memory = (json_int_t)bytes;
	json_t *config = json_pack(
		"{s:s, s:[s], s:[s], s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:i}", "NetworkMode",
		"none", "CapDrop", "ALL", "SecurityOpt", "no-new-privileges", "Privileged", 0,
		"ReadonlyRootfs", 1, "Init", 0, "PidsLimit", (json_int_t)l->pids + plan->own_pids,
		"Memory", memory, "MemorySwap", memory, "NanoCpus", nano_cpus(plan), "ShmSize",
		(json_int_t)l->shm_bytes, "OomScoreAdj", 500);

	assert(config);
	(void)json_object_set_new(config, "Tmpfs", areas_of(plan));
	(void)json_object_set_new(config, "Mounts", mounts_of(plan));
	(void)json_object_set_new(config, "IpcMode", json_string("private"));
	(void)json_object_set_new(config, "CgroupnsMode", json_string("private"));
	/* Output of programs is nobody's log, and could fill the disk of the server. */
	(void)json_object_set_new(config, "LogConfig", json_pack("{s:s}", "Type", "none"));
	/* A program does not run twice, and a box that nobody waits for leaves nothing. */
	(void)json_object_set_new(config, "RestartPolicy", json_pack("{s:s}", "Name", "no"));
	(void)json_object_set_new(config, "AutoRemove", json_true());
	if (plan->runtime)
		(void)json_object_set_new(config, "Runtime", json_string(plan->runtime));
	return config;
}

static json_t *command_of(const struct docker_plan *plan)
{
	char lacks[32];
	json_t *words;

	(void)snprintf(lacks, sizeof(lacks), CONTAINER_LACKS "%u", plan->lacks);
	words = json_pack("[s, s, s]", REMOTE_AGENT, CONTAINER_STDIO_WORD, lacks);
	if (!plan->is_host)
		(void)json_array_append_new(words, json_string(CONTAINER_ROOT_WORD));
	return words;
}

json_t *docker_config(const struct docker_plan *plan)
{
	char user[24];
	json_t *config;

	(void)snprintf(user, sizeof(user), "%u:%u", plan->uid, plan->uid);
	config = json_pack("{s:s, s:s, s:s, s:s, s:o, s:[], s:[], s:{s:[s]}, s:{s:s, s:s}}",
	                   "Image", plan->image, "User", user, "Hostname", "millibox", "WorkingDir",
	                   "/", "Entrypoint", command_of(plan), "Cmd", "Env", "Healthcheck", "Test",
	                   "NONE", "Labels", DOCKER_LABEL, plan->instance, DOCKER_LABEL_BOX,
	                   plan->box_id);
	assert(config);
	/* The stream is the agent's input and output. When its client is gone, its input ends, and
	 * so does the box. */
	for (size_t i = 0; i < 5; i++) {
		static const char *const names[] = {"AttachStdin", "AttachStdout", "AttachStderr",
		                                    "OpenStdin", "StdinOnce"};

		(void)json_object_set_new(config, names[i], json_true());
	}
	(void)json_object_set_new(config, "Tty", json_false());
	(void)json_object_set_new(config, "NetworkDisabled", json_true());
	(void)json_object_set_new(config, "HostConfig", host_config(plan));
	return config;
}
