/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/parse.h"
#include "egress/egress.h"
#include "io/loop.h"

/*
 * millibox-egress is two processes. The starter has a socket to the daemon at descriptor
 * EGRESS_SOCKET_FD; the proxy, its child, does everything else. When the proxy dies, the starter
 * starts another and sends the daemon a socket to it. It ends with the daemon.
 */

/* A proxy that dies at once is not started again in a loop. */
#define RESTART_US (200 * USEC_PER_MS)
/* Descriptors for the loop, the resolver, orders and pipes. */
#define FILES_OWN (128 + 2 * FLOW_PIPES_MAX)

struct choices {
	const char *servers, *ca_file; /* NULL: not given */
	uint64_t memory_bytes;
};

static int usage(FILE *to)
{
	(void)fprintf(
		to, "usage: millibox-egress [--resolver ADDRESS[:PORT],...] [--ca-file FILE] "
		    "[--memory SIZE] [--log-level L] [--log-format F]\n"
		    "Connects boxes to the hosts that their rules name. Started by milliboxd.\n"
		    "  --resolver X\tname servers; default: those of /etc/resolv.conf\n"
		    "  --ca-file X\tcertificates of authorities; without it no TLS is intercepted\n"
		    "  --memory X\twhat all connections share; default: 1Gi\n"
		    "  --help\tthis text\n");
	return to == stdout ? 0 : 2;
}

/* Return: an exit status, or -1 to continue. */
static int parse_options(int argc, char **argv, struct choices *ret)
{
	static const struct option options[] = {
		{"resolver", required_argument, NULL, 'r'},
		{"ca-file", required_argument, NULL, 'c'},
		{"memory", required_argument, NULL, 'm'},
		{"log-level", required_argument, NULL, 'l'},
		{"log-format", required_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int level = LOG_LEVEL_INFO, format = LOG_FORMAT_TEXT, c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'r')
			ret->servers = optarg;
		else if (c == 'c')
			ret->ca_file = optarg;
		else if (c == 'm' && parse_size(optarg, &ret->memory_bytes) >= 0)
			continue;
		else if (c == 'l')
			level = log_level_parse(optarg);
		else if (c == 'f')
			format = log_format_parse(optarg);
		else
			return usage(c == 'h' ? stdout : stderr);
	}
	if (optind < argc || level < 0 || format < 0)
		return usage(stderr);
	log_setup("millibox-egress", (enum log_level)level, (enum log_format)format);
	return -1;
}

static int serve(const struct choices *choices, int control, struct error *err)
{
	struct egress e = {.loop = loop_new(), .ca_file = choices->ca_file};
	uint32_t files;
	int r = 0;

	e.resolver = resolver_new(e.loop, choices->servers, err);
	if (!e.resolver || confine(e.ca_file, choices->memory_bytes, &files, err) < 0) {
		r = -1;
	} else {
		/* Each connection has two descriptors. */
		e.connections_max = files > 4 * FILES_OWN ? (files - FILES_OWN) / 2 : FILES_OWN;
		budget_init(&e.memory, (size_t)choices->memory_bytes);
		control_open(&e, control);
		loop_run(e.loop);
		control_close(&e);
	}
	loop_run_once(e.loop, false); /* answers of name servers that wait for delivery */
	resolver_free(e.resolver);
	loop_free(e.loop);
	return r;
}

attr_noreturn static void become_proxy(const struct choices *choices, int control)
{
	struct error err = {0};
	int r;

	(void)fd_close(EGRESS_SOCKET_FD);
	r = serve(choices, control, &err);
	if (r < 0)
		log_error("start", &err);
	exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* Return: the pid of a proxy whose socket the daemon has, or a negative errno. */
static int start_proxy(const struct choices *choices)
{
	int pair[2];
	int r = fd_socketpair(SOCK_SEQPACKET, pair);
	pid_t pid;

	if (r < 0)
		return r;
	pid = fork();
	if (pid == 0) {
		(void)fd_close(pair[0]);
		become_proxy(choices, pair[1]);
	}
	r = pid < 0 ? -errno : fd_send(EGRESS_SOCKET_FD, "", 1, &pair[0], 1);
	(void)fd_close(pair[0]);
	(void)fd_close(pair[1]);
	return r < 0 ? r : pid;
}

int main(int argc, char **argv)
{
	struct choices choices = {.memory_bytes = EGRESS_MEMORY_BYTES};
	int status = parse_options(argc, argv, &choices);
	int pid;

	if (status >= 0)
		return status;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/* Without a daemon the socket cannot be sent. */
	while ((pid = start_proxy(&choices)) > 0) {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		/* It could not start: so could no other. */
		if (WIFEXITED(status) && WEXITSTATUS(status) != EXIT_SUCCESS)
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			log_warn("the proxy ended with signal %d, starting another",
			         WTERMSIG(status));
		(void)usleep(RESTART_US);
	}
	return EXIT_SUCCESS;
}
