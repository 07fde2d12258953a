/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native_internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "wire/msg.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Theory of operation. Runs once, before the loop and with the daemon's privileges, so it may
 * block. The engine inherits only its socket and stderr: no environment (LD_PRELOAD would control a
 * privileged program), no other descriptor, no blocked or ignored signal.
 */

static void reset_signals(void)
{
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int signo = 1; signo < NSIG; signo++)
		(void)sigaction(signo, &act, NULL); /* fails for KILL and STOP */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Leaves 0, 1, 2 and ENGINE_SOCKET_FD. @sock is none of 0, 1, 2. */
static int arrange_fds(int sock)
{
	int null = fd_open("/dev/null", O_RDWR, 0);

	if (null < 0)
		return null;
	if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	/* dup2 onto itself would leave close-on-exec on. */
	if (sock == ENGINE_SOCKET_FD ? fcntl(sock, F_SETFD, 0) < 0
	                             : dup2(sock, ENGINE_SOCKET_FD) < 0)
		return -errno;
	return close_range(ENGINE_SOCKET_FD + 1, ~0U, 0) < 0 ? -errno : 0;
}

/* In the child. Reports errors as the engine would. */
attr_noreturn static void become_engine(const char *path, char *const argv[], int sock)
{
	static char *const no_env[] = {NULL};
	struct engine_reply reply = {.op = ENGINE_FAILED, .seq = NATIVE_PROBE_SEQ};
	int r;

	reset_signals();
	r = arrange_fds(sock);
	if (r == 0) {
		sock = ENGINE_SOCKET_FD;
		(void)execve(path, argv, no_env);
		r = -errno;
	}
	(void)error_set(&reply.error, ERR_UNAVAILABLE, -r, "cannot execute it");
	(void)!fd_send(sock, &reply, sizeof(reply), NULL, 0);
	_exit(127);
}

#define OPTIONS_MAX (26 + ENGINE_BASES_MAX + ENGINE_RUNNERS_MAX + 2 * ENGINE_RANGES_MAX)

struct option {
	const char *name;
	uint64_t value;
	const char *word;
	bool essential; /* part of the engine's identity */
	char text[24];
};

struct options {
	size_t count;
	struct option all[OPTIONS_MAX];
	const char *argv[2 * OPTIONS_MAX + 2];
};

static void add_word(struct options *options, const char *name, const char *word)
{
	options->all[options->count++] =
		(struct option){.name = name, .word = word, .essential = true};
}

static void add_number(struct options *options, const char *name, uint64_t value)
{
	options->all[options->count++] =
		(struct option){.name = name, .value = value, .essential = true};
}

/* The settings allow no more. */
static void add_list(struct options *options, const char *name, char *const *list)
{
	for (size_t i = 0; list && list[i] && i < ENGINE_RANGES_MAX; i++)
		add_word(options, name, list[i]);
}

static void add_network(struct options *options, const struct native_config *config)
{
	if (config->host_network) {
		add_number(options, "--host-network", 1);
		/* A new first engine may get another: the boxes of the second live on. */
		options->all[options->count++] =
			(struct option){.name = "--daemon-uid", .value = config->daemon_uid};
		add_list(options, "--resolver", config->host_network_resolvers);
	}
	if (!config->bridge_path)
		return;
	add_word(options, "--bridge", config->bridge_path);
	add_word(options, "--bridge-subnet", config->bridge_subnet);
	add_list(options, "--bridge-allow", config->bridge_allow);
	add_list(options, "--resolver", config->bridge_resolvers);
}

static struct options options_of(const struct native_config *config)
{
	struct options options = {
		.count = 14,
		.all =
			{
				{.name = "--agent", .word = config->agent_path, .essential = true},
				{.name = "--runners",
	                         .word = config->runners_dir,
	                         .essential = true},
				{.name = "--runtime-dir",
	                         .word = config->runtime_dir,
	                         .essential = true},
				{.name = "--uid-base",
	                         .value = config->uid_base,
	                         .essential = true},
				{.name = "--max-memory",
	                         .value = config->memory_max_bytes,
	                         .essential = true},
				{.name = "--max-disk",
	                         .value = config->disk_max_bytes,
	                         .essential = true},
				{.name = "--max-pids",
	                         .value = config->processes_max,
	                         .essential = true},
				{.name = "--max-cpu",
	                         .value = config->cpu_max_millicores,
	                         .essential = true},
				{.name = "--tenant-io",
	                         .value = config->io_bytes,
	                         .essential = true},
				{.name = "--tenant-io-ops",
	                         .value = config->io_ops,
	                         .essential = true},
				{.name = "--import-memory",
	                         .value = config->import_memory_bytes,
	                         .essential = true},
				{.name = "--log-level", .word = config->log_level},
				{.name = "--log-format", .word = config->log_format},
				{.name = "--lease", .value = config->lease_us / USEC_PER_MS},
			},
	};

