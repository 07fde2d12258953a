/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/sanitized.h"
#include "base/str.h"
#include "engine/request.h"
#include "remote/remote.h"

/* Started by milliboxd, with the words that every engine gets; those that no box of a server can
 * have are accepted and mean nothing here. */

struct arguments {
	struct remote_options options;
	int log_level, log_format;
};

enum target {
	TO_NOTHING,
	TO_TEXT,
	TO_U64,
	TO_U32,
	TO_FD,
	TO_LEVEL,
	TO_FORMAT,
	TO_BASES,
	TO_RUNNERS,
};

#define AT(field)     offsetof(struct arguments, field)
#define AT_MAX(field) AT(options.maxima.field)

/* clang-format off */
static const struct item {
	const char *name;
	enum target target;
	size_t offset;
	const char *help; /* NULL: not listed */
} items[] = {
	{"runtime",           TO_TEXT,    AT(options.server),            "kind of server: docker"},
	{"socket",            TO_TEXT,    AT(options.socket),            "Unix socket of the server; default: /var/run/docker.sock"},
	{"image",             TO_TEXT,    AT(options.image),             "image for boxes without a root of their own; default: the host's /usr"},
	{"container-runtime", TO_TEXT,    AT(options.container_runtime), "runtime of the server, such as runsc; default: its own choice"},
	{"fd",                TO_FD,      AT(options.fd),                "descriptor of the socket"},
	{"agent",             TO_TEXT,    AT(options.agent),             "program for PID 1"},
	{"runners",           TO_RUNNERS, 0,                             "directory of runners; may be repeated"},
	{"addon",             TO_TEXT,    AT(options.addon),             "native part of runners"},
	{"roots",             TO_BASES,   0,                             "directory of roots for boxes; may be repeated"},
	{"runtime-dir",       TO_TEXT,    AT(options.runtime_dir),       "directory of the daemon"},
	{"handover",          TO_TEXT,    AT(options.handover),          "tells the daemons of a host apart"},
	{"identity",          TO_U64,     AT(options.identity),          "number reported to the daemon"},
	{"uid-base",          TO_U64,     AT(options.uid_base),          "first host id"},
	{"max-memory",        TO_U64,     AT_MAX(memory_bytes),          "bytes a box may be given"},
	{"max-disk",          TO_U64,     AT_MAX(workspace_bytes),       "bytes a workspace may be given"},
	{"max-pids",          TO_U32,     AT_MAX(pids),                  "processes a box may be given"},
	{"max-cpu",           TO_U32,     AT_MAX(cpu_millicores),        "thousandths of a core, 0 for all cores"},
	{"log-level",         TO_LEVEL,   AT(log_level),                 "error, warn, info or debug"},
	{"log-format",        TO_FORMAT,  AT(log_format),                "text or json"},
	{"help",              TO_NOTHING, 0,                             "this text"},
	{"binary",            TO_NOTHING, 0, NULL},
	{"lease",             TO_NOTHING, 0, NULL},
	{"zygote",            TO_NOTHING, 0, NULL},
	{"zygote-forks",      TO_NOTHING, 0, NULL},
	{"zygote-memory",     TO_NOTHING, 0, NULL},
	{"zygote-age",        TO_NOTHING, 0, NULL},
	{"import-memory",     TO_NOTHING, 0, NULL},
	{"bridge",            TO_NOTHING, 0, NULL},
	{"bridge-subnet",     TO_NOTHING, 0, NULL},
	{"bridge-allow",      TO_NOTHING, 0, NULL},
	{"resolver",          TO_NOTHING, 0, NULL},
	{"host-network",      TO_NOTHING, 0, NULL},
	{"daemon-uid",        TO_NOTHING, 0, NULL},
	{"tenant-io",         TO_NOTHING, 0, NULL},
	{"tenant-io-ops",     TO_NOTHING, 0, NULL},
};
/* clang-format on */

