/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/parse.h"
#include "gateway/gateway.h"
#include "gateway/spawn.h"
#include "http/fetch.h"
#include "io/loop.h"

/*
 * millibox-gateway is two processes besides the servers. The starter has a socket to the daemon at
 * descriptor GATEWAY_SOCKET_FD and runs the programs of servers; the gateway, its child, does
 * everything else and can run nothing. When the gateway dies, the starter ends the servers, starts
 * another and sends the daemon a socket to it. It ends with the daemon.
 */

/* A gateway that dies at once is not started again in a loop. */
#define RESTART_US (200 * USEC_PER_MS)
/* Descriptors for the loop, servers and orders. */
#define FILES_OWN 512

struct starter {
	struct server_spec *specs[GATEWAY_SERVERS_MAX + 1];
	size_t count;
	int signals; /* SIGCHLD */
	uint64_t memory_bytes;
};

static int usage(FILE *to)
{
	(void)fprintf(to,
	              "usage: millibox-gateway [--memory SIZE] [--log-level L] [--log-format F]\n"
	              "Calls tools of MCP servers for boxes. Started by milliboxd.\n"
	              "  --memory X\tof the gateway; default: 2Gi\n"
	              "  --log-level L\terror, warn, info or debug\n"
	              "  --log-format F\ttext or json\n"
	              "  --help\tthis text\n");
	return to == stdout ? 0 : 2;
}

/* Return: an exit status, or -1 to continue. */
static int parse_options(int argc, char **argv, uint64_t *ret_memory_bytes)
{
	static const struct option options[] = {
		{"memory", required_argument, NULL, 'm'},
		{"log-level", required_argument, NULL, 'l'},
		{"log-format", required_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int level = LOG_LEVEL_INFO, format = LOG_FORMAT_TEXT, c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'l')
			level = log_level_parse(optarg);
		else if (c == 'f')
			format = log_format_parse(optarg);
		else if (c == 'm' && parse_size(optarg, ret_memory_bytes) >= 0)
			continue;
		else
			return usage(c == 'h' ? stdout : stderr);
	}
	if (optind < argc || level < 0 || format < 0)
		return usage(stderr);
	log_setup("millibox-gateway", (enum log_level)level, (enum log_format)format);
	return -1;
}

static void drop_servers(struct starter *s)
{
	for (size_t i = 0; i < s->count; i++)
		spec_free(s->specs[i]);
	s->count = 0;
}

/* Return: 1 if there are more, 0 after the last, or -1. */
static int receive_server(struct starter *s, struct error *err)
{
	static char message[GATEWAY_MESSAGE_MAX];
	ssize_t n = fd_recv(GATEWAY_SOCKET_FD, message, sizeof(message), NULL, NULL);
	uint32_t op = GATEWAY_OP_NONE;

	if (n == -EINTR)
		return 1;
	if (n >= (ssize_t)sizeof(op))
		__builtin_memcpy(&op, message, sizeof(op));
	if (op == GATEWAY_START)
		return 0;
	if (op == GATEWAY_RESET) {
		drop_servers(s);
		return 1;
	}
	if (op != GATEWAY_SERVER || s->count == GATEWAY_SERVERS_MAX)
		return error_set(err, ERR_INVALID, n < 0 ? (int)-n : 0, "the daemon's servers");
	s->specs[s->count] = spec_read(message, (size_t)n, err);
	/* Secrets stay in as few places as possible. */
	explicit_bzero(message, (size_t)n);
	return s->specs[s->count++] ? 1 : -1;
}

static void on_starter(void *ctx, int events)
{
	struct gateway *g = ctx;

	(void)events;
	stdio_control(g, g->starter_fd);
}

static int open_servers(struct gateway *g, struct starter *s, struct error *err)
{
	g->fetcher = fetcher_new(g->loop, err);
	if (!g->fetcher)
		return -1;
	g->starter = watch_new(g->loop, g->starter_fd, on_starter, g);
	watch_set(g->starter, WATCH_READ);
	/* First all, as an answer names one by its number. */
	for (size_t i = 0; i < s->count; i++) {
		/* Only the starter executes commands. */
		for (char **v = s->specs[i]->env; *v; v++)
			explicit_bzero(*v, __builtin_strlen(*v));
		g->servers[i] = server_new(g, TAKE_PTR(s->specs[i]), i);
		g->servers_count = i + 1;
	}
	return 0;
}

static int serve(struct starter *s, int control, int orders, struct error *err)
{
	struct gateway g = {.loop = loop_new(), .starter_fd = orders};
	uint32_t files;
	int r = confine(s->memory_bytes, &files, err);

	if (r >= 0) {
		g.clients_max = files > 2 * FILES_OWN ? files - FILES_OWN : FILES_OWN;
		budget_init(&g.memory, (size_t)(s->memory_bytes / GATEWAY_CALLS_PART));
		control_open(&g, control);
		r = open_servers(&g, s, err);
		if (r >= 0)
			loop_run(g.loop);
		control_close(&g);
		for (size_t i = 0; i < g.servers_count; i++)
			server_free(g.servers[i]);
		watch_free(g.starter);
		fetcher_free(g.fetcher);
	}
	loop_free(g.loop);
	return r;
}

