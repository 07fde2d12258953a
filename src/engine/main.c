/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/sanitized.h"
#include "engine/internal.h"
#include "engine/probe.h"
#include "engine/request.h"
#include "engine/roots.h"
#include "engine/start.h"

#define DAY_MS (24 * 3600 * 1000ULL)
/* Since this one it has scopes: Linux 6.12. */
#define LANDLOCK_ABI_SCOPES 6

/*
 * millibox-engine: the only privileged program. Three modes: serve a daemon (the default), print
 * the plan of a box, print what the host can do. Serving starts in phases; each gives up what the
 * next must not have:
 *
 *   identify   find ids for boxes
 *   collect    open everything of the host that is ever needed: cgroups, agent, runners, lock
 *   separate   enter namespaces of its own; the process that was started becomes the guard
 *   leave      build the template and leave the host's tree
 *   harden     no core dumps, no new privileges, few capabilities, a filter
 *   serve
 */

#if SANITIZED
/*
 * The leak check at exit uses ptrace and hangs if another process traces the engine. The engine has
 * no environment in which to disable it.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

enum mode {
	MODE_SERVE,
	MODE_PLAN,
	MODE_PROBE,
};

struct arguments {
	enum mode mode;
	struct options options;
	struct engine_limits limits;
	uint32_t flags;
	int log_level;  /* enum log_level */
	int log_format; /* enum log_format */
};

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
	host->facts = (struct plan_facts){
		.cgroup = host->groups.kind,
		.cgroup_layers = host->groups.layers,
		.has_v1 = host->groups.has_v1,
		.has_time_ns = probe_has_time_ns(),
		.has_bridge = host->bridge >= 0,
		.host_network = options->host_network,
		.ids = host->ids.mode,
	};
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

	if (r < 0)
		return -1;
	if (template_build(&c->runners, c->addon, &host->ids, &c->bases, err) < 0 ||
	    template_add_resolvers(options->resolvers, options->resolvers_count, err) < 0 ||
	    template_enter(err) < 0)
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

static int fail_start(const struct options *options, const struct error *err)
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
	if (leave(options, host, c, &err) < 0 || privilege_harden(&err) < 0)
		return fail_start(options, &err);
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
	for (size_t i = 0; i < host->groups.count; i++)
		host->groups.import[i] = fd_close(host->groups.import[i]);
}

