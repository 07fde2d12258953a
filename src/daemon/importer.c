/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/importer.h"

#include "base/alloc.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKET_FD        3
#define START_TIMEOUT_MS (30 * 1000)

/* In the child: inherits only the socket, and stderr for its log. */
attr_noreturn static void become(int exe, const char *roots, int sock)
{
	static char *const no_env[] = {NULL};
	const char *argv[] = {"millibox-import", "--roots", roots, NULL};
	int null = fd_open("/dev/null", O_RDWR, 0);
	static const int deaf_to[] = {SIGTERM, SIGINT, SIGHUP};

	/* Signals to the group are for the daemon: the importer ends with it. */
	for (size_t i = 0; i < ARRAY_SIZE(deaf_to); i++)
		(void)signal(deaf_to[i], SIG_IGN);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		_exit(127);
	if (sock == SOCKET_FD ? fcntl(sock, F_SETFD, 0) < 0 : dup2(sock, SOCKET_FD) < 0)
		_exit(127);
	/* At exec: the program's own descriptor is among them. */
	if (close_range(SOCKET_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		_exit(127);
	(void)execveat(exe, "", (char *const *)(uintptr_t)argv, no_env, AT_EMPTY_PATH);
	_exit(127);
}

int importer_find(struct importer *i, const char *engine_path, struct error *err)
{
	cleanup_free char *copy = xstrdup(engine_path);
	cleanup_free char *path = xasprintf("%s/millibox-import", dirname(copy));

	*i = (struct importer){.exe = fd_open(path, O_PATH, 0), .sock = -1};
	if (i->exe < 0)
		return error_set(err, ERR_CONFIG, -i->exe, "%s", path);
	if (access(path, X_OK) < 0)
		return error_set(err, ERR_CONFIG, errno, "%s", path);
	return 0;
}

/* Before its first order: it has no child yet. */
static int limit_importer(struct importer *i, struct helper_group *group, struct error *err)
{
	int r = helper_group_join(group, i->pid);

	helper_group_close(group);
	return r < 0 ? error_set(err, ERR_SYSTEM, -r, "cgroup of the importer") : 0;
}

int importer_start(struct importer *i, const char *roots, struct helper_group *group,
                   struct error *err)
{
	int pair[2];
	int r;

	r = fd_socketpair(SOCK_SEQPACKET, pair);
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "socketpair");
	i->pid = fork();
	if (i->pid == 0)
		become(i->exe, roots, pair[1]);
	r = errno;
	i->exe = fd_close(i->exe);
	(void)fd_close(pair[1]);
	i->sock = pair[0];
	if (i->pid > 0)
		return limit_importer(i, group, err);
	i->sock = fd_close(i->sock);
	i->pid = 0;
	return error_set(err, ERR_SYSTEM, r, "fork");
}

int importer_check(struct importer *i, struct error *err)
{
	struct pollfd ready = {.fd = i->sock, .events = POLLIN};
	char byte = 0;
	int r;

	do
		r = poll(&ready, 1, START_TIMEOUT_MS);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return error_set(err, ERR_UNAVAILABLE, ETIMEDOUT, "millibox-import is not ready");
	/* Its only message. */
	if (r > 0 && fd_recv(i->sock, &byte, sizeof(byte), NULL, NULL) == 1)
		return 0;
	return error_set(err, ERR_UNAVAILABLE, 0,
	                 "millibox-import ended when it was started: try %s",
	                 "millibox-import --help, and see the log");
}

void importer_end(struct importer *i)
{
	i->exe = fd_close(i->exe);
	if (i->pid <= 0)
		return;
	i->sock = fd_close(i->sock);
	while (waitpid(i->pid, NULL, 0) < 0 && errno == EINTR)
		;
	i->pid = 0;
}