	if (config->zygote_path) {
		options.all[options.count++] = (struct option){
			.name = "--zygote", .word = config->zygote_path, .essential = true};
		options.all[options.count++] = (struct option){
			.name = "--zygote-forks", .value = config->zygote_forks, .essential = true};
		options.all[options.count++] = (struct option){.name = "--zygote-memory",
		                                               .value = config->zygote_memory_bytes,
		                                               .essential = true};
		options.all[options.count++] =
			(struct option){.name = "--zygote-age",
		                        .value = config->zygote_age_us / USEC_PER_MS,
		                        .essential = true};
	}
	if (config->addon_path)
		options.all[options.count++] = (struct option){
			.name = "--addon", .word = config->addon_path, .essential = true};
	/* The settings allow no more. */
	for (size_t i = 0; config->roots && config->roots[i] && i < ENGINE_BASES_MAX; i++)
		options.all[options.count++] = (struct option){
			.name = "--roots", .word = config->roots[i], .essential = true};
	for (size_t i = 0;
	     config->more_runners && config->more_runners[i] && i + 1 < ENGINE_RUNNERS_MAX; i++)
		options.all[options.count++] = (struct option){
			.name = "--runners", .word = config->more_runners[i], .essential = true};
	add_network(&options, config);
	return options;
}

/* FNV-1a: an attacker who can cause a collision can replace the engine. */
static uint64_t mix(uint64_t hash, const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * 0x100000001b3ULL;
	return hash;
}

/* A file that cannot be read is like no other. */
static uint64_t mix_file(uint64_t hash, const char *path)
{
	cleanup_close int fd = fd_open(path, O_RDONLY, 0);
	unsigned char data[16384];
	ssize_t n = fd < 0 ? -1 : 0;
	uint64_t now = clock_us();

	while (fd >= 0 && (n = read(fd, data, sizeof(data))) > 0)
		hash = mix(hash, data, (size_t)n);
	return n == 0 ? hash : mix(hash, &now, sizeof(now));
}

/* With the contents of the programs: an update or another build may enforce other rules. */
uint64_t native_identity(const struct native_config *config)
{
	static const uint64_t build[] = {ENGINE_VERSION, WIRE_VERSION,
	                                 sizeof(struct engine_request),
	                                 sizeof(struct engine_reply)};
	struct options options = options_of(config);
	uint64_t hash = mix(0xcbf29ce484222325ULL, build, sizeof(build));

	hash = mix(hash, MILLIBOX_VERSION, sizeof(MILLIBOX_VERSION));
	hash = mix(hash, config->engine_path, strlen(config->engine_path) + 1);
	hash = mix_file(hash, config->engine_path);
	hash = mix_file(hash, config->agent_path);
	if (config->zygote_path)
		hash = mix_file(hash, config->zygote_path);
	if (config->addon_path)
		hash = mix_file(hash, config->addon_path);
	if (config->bridge_path)
		hash = mix_file(hash, config->bridge_path);
	for (size_t i = 0; i < options.count; i++) {
		const struct option *o = &options.all[i];

		if (!o->essential)
			continue;
		hash = mix(hash, o->name, strlen(o->name) + 1);
		hash = mix(hash, &o->value, sizeof(o->value));
		hash = o->word ? mix(hash, o->word, strlen(o->word) + 1) : hash;
	}
	return hash;
}

static int format_options(struct options *options)
{
	const char **arg = options->argv;

	*arg++ = "millibox-engine";
	for (size_t i = 0; i < options->count; i++) {
		struct option *o = &options->all[i];

		if (!o->word &&
		    str_format(o->text, sizeof(o->text), "%llu", (unsigned long long)o->value) < 0)
			return -1;
		*arg++ = o->name;
		*arg++ = o->word ? o->word : o->text;
	}
	return 0;
}

static int fork_engine(const struct native_config *config, int sock, pid_t *ret_pid,
                       struct error *err)
{
	struct options options = options_of(config);
	pid_t pid;

	options.all[options.count++] =
		(struct option){.name = "--identity", .value = native_identity(config)};
	if (config->handover)
		options.all[options.count++] =
			(struct option){.name = "--handover", .word = config->handover};
	if (format_options(&options) < 0)
		return error_set(err, ERR_SYSTEM, 0, "arguments");
	pid = fork();
	if (pid < 0)
		return error_set(err, ERR_SYSTEM, errno, "fork");
	if (pid == 0)
		become_engine(config->engine_path, (char *const *)options.argv, sock);
	*ret_pid = pid;
	return 0;
}

int native_wait_readable(int fd, uint64_t deadline_us)
{
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = clock_us();
		uint64_t left_ms = now < deadline_us ? (deadline_us - now) / USEC_PER_MS + 1 : 0;
		int r = poll(&p, 1, (int)left_ms);

		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
		if (clock_us() >= deadline_us)
			return -ETIMEDOUT;
	}
}