static int mode_serve(const struct options *options)
{
	struct host host = {
		.instance = {.dir = -1, .lock = -1},
		.handover = {.listener = -1},
		.guard = -1,
		.bridge = -1,
		.agent_exe = -1,
		.zygote_lib = -1,
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
		return error_is_set(&err) ? fail_start(options, &err)
		                          : run_engine(options, &host, &collected);
	if (engine < 0)
		status = fail_start(options, &err);
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

/* For a host with every feature: the output must not depend on the host. */
static int mode_plan(const struct arguments *args)
{
	const struct plan_facts facts = {
		.cgroup = ENGINE_CGROUP_V2,
		.cgroup_layers = LAYER_BIT(LAYER_CGROUP_MEMORY) | LAYER_BIT(LAYER_CGROUP_PIDS) |
	                         LAYER_BIT(LAYER_CGROUP_CPU) | LAYER_BIT(LAYER_CGROUP_IO),
		.has_time_ns = true,
		.has_images = true,
		.has_bridge = true,
		.host_network = args->flags & ENGINE_FLAG_HOST_NETWORK,
		.ids = ENGINE_IDS_RANGE,
	};
	struct error err = {0};
	struct plan plan;
	char what[256];

	if (request_limits_check(&args->limits, &err) < 0 ||
	    plan_make(&facts, &args->limits, args->flags, &plan, &err) < 0) {
		(void)fprintf(stderr, "millibox-engine: %s %s\n", err.field, err.msg);
		return 1;
	}
	for (size_t i = 0; i < plan.count; i++) {
		plan_step_what(&plan, plan.steps[i], what, sizeof(what));
		(void)printf("%zu\t%s\t%s\t%s\n", i + 1, plan_step_name(plan.steps[i]), what,
		             plan_step_why(plan.steps[i]));
	}
	return 0;
}

enum target {
	TO_MODE,
	TO_TEXT,
	TO_FD,
	TO_U64,
	TO_U32,
	TO_FLAG,
	TO_LEVEL,
	TO_FORMAT,
	/* Those that may be repeated. */
	TO_BASES,
	TO_RUNNERS,
	TO_ALLOW,
	TO_RESOLVERS,
};

#define AT(field)     offsetof(struct arguments, field)
#define AT_MAX(field) AT(options.maxima.field)

/* clang-format off */
static const struct item {
	const char *name;
	enum target target;
	size_t offset;
	uint32_t value;
	const char *help;
} items[] = {
	{"serve",            TO_MODE,   0,                           MODE_SERVE,                 "serve the daemon at the socket --fd (default)"},
	{"plan",             TO_MODE,   0,                           MODE_PLAN,                  "print the steps that make a box"},
	{"probe",            TO_MODE,   0,                           MODE_PROBE,                 "print what this host can do"},
	{"fd",               TO_FD,     AT(options.fd),              0,                          "descriptor of the socket"},
	{"agent",            TO_TEXT,   AT(options.agent),           0,                          "program for PID 1"},
	{"runners",          TO_RUNNERS, 0,                          0,                          "directory of runners; may be repeated"},
	{"addon",            TO_TEXT,   AT(options.addon),           0,                          "native part of runners; without it some languages do not work"},
	{"roots",            TO_BASES,  0,                           0,                          "directory of roots for boxes; may be repeated"},
	{"zygote",           TO_TEXT,   AT(options.zygote),          0,                          "zygote library; without it there are no zygotes"},
	{"zygote-forks",     TO_U32,    AT(options.zygote_forks),    0,                          "children after which a zygote is replaced"},
	{"zygote-memory",    TO_U64,    AT(options.zygote_memory),   0,                          "bytes above which a zygote is replaced"},
	{"import-memory",    TO_U64,    AT(options.import_memory),   0,                          "bytes of all imports together; 0: imports have no cgroup"},
	{"zygote-age",       TO_U64,    AT(options.zygote_age_ms),   0,                          "milliseconds after which a zygote is replaced"},
	{"bridge",           TO_TEXT,   AT(options.bridge),          0,                          "program millibox-bridge; without it boxes have no interface"},
	{"bridge-subnet",    TO_TEXT,   AT(options.bridge_subnet),   0,                          "addresses of boxes with an interface"},
	{"bridge-allow",     TO_ALLOW,  0,                           0,                          "addresses that are not public and that boxes may reach; may be repeated"},
	{"host-network",     TO_U32,    AT(options.host_network),    0,                          "1: make only boxes that share the network of the host"},
	{"daemon-uid",       TO_U32,    AT(options.daemon_uid),      0,                          "owner of the files of images; 0: the id that this engine reserves"},
	{"resolver",         TO_RESOLVERS, 0,                        0,                          "name server of boxes with network bridge or host; may be repeated"},
	{"runtime-dir",      TO_TEXT,   AT(options.runtime_dir),     0,                          "directory for locks"},
	{"uid-base",         TO_U64,    AT(options.uid_base),        0,                          "first host id"},
	{"log-level",        TO_LEVEL,  AT(log_level),               0,                          "error, warn, info or debug"},
	{"log-format",       TO_FORMAT, AT(log_format),              0,                          "text or json"},
	{"max-memory",       TO_U64,    AT_MAX(memory_bytes),        0,                          "bytes a box may be given"},
	{"max-disk",         TO_U64,    AT_MAX(workspace_bytes),     0,                          "bytes a workspace may be given"},
	{"max-pids",         TO_U32,    AT_MAX(pids),                0,                          "processes a box may be given"},
	{"max-cpu",          TO_U32,    AT_MAX(cpu_millicores),      0,                          "thousandths of a core, 0 for all cores"},
	{"tenant-io",        TO_U64,    AT(options.io_bytes),        0,                          "bytes per second that a tenant may read, and write, on a disk; 0: no limit"},
	{"tenant-io-ops",    TO_U64,    AT(options.io_ops),          0,                          "the same in operations"},
	{"handover",         TO_TEXT,   AT(options.handover),        0,                          "socket where the next daemon takes over kept boxes"},
	{"lease",            TO_U32,    AT(options.lease_ms),        0,                          "milliseconds that boxes outlive their daemon"},
	{"identity",         TO_U64,    AT(options.identity),        0,                          "number reported to the next daemon"},
	{"memory",           TO_U64,    AT(limits.memory_bytes),     0,                          "bytes"},
	{"workspace",        TO_U64,    AT(limits.workspace_bytes),  0,                          "bytes"},
	{"tmp",              TO_U64,    AT(limits.tmp_bytes),        0,                          "bytes"},
	{"shm",              TO_U64,    AT(limits.shm_bytes),        0,                          "bytes"},
	{"workspace-inodes", TO_U32,    AT(limits.workspace_inodes), 0,                          "number"},
	{"tmp-inodes",       TO_U32,    AT(limits.tmp_inodes),       0,                          "number"},
	{"pids",             TO_U32,    AT(limits.pids),             0,                          "number"},
	{"cpu",              TO_U32,    AT(limits.cpu_millicores),   0,                          "thousandths of a core"},
	{"require-cgroup",   TO_FLAG,   0,                           ENGINE_FLAG_REQUIRE_CGROUP, "fail without controllers"},
	{"exec-tmp",         TO_FLAG,   0,                           ENGINE_FLAG_EXEC_TMP,       "programs in /tmp may run"},
	{"keep",             TO_FLAG,   0,                           ENGINE_FLAG_KEEP,           "outlives its daemon"},
	{"egress",           TO_FLAG,   0,                           ENGINE_FLAG_EGRESS,         "a socket for the proxy on loopback"},
	{"gateway",          TO_FLAG,   0,                           ENGINE_FLAG_GATEWAY,        "a Unix socket for tools of MCP servers"},
	{"with-host-network", TO_FLAG,  0,                           ENGINE_FLAG_HOST_NETWORK,   "in the network of the host"},
	{"with-bridge",      TO_FLAG,   0,                           ENGINE_FLAG_BRIDGE,         "an interface, connected by millibox-bridge"},
	{"image",            TO_FLAG,   0,                           ENGINE_FLAG_IMAGE,          "on a root of --roots instead of the host's"},
	{"packages",         TO_FLAG,   0,                           ENGINE_FLAG_PACKAGES,       "with a layer of packages"},
	{"help",             TO_MODE,   0,                           0,                          "this text"},
};
/* clang-format on */

static bool takes_value(const struct item *item)
{
	return item->target != TO_MODE && item->target != TO_FLAG;
}

static int store_number(struct arguments *args, const struct item *item, const char *text)
{
	void *at = (char *)args + item->offset;
	uint64_t value;
	uint32_t narrow;

	if (parse_u64(text, &value) < 0)
		return -EINVAL;
	if (item->target == TO_U64) {
		memcpy(at, &value, sizeof(value));
		return 0;
	}
	if (value > (item->target == TO_FD ? INT32_MAX : UINT32_MAX))
		return -ERANGE;
	narrow = (uint32_t)value;
	memcpy(at, &narrow, sizeof(narrow));
	return 0;
}

static int store_name(struct arguments *args, const struct item *item, const char *text)
{
	int value = item->target == TO_LEVEL ? log_level_parse(text) : log_format_parse(text);

	if (value < 0)
		return value;
	memcpy((char *)args + item->offset, &value, sizeof(value));
	return 0;
}

static int store_each(const char **list, size_t *count, size_t most, const char *text)
{
	if (*count == most)
		return -E2BIG;
	list[(*count)++] = text;
	return 0;
}

/* Options that may be repeated. */
static int store_listed(struct options *o, enum target target, const char *text)
{
	if (target == TO_BASES)
		return store_each(o->bases, &o->bases_count, ENGINE_BASES_MAX, text);
	if (target == TO_RUNNERS)
		return store_each(o->runners, &o->runners_count, ENGINE_RUNNERS_MAX, text);
	if (target == TO_ALLOW)
		return store_each(o->bridge_allow, &o->bridge_allow_count, ENGINE_RANGES_MAX, text);
	return store_each(o->resolvers, &o->resolvers_count, ENGINE_RANGES_MAX, text);
}

static int store_option(struct arguments *args, const struct item *item, const char *text)
{
	if (item->target == TO_MODE)
		args->mode = (enum mode)item->value;
	else if (item->target == TO_FLAG)
		args->flags |= item->value;
	else if (item->target == TO_TEXT)
		memcpy((char *)args + item->offset, &text, sizeof(text));
	else if (item->target >= TO_BASES)
		return store_listed(&args->options, item->target, text);
	else if (item->target == TO_LEVEL || item->target == TO_FORMAT)
		return store_name(args, item, text);
	else
		return store_number(args, item, text);
	return 0;
}

static int usage(FILE *to)
{
	(void)fprintf(to, "usage: millibox-engine [--serve | --plan | --probe] [options]\n"
	                  "The privileged helper of milliboxd, which starts it.\n");
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		(void)fprintf(to, "  --%s%s\t%s\n", items[i].name,
		              takes_value(&items[i]) ? " X" : "", items[i].help);
	return to == stdout ? 0 : 2;
}

/* Return: -1 to continue, or an exit status. */
static int parse_arguments(int argc, char **argv, struct arguments *args)
{
	struct option options[ARRAY_SIZE(items) + 1] = {0};
	int index, c;

	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		options[i] = (struct option){
			.name = items[i].name,
			.has_arg = takes_value(&items[i]) ? required_argument : no_argument,
		};
	while ((c = getopt_long(argc, argv, "", options, &index)) != -1) {
		if (c != 0)
			return usage(stderr);
		if (strcmp(items[index].name, "help") == 0)
			return usage(stdout);
		if (store_option(args, &items[index], optarg) < 0) {
			(void)fprintf(stderr, "millibox-engine: --%s: bad value '%s'\n",
			              items[index].name, optarg);
			return 2;
		}
	}
	return optind < argc ? usage(stderr) : -1;
}

int main(int argc, char **argv)
{
	struct arguments args = {
		.options = {.fd = ENGINE_SOCKET_FD,
	                    .maxima = request_limits_most(),
	                    .zygote_forks = UINT32_MAX,
	                    .zygote_memory = UINT64_MAX,
	                    .zygote_age_ms = DAY_MS},
		.limits = request_limits_default(),
		.log_level = LOG_LEVEL_INFO,
		.log_format = LOG_FORMAT_TEXT,
	};
	int r = parse_arguments(argc, argv, &args);

	log_setup("millibox-engine", (enum log_level)args.log_level,
	          (enum log_format)args.log_format);
	if (r >= 0)
		return r;
	if (args.mode == MODE_PLAN)
		return mode_plan(&args);
	if (args.mode == MODE_PROBE)
		return probe_print(&args.options);
	args.options.log_level = log_level_name((enum log_level)args.log_level);
	args.options.log_format = log_format_name((enum log_format)args.log_format);
	if (!args.options.agent || !args.options.runners_count || !args.options.runtime_dir)
		return usage(stderr);
	return mode_serve(&args.options);
}
