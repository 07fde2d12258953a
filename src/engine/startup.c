/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/startup.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/probe.h"
#include "engine/roots.h"
#include "engine/runtime.h"
#include "engine/start.h"

/*
 * Serving starts in phases; each gives up what the next must not have:
 *
 *   identify   find ids for boxes
 *   collect    open everything of the host that is ever needed: cgroups, agent, runners, lock
 *   separate   enter namespaces of its own; the process that was started becomes the guard
 *   leave      build the template and leave the host's tree
 *   harden     no core dumps, no new privileges, few capabilities, a filter
 *   serve
 */

/* Since this one it has scopes: Linux 6.12. */
#define LANDLOCK_ABI_SCOPES 6

static int identify(const struct options *options, struct privilege *ret_privilege,
                    struct error *err)
{
	/* SIGPIPE: send() reports a closed socket. The others: a signal to the process group is
	 * meant for the daemon, which lets running work finish; the engine ends after it. */
	static const int ignored[] = {SIGPIPE, SIGTERM, SIGINT, SIGHUP};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	(void)umask(022);
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		(void)sigaction(ignored[i], &ignore, NULL);
	return privilege_find(options, ret_privilege, err);
}

/* The daemon enforces these too, but it talks to untrusted clients. */
static struct engine_limits complete_maxima(struct engine_limits maxima)
{
	long cores = sysconf(_SC_NPROCESSORS_CONF);

	/* Both are tmpfs, charged to the box's memory. */
	maxima.tmp_bytes = maxima.memory_bytes;
	maxima.shm_bytes = maxima.memory_bytes;
	if (maxima.cpu_millicores == 0)
		maxima.cpu_millicores = cores > 0 ? (uint32_t)cores * 1000 : UINT32_MAX;
	return maxima;
}

static int load_zygote(const struct options *options, struct host *host, struct error *err)
{
	if (!options->zygote)
		return 0;
	host->zygote_forks = options->zygote_forks;
	host->zygote_memory = options->zygote_memory;
	host->zygote_age_us = options->zygote_age_ms * USEC_PER_MS;
	host->zygote_lib = template_load(options->zygote, err);
	return host->zygote_lib < 0 ? -1 : 0;
}

/* What the phases after collect need, besides struct host. */
struct collected {
	struct bases bases;
	struct runner_dirs runners;
	int addon; /* sealed memfd; owned; -1: none */
	int group; /* of the engine itself, in the v2 tree; owned; -1: stays where it is */
};

static int open_paths(const struct options *options, struct host *host, struct collected *ret,
                      struct error *err)
{
	if (host->runtime && host->runtime->open(options, host, err) < 0)
		return -1;
	host->agent_exe = template_load(options->agent, err);
	if (host->agent_exe < 0 || load_zygote(options, host, err) < 0)
		return -1;
	for (size_t i = 0; i < options->runners_count; i++) {
		int fd = fd_open(options->runners[i], O_RDONLY | O_DIRECTORY, 0);

		if (fd < 0)
			return error_set(err, ERR_UNAVAILABLE, -fd, "runners '%s'",
			                 options->runners[i]);
		ret->runners.fds[ret->runners.count++] = fd;
	}
	if (options->addon && (ret->addon = template_load(options->addon, err)) < 0)
		return -1;
	host->bases_count = options->bases_count;
	/* Only root can map the ids of files. */
	return host->ids.mode == ENGINE_IDS_RANGE ? namespaces_stage_bases(options, &host->ids, err)
	                                          : 0;
}

/* Without sysfs there are none, and the layer is missing. */
static void find_disks(const struct options *options, struct io_limits *ret_io)
{
	cleanup_close int block = fd_open("/sys/block", O_RDONLY | O_DIRECTORY, 0);

	*ret_io = (struct io_limits){.bytes = options->io_bytes, .ops = options->io_ops};
	if (block >= 0)
		io_limits_find_disks(ret_io, block);
}