bool native_is_of_past(const struct engine_reply *reply)
{
	return (reply->op == ENGINE_GONE || reply->op == ENGINE_FAILED) && reply->box_id[0] != '\0';
}

static int read_reply(int sock, uint64_t deadline, struct engine_reply *ret_reply,
                      struct helper_group *ret_group, struct error *err)
{
	int r = native_wait_readable(sock, deadline);
	ssize_t len;

	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "it does not respond");
	/* If the engine died without reading, the first read fails, the next returns its data. */
	do
		len = fd_recv(sock, ret_reply, sizeof(*ret_reply), ret_group->files,
		              &ret_group->count);
	while (len == -ECONNRESET);
	if (len == 0)
		return error_set(err, ERR_UNAVAILABLE, 0, "it exited at once; see its log");
	if (len != (ssize_t)sizeof(*ret_reply))
		return error_set(err, ERR_PROTOCOL, len < 0 ? (int)-len : 0,
		                 "its reply has the wrong size");
	return 0;
}

static int read_probe(int sock, struct engine_probe *ret_probe, struct helper_group *ret_group,
                      struct error *err)
{
	uint64_t deadline = clock_us() + NATIVE_PROBE_TIMEOUT_US;
	struct engine_reply reply = {0};

	do {
		helper_group_close(ret_group);
		if (read_reply(sock, deadline, &reply, ret_group, err) < 0)
			return -1;
	} while (native_is_of_past(&reply));
	if (reply.op == ENGINE_FAILED) {
		reply.error.msg[sizeof(reply.error.msg) - 1] = '\0';
		return error_set(err, ERR_UNAVAILABLE, reply.error.sys, "%.200s", reply.error.msg);
	}
	if (reply.op != ENGINE_PROBED)
		return error_set(err, ERR_PROTOCOL, 0, "it sent an unexpected reply");
	if (reply.seq != NATIVE_PROBE_SEQ || reply.probe.cgroup >= ENGINE_CGROUP_COUNT ||
	    reply.probe.ids >= ENGINE_IDS_COUNT || (reply.probe.layers & ~LAYERS_ALL) ||
	    reply.probe.boxes_max == 0)
		return error_set(err, ERR_PROTOCOL, 0, "its probe is malformed");
	*ret_probe = reply.probe;
	return 0;
}

int native_probe(int sock, struct engine_probe *ret_probe, struct helper_group *ret_group,
                 struct error *err)
{
	struct engine_request request = {.op = ENGINE_PROBE, .seq = NATIVE_PROBE_SEQ};
	int r = fd_send(sock, &request, sizeof(request), NULL, 0);

	/* An engine that exited early may have left its reason. */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return error_set(err, ERR_SYSTEM, -r, "ask it");
	*ret_group = (struct helper_group){0};
	if (read_probe(sock, ret_probe, ret_group, err) == 0)
		return 0;
	helper_group_close(ret_group);
	return -1;
}

int native_wait_engine(pid_t pid, uint64_t timeout_us)
{
	uint64_t deadline = clock_us() + timeout_us;
	cleanup_close int pidfd = fd_pidfd_open(pid);
	int status = 0;

	if (pidfd < 0)
		return pidfd;
	if (native_wait_readable(pidfd, deadline) < 0)
		return -ETIMEDOUT;
	return waitpid(pid, &status, WNOHANG) == pid ? status : -ECHILD;
}

/* Our child, not reaped: its pid is its own. */
static void kill_engine(pid_t pid)
{
	cleanup_close int pidfd = fd_pidfd_open(pid);

	(void)fd_pidfd_kill(pidfd, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

int native_start_engine(const struct native_config *config, struct native_engine *ret_engine,
                        struct error *err)
{
	struct native_engine engine = {.pidfd = -1};
	cleanup_close int ours = -1;
	cleanup_close int theirs = -1;
	int pair[2];
	pid_t pid;
	int r = fd_socketpair(SOCK_SEQPACKET, pair);

	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "socketpair");
	ours = pair[0];
	theirs = pair[1];
	if (ours <= STDERR_FILENO || theirs <= STDERR_FILENO)
		return error_set(err, ERR_SYSTEM, 0, "descriptors 0, 1 and 2 must be open");
	if (fork_engine(config, theirs, &pid, err) < 0)
		return -1;
	theirs = fd_close(theirs);
	if (native_probe(ours, &engine.probe, &engine.import_group, err) < 0) {
		/* Without its socket it ends and removes its names, if it can. */
		ours = fd_close(ours);
		if (native_wait_engine(pid, NATIVE_END_TIMEOUT_US) == -ETIMEDOUT)
			kill_engine(pid);
		return -1;
	}
	engine.sock = TAKE_FD(ours);
	engine.pid = pid;
	*ret_engine = engine;
	return 0;
}