#if SANITIZED
/* The leak check at exit uses ptrace, which the confined program must not. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

static bool is_help(const struct item *item)
{
	return str_equal(item->name, "help");
}

static int usage(FILE *to)
{
	(void)fprintf(to, "usage: millibox-remote --runtime docker [options]\n"
	                  "Makes boxes as containers of a server. Started by milliboxd.\n");
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		if (items[i].help)
			(void)fprintf(to, "  --%s%s\t%s\n", items[i].name,
			              is_help(&items[i]) ? "" : " X", items[i].help);
	return to == stdout ? 0 : 2;
}

static int store_number(void *at, enum target target, const char *text)
{
	uint64_t value;
	uint32_t narrow;
	int r = parse_u64(text, &value);

	if (r < 0)
		return r;
	if (target == TO_U64) {
		memcpy(at, &value, sizeof(value));
		return 0;
	}
	if (value > (target == TO_FD ? INT32_MAX : UINT32_MAX))
		return -1;
	narrow = (uint32_t)value;
	memcpy(at, &narrow, sizeof(narrow));
	return 0;
}

static int store_name(void *at, enum target target, const char *text)
{
	int value = target == TO_LEVEL ? log_level_parse(text) : log_format_parse(text);

	memcpy(at, &value, sizeof(value));
	return value;
}

static int store_each(const char **list, size_t *count, size_t most, const char *text)
{
	if (*count == most)
		return -1;
	list[(*count)++] = text;
	return 0;
}

static int store_option(struct arguments *args, const struct item *item, const char *text)
{
	struct remote_options *o = &args->options;
	void *at = (char *)args + item->offset;

	if (item->target == TO_TEXT)
		memcpy(at, &text, sizeof(text));
	else if (item->target == TO_BASES)
		return store_each(o->bases, &o->bases_count, ENGINE_BASES_MAX, text);
	else if (item->target == TO_RUNNERS)
		return store_each(o->runners, &o->runners_count, ENGINE_RUNNERS_MAX, text);
	else if (item->target == TO_LEVEL || item->target == TO_FORMAT)
		return store_name(at, item->target, text);
	else if (item->target != TO_NOTHING)
		return store_number(at, item->target, text);
	return 0;
}

/* Return: -1 to continue, or an exit status. */
static int parse_arguments(int argc, char **argv, struct arguments *args)
{
	struct option options[ARRAY_SIZE(items) + 1] = {0};
	int index, c;

	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		options[i] = (struct option){
			.name = items[i].name,
			.has_arg = is_help(&items[i]) ? no_argument : required_argument,
		};
	while ((c = getopt_long(argc, argv, "", options, &index)) != -1) {
		if (c != 0)
			return usage(stderr);
		if (is_help(&items[index]))
			return usage(stdout);
		if (store_option(args, &items[index], optarg) < 0) {
			(void)fprintf(stderr, "millibox-remote: --%s: bad value '%s'\n",
			              items[index].name, optarg);
			return 2;
		}
	}
	return optind < argc ? usage(stderr) : -1;
}

/* The answer to the first request. */
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

int main(int argc, char **argv)
{
	struct arguments args = {
		.options = {.fd = ENGINE_SOCKET_FD, .maxima = request_limits_most()},
		.log_level = LOG_LEVEL_INFO,
		.log_format = LOG_FORMAT_TEXT,
	};
	struct error err = {0};
	int r = parse_arguments(argc, argv, &args);
	const struct remote_options *o = &args.options;

	if (r >= 0)
		return r;
	if (!o->server || !o->agent || !o->runtime_dir || o->runners_count == 0 ||
	    o->uid_base == 0 || o->uid_base > UINT32_MAX - REMOTE_BOXES_MAX - 2)
		return usage(stderr);
	/* All cores, of which the server knows how many there are. */
	if (o->maxima.cpu_millicores == 0)
		args.options.maxima.cpu_millicores = request_limits_most().cpu_millicores;
	log_setup("millibox-remote", (enum log_level)args.log_level,
	          (enum log_format)args.log_format);
	(void)signal(SIGPIPE, SIG_IGN);
	r = remote_serve(o, &err);
	if (error_is_set(&err)) {
		log_error("start", &err);
		send_start_error(o->fd, &err);
	}
	return r < 0;
}