attr_noreturn static void become_gateway(struct starter *s, int control, int orders)
{
	struct error err = {0};
	sigset_t none;
	int r;

	(void)fd_close(GATEWAY_SOCKET_FD);
	(void)fd_close(s->signals);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	r = serve(s, control, orders, &err);
	if (r < 0)
		log_error("start", &err);
	exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* Return: the pid of a gateway whose socket the daemon has, or a negative errno. */
static int start_gateway(struct starter *s, int *ret_orders)
{
	int control[2], orders[2];
	int r = fd_socketpair(SOCK_SEQPACKET, control);
	pid_t pid;

	if (r < 0)
		return r;
	r = fd_socketpair(SOCK_SEQPACKET, orders);
	if (r < 0) {
		(void)fd_close(control[0]);
		(void)fd_close(control[1]);
		return r;
	}
	pid = fork();
	if (pid == 0) {
		(void)fd_close(control[0]);
		(void)fd_close(orders[0]);
		become_gateway(s, control[1], orders[1]);
	}
	r = pid < 0 ? -errno : fd_send(GATEWAY_SOCKET_FD, "", 1, &control[0], 1);
	(void)fd_close(control[0]);
	(void)fd_close(control[1]);
	(void)fd_close(orders[1]);
	*ret_orders = orders[0];
	return r < 0 ? r : pid;
}

/* Return: true if the gateway @pid is among those that ended, with its status. */
static bool reap(const struct starter *s, struct spawner *spawner, pid_t pid, int *ret_status)
{
	struct signalfd_siginfo info;
	bool is_over = false;
	int status;
	pid_t ended;

	(void)!read(s->signals, &info, sizeof(info));
	while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
		if (ended == pid) {
			*ret_status = status;
			is_over = true;
		} else {
			spawner_ended(spawner, ended, status);
		}
	}
	return is_over;
}

/* All of them, up to START. Return: 0 or -1. */
static int receive_servers(struct starter *s, struct error *err)
{
	int r;

	while ((r = receive_server(s, err)) > 0)
		;
	return r;
}

enum watched {
	WATCHED_GATEWAY, /* has ended */
	WATCHED_DAEMON,  /* sends servers anew, or has ended */
};

/* Until something happens that the gateway does not survive. */
static enum watched watch_gateway(const struct starter *s, pid_t pid, int orders, int *ret_status)
{
	struct spawner *spawner = spawner_new(s->specs, s->count, orders);
	bool is_called = false, is_over = false;

	while (!is_called && !is_over) {
		struct pollfd fds[] = {{.fd = s->signals, .events = POLLIN},
		                       {.fd = orders, .events = POLLIN},
		                       {.fd = GATEWAY_SOCKET_FD, .events = POLLIN}};

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			continue;
		is_called = fds[2].revents;
		if (fds[1].revents && !spawner_obey(spawner))
			(void)kill(pid, SIGKILL); /* it ends, or is not ours any more */
		if (fds[0].revents)
			is_over = reap(s, spawner, pid, ret_status);
	}
	if (!is_over) {
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
			;
	}
	spawner_free(spawner);
	return is_called ? WATCHED_DAEMON : WATCHED_GATEWAY;
}

/* Return: an exit status, or -1: start another gateway. */
static int settle(struct starter *s, enum watched watched, int status)
{
	struct error err = {0};

	if (watched == WATCHED_DAEMON) {
		if (receive_servers(s, &err) < 0) /* it has ended */
			return EXIT_SUCCESS;
		log_info("the servers have changed, starting them again");
		return -1;
	}
	/* It could not start: so could no other. */
	if (WIFEXITED(status) && WEXITSTATUS(status) != EXIT_SUCCESS)
		return WEXITSTATUS(status);
	if (WIFSIGNALED(status))
		log_warn("the gateway ended with signal %d, starting another", WTERMSIG(status));
	(void)usleep(RESTART_US);
	return -1;
}

static int run(struct starter *s)
{
	static const int signals[] = {SIGCHLD};
	int status = 0, orders = -1, exit_status = -1, pid;

	s->signals = fd_signalfd(signals, ARRAY_SIZE(signals));
	if (s->signals < 0)
		return EXIT_FAILURE;
	/* Without a daemon the socket cannot be sent. */
	while (exit_status < 0 && (pid = start_gateway(s, &orders)) > 0) {
		enum watched watched = watch_gateway(s, pid, orders, &status);

		(void)fd_close(orders);
		exit_status = settle(s, watched, status);
	}
	return exit_status < 0 ? EXIT_SUCCESS : exit_status;
}

int main(int argc, char **argv)
{
	struct starter starter = {.signals = -1, .memory_bytes = GATEWAY_MEMORY_BYTES};
	struct error err = {0};
	int status = parse_options(argc, argv, &starter.memory_bytes);

	if (status >= 0)
		return status;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (receive_servers(&starter, &err) < 0) {
		log_error("start", &err);
		return EXIT_FAILURE;
	}
	status = run(&starter);
	drop_servers(&starter);
	return status;
}