/*
 * Abstract Unix sockets belong to a network namespace. Only Landlock keeps programs from those of
 * the host. And with the id of the user who started the engine a program would be that user for all
 * services of the host that ask the kernel who connects.
 */
static int check_host_network(const struct host *host, struct error *err)
{
	if (host->ids.mode == ENGINE_IDS_SINGLE)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "network host needs root or subordinate ids (/etc/subuid)");
	if (host->landlock_abi < LANDLOCK_ABI_SCOPES)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "network host needs Landlock of Linux 6.12: without it programs "
		                 "reach abstract Unix sockets of the host");
	return 0;
}

static struct plan_facts find_facts(const struct options *options, const struct host *host)
{
	const struct runtime *runtime = host->runtime;
	bool is_single = host->ids.mode == ENGINE_IDS_SINGLE;

	return (struct plan_facts){
		.cgroup = host->groups.kind,
		.cgroup_layers = host->groups.layers,
		.has_v1 = host->groups.has_v1,
		.has_time_ns = probe_has_time_ns() && (!runtime || runtime->has_time_ns),
		.has_bridge = host->bridge >= 0,
		.host_network = options->host_network,
		.ids = host->ids.mode,
		.has_runtime = runtime != NULL,
		/* With a single id every runtime does: see ids_inside(). */
		.nests = runtime && (runtime->nests || is_single),
		.features = runtime ? runtime->features : 0,
	};
}

static int collect(const struct options *options, const struct privilege *privilege,
                   struct host *host, struct collected *ret, struct error *err)
{
	find_disks(options, &host->io);
	if (cgroups_open(privilege->mode == ENGINE_IDS_RANGE, io_limits_are_set(&host->io),
	                 &host->groups, err) < 0 ||
	    instance_claim(options->runtime_dir, privilege, &host->groups, &host->instance, err) <
	            0)
		return -1;
	cgroups_sweep_others(&host->groups);
	cgroups_enable(&host->groups);
	if (options->import_memory > 0 && groups_make_import(host, options->import_memory, err) < 0)
		return -1;
	host->ids = ids_of_instance(privilege, host->instance.number);
	if (options->daemon_uid && host->ids.daemon_uid)
		host->ids.daemon_uid = options->daemon_uid;
	if (host->ids.mode == ENGINE_IDS_RANGE) {
		int r = cgroups_delegate(&host->groups, host->ids.host_root, &ret->group);

		if (r < 0)
			return error_set(err, ERR_UNAVAILABLE, -r, "hand cgroups to the engine");
	}
	if (handover_open(options, &host->instance, &host->handover, err) < 0)
		return -1;
	host->identity = options->identity;
	host->maxima = complete_maxima(options->maxima);
	privilege_raise_limits();
	host->slots = ids_slots(&host->ids);
	if (host->slots > privilege_boxes_max())
		host->slots = privilege_boxes_max();
	if (bridge_start(options, host, err) < 0 || open_paths(options, host, ret, err) < 0)
		return -1;
	proc_masks_find(host);
	host->landlock_abi = probe_landlock_abi();
	if (options->host_network && check_host_network(host, err) < 0)
		return -1;
	host->facts = find_facts(options, host);
	return 0;
}

static void release_collected(struct collected *c)
{
	bases_close(&c->bases);
	while (c->runners.count > 0)
		(void)fd_close(c->runners.fds[--c->runners.count]);
	c->addon = fd_close(c->addon);
	c->group = fd_close(c->group);
}

static int leave(const struct options *options, struct host *host, struct collected *c,
                 struct error *err)
{
	int r = host->ids.mode == ENGINE_IDS_RANGE
	                ? bases_open_staged(options->bases_count, &c->bases, err)
	                : bases_open(options->bases, options->bases_count, &c->bases, err);
	const struct template_parts parts = {
		.runners = &c->runners,
		.addon = c->addon,
		.agent = host->runtime ? host->agent_exe : -1,
	};

