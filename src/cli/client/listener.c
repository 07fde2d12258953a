/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/client/daemon.h"
#include "client/transport.h"

#define TEXT_MAX 8192
#define UNIT     "/milliboxd.service"

/* 0: we cannot see it. */
static pid_t peer_pid(int sock)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? peer.pid : 0;
}

int listener_find(struct millibox_client *client, struct listener *ret_listener, struct error *err)
{
	const struct endpoint *endpoint;
	cleanup_close int sock = -1, pidfd = -1;
	int found = millibox_find(client, NULL);

	*ret_listener = (struct listener)LISTENER_INIT;
	if (found < 0)
		return daemon_fail(client, err);
	if (found == 0)
		return 0;
	endpoint = transport_endpoint(client);
	if (!endpoint)
		return daemon_fail(client, err);
	if (!endpoint->socket)
		return 1;
	sock = endpoint_dial(endpoint->socket);
	if (sock == -ENOENT || sock == -ECONNREFUSED)
		return 0;
	if (sock < 0)
		return error_set(err, ERR_UNAVAILABLE, -sock, "connect to %s", endpoint->socket);
	pidfd = fd_peer_pidfd(sock);
	/* Else it is in another PID namespace, or has just ended. */
	if (pidfd >= 0)
		*ret_listener = (struct listener){.pid = peer_pid(sock), .pidfd = TAKE_FD(pidfd)};
	return 1;
}

void listener_done(struct listener *listener)
{
	listener->pidfd = fd_close(listener->pidfd);
}

static int read_fact(const struct listener *listener, const char *name, char *ret_text, size_t size)
{
	cleanup_free char *path = xasprintf("/proc/%d/%s", (int)listener->pid, name);

	return listener->pid > 0 ? file_read_text_at(AT_FDCWD, path, ret_text, size) : -ESRCH;
}

bool listener_is_daemon(const struct listener *listener)
{
	char name[64];

	return read_fact(listener, "comm", name, sizeof(name)) >= 0 && str_equal(name, "milliboxd");
}

bool listener_is_unit(const struct listener *listener)
{
	char groups[TEXT_MAX];
	size_t len = strlen(UNIT);

	if (read_fact(listener, "cgroup", groups, sizeof(groups)) < 0)
		return false;
	for (const char *at = groups; (at = strstr(at, UNIT)); at += len)
		if (at[len] == '\n' || at[len] == '\0')
			return true;
	return false;
}
