/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/start.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fd.h"
#include "bridge/order.h"

/*
 * millibox-bridge needs a privilege on the host that the engine gives up. It lives as long as the
 * engine, which may outlive the daemon, so the engine starts it. It gets the ranges as the operator
 * wrote them; the engine does not read them.
 */

#define START_TIMEOUT_MS (20 * 1000)
/* For a request. The kernel needs about a millisecond. */
#define ANSWER_TIMEOUT_SEC 5
#define ARGS_MAX           (2 * (2 * ENGINE_RANGES_MAX + 4) + 2)

static size_t add_each(const char **argv, size_t n, const char *name, const char *const *values,
                       size_t count)
{
	for (size_t i = 0; i < count; i++) {
		argv[n++] = name;
		argv[n++] = values[i];
	}
	return n;
}

static void write_arguments(const struct options *o, const char *argv[ARGS_MAX])
{
	size_t n = 0;

	argv[n++] = "millibox-bridge";
	n = add_each(argv, n, "--subnet", &o->bridge_subnet, 1);
	n = add_each(argv, n, "--log-level", &o->log_level, 1);
	n = add_each(argv, n, "--log-format", &o->log_format, 1);
	n = add_each(argv, n, "--allow", o->bridge_allow, o->bridge_allow_count);
	n = add_each(argv, n, "--resolver", o->resolvers, o->resolvers_count);
	argv[n] = NULL;
}

/* In the child. 0 and 1 are /dev/null, 2 is the log. */
static void attr_noreturn become_bridge(const struct options *o, int sock)
{
	static char *const no_env[] = {NULL};
	const char *argv[ARGS_MAX];

	write_arguments(o, argv);
	/* The engine's own socket has that number. */
	if (sock > BRIDGE_SOCKET_FD && dup2(sock, BRIDGE_SOCKET_FD) >= 0 &&
	    syscall(SYS_close_range, BRIDGE_SOCKET_FD + 1, ~0U, 0) == 0)
		(void)execve(o->bridge, (char *const *)(uintptr_t)argv, no_env);
	_exit(127);
}

static int wait_for_start(int sock, struct error *err)
{
	struct pollfd ready = {.fd = sock, .events = POLLIN};
	const struct timeval limit = {.tv_sec = ANSWER_TIMEOUT_SEC};
	struct bridge_reply reply;
	int r;

	do
		r = poll(&ready, 1, START_TIMEOUT_MS);
	while (r < 0 && errno == EINTR);
	if (r <= 0 || fd_recv(sock, &reply, sizeof(reply), NULL, NULL) != sizeof(reply))
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "millibox-bridge ended when it was started; see its log");
	if (error_is_set(&reply.error)) {
		*err = reply.error;
		err->msg[sizeof(err->msg) - 1] = '\0';
		err->field[0] = '\0';
		return error_wrap(err, "network bridge");
	}
	return setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
	                       setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0
	               ? error_set(err, ERR_SYSTEM, errno, "socket of millibox-bridge")
	               : 0;
}

int bridge_start(const struct options *options, struct host *host, struct error *err)
{
	cleanup_close int ours = -1;
	int pair[2], r;

	if (!options->bridge)
		return 0;
	if (host->ids.mode != ENGINE_IDS_RANGE)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "network bridge needs root: use network mode allowlist");
	r = fd_socketpair(SOCK_SEQPACKET, pair);
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "socketpair");
	ours = pair[0];
	host->bridge_pid = fork();
	if (host->bridge_pid == 0)
		become_bridge(options, pair[1]);
	r = host->bridge_pid < 0 ? -errno : 0;
	(void)fd_close(pair[1]);
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "fork");
	if (wait_for_start(ours, err) < 0)
		return -1;
	host->bridge = TAKE_FD(ours);
	return 0;
}
