/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "engine/request.h"

#define DAY_MS (24 * 3600 * 1000ULL)

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

/* Only a program that starts runtimes has it. */
#define OF_RUNTIMES 1

#define AT(field)     offsetof(struct arguments, field)
#define AT_MAX(field) AT(options.maxima.field)

/* clang-format off */
static const struct item {
	const char *name;
	enum target target;
	size_t offset;
	uint32_t value; /* TO_TEXT: 0 or OF_RUNTIMES */
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
	{"runtime",          TO_TEXT,   AT(options.runtime_name),    OF_RUNTIMES,                "what makes boxes: see docs/engines.md"},
	{"binary",           TO_TEXT,   AT(options.binary),          OF_RUNTIMES,                "the runtime's program; default: where its package installs it"},
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
		args->mode = (enum arguments_mode)item->value;
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

static bool is_of(const struct arguments_program *program, const struct item *item)
{
	return item->target != TO_TEXT || item->value != OF_RUNTIMES || program->has_runtimes;
}

int arguments_usage(const struct arguments_program *program, FILE *to)
{
	(void)fprintf(to, "usage: %s %s[options]\n%s\n", program->name, program->modes,
	              program->intro);
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		if (is_of(program, &items[i]))
			(void)fprintf(to, "  --%s%s\t%s\n", items[i].name,
			              takes_value(&items[i]) ? " X" : "", items[i].help);
	return to == stdout ? 0 : 2;
}

static struct arguments arguments_default(void)
{
	return (struct arguments){
		.options = {.fd = ENGINE_SOCKET_FD,
	                    .maxima = request_limits_most(),
	                    .zygote_forks = UINT32_MAX,
	                    .zygote_memory = UINT64_MAX,
	                    .zygote_age_ms = DAY_MS},
		.limits = request_limits_default(),
		.log_level = LOG_LEVEL_INFO,
		.log_format = LOG_FORMAT_TEXT,
	};
}

int arguments_parse(const struct arguments_program *program, int argc, char **argv,
                    struct arguments *ret)
{
	struct option options[ARRAY_SIZE(items) + 1] = {0};
	int index, c;

	*ret = arguments_default();
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		options[i] = (struct option){
			.name = items[i].name,
			.has_arg = takes_value(&items[i]) ? required_argument : no_argument,
		};
	while ((c = getopt_long(argc, argv, "", options, &index)) != -1) {
		if (c != 0 || !is_of(program, &items[index]))
			return arguments_usage(program, stderr);
		if (str_equal(items[index].name, "help"))
			return arguments_usage(program, stdout);
		if (store_option(ret, &items[index], optarg) < 0) {
			(void)fprintf(stderr, "%s: --%s: bad value '%s'\n", program->name,
			              items[index].name, optarg);
			return 2;
		}
	}
	ret->options.log_level = log_level_name((enum log_level)ret->log_level);
	ret->options.log_format = log_format_name((enum log_format)ret->log_format);
	return optind < argc ? arguments_usage(program, stderr) : -1;
}

bool arguments_can_serve(const struct arguments *args)
{
	const struct options *o = &args->options;

	return o->agent && o->runners_count > 0 && o->runtime_dir;
}