	if (r < 0)
		return -1;
	if (template_build(&parts, &host->ids, &c->bases, err) < 0 ||
	    template_add_resolvers(options->resolvers, options->resolvers_count, err) < 0 ||
	    (host->runtime && host->runtime->build(host, err) < 0) || template_enter(err) < 0)
		return error_wrap(err, "template");
	release_collected(c);
	host->facts.has_images = roots_work();
	return 0;
}

static void send_start_error(int sock, const struct error *err)
{
	struct engine_request req = {0};
	struct engine_reply reply;
	ssize_t n = fd_recv(sock, &req, sizeof(req), NULL, NULL);

	memset(&reply, 0, sizeof(reply));
	reply.op = ENGINE_FAILED;
	reply.seq = n == sizeof(req) ? req.seq : 0;
	reply.error = *err;
	if (n > 0)
		(void)!fd_send(sock, &reply, sizeof(reply), NULL, 0);
}

int startup_fail(const struct options *options, const struct error *err)
{
	log_error("engine", err);
	send_start_error(options->fd, err);
	return 1;
}

/* Directories of the host, from which all of it could be reached. Groups are made beneath
 * trees[].dir, whose parent others cannot search. */
static void close_host_dirs(struct host *host)
{
	for (size_t i = 0; i < host->groups.count; i++) {
		host->groups.trees[i].parent = fd_close(host->groups.trees[i].parent);
		host->groups.trees[i].home = fd_close(host->groups.trees[i].home);
	}
	host->instance.dir = fd_close(host->instance.dir);
}

/* In the engine's own namespaces. Its names on the host are the guard's to remove. */
static int run_engine(const struct options *options, struct host *host, struct collected *c)
{
	struct error err = {0};

	close_host_dirs(host);
	if (leave(options, host, c, &err) < 0 || privilege_harden(host, &err) < 0 ||
	    (host->runtime && host->runtime->check(host, &err) < 0))
		return startup_fail(options, &err);
	log_debug("instance %u, %u slots", host->instance.number, host->slots);
	if (serve(host, options->fd, &err) == 0)
		return 0;
	log_error("engine", &err);
	return 1;
}

/* What only the engine uses: a socket that the guard held would seem to have a listener. */
static void close_engine_fds(const struct options *options, struct host *host)
{
	(void)fd_close(options->fd);
	host->handover.listener = fd_close(host->handover.listener);
	host->bridge = fd_close(host->bridge);
	host->agent_exe = fd_close(host->agent_exe);
	host->zygote_lib = fd_close(host->zygote_lib);
	host->runtime_exe = fd_close(host->runtime_exe);
	for (size_t i = 0; i < host->groups.count; i++)
		host->groups.import[i] = fd_close(host->groups.import[i]);
}

int startup_serve(const struct options *options)
{
	struct host host = {
		.instance = {.dir = -1, .lock = -1},
		.handover = {.listener = -1},
		.guard = -1,
		.bridge = -1,
		.agent_exe = -1,
		.zygote_lib = -1,
		.runtime = options->runtime,
		.runtime_exe = -1,
	};
	struct collected collected = {.addon = -1, .group = -1};
	struct privilege privilege;
	struct error err = {0};
	int status = 1;
	pid_t engine = -1;

	if (identify(options, &privilege, &err) == 0 &&
	    collect(options, &privilege, &host, &collected, &err) == 0)
		engine = namespaces_enter(&host.ids, collected.group, &host.guard, &err);
	if (engine == 0)
		return error_is_set(&err) ? startup_fail(options, &err)
		                          : run_engine(options, &host, &collected);
	if (engine < 0)
		status = startup_fail(options, &err);
	release_collected(&collected);
	close_engine_fds(options, &host);
	if (engine > 0)
		status = guard_engine(&host, engine);
	/* It has seen the end of the engine, and removes what it made on the host. */
	if (host.bridge_pid > 0)
		(void)wait_for_program(host.bridge_pid);
	handover_remove(&host.handover, &host.instance);
	/* A killed engine leaves groups; its processes die with its pid namespace. */
	cgroups_sweep_ended(&host.groups);
	cgroups_close(&host.groups);
	instance_release(&host.instance);
	return status;
}
