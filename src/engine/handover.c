/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "wire/reattach.h"

/*
 * Theory of operation. When a daemon is killed, its engine keeps the boxes. The handover socket
 * accepts the same requests as the daemon's, and only from the user who could also start a new
 * engine: mode 0600, and the peer's credentials are checked after accept.
 *
 * The name is bound at start, while the engine can still reach the runtime directory by path. The
 * engine accepts only after its daemon is gone; earlier connections wait in the backlog.
 */

#define BACKLOG      4
#define PREFIX       "custody-" /* fixed: an engine of an older build may be listening */
#define TMP_SUFFIX   ".new"
#define UID_UNMAPPED 65534 /* the kernel's overflowuid */

static bool is_socket_name(const char *name)
{
	size_t len = strlen(name);

	return str_has_prefix(name, PREFIX) && len <= HANDOVER_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

/* Through /proc/self/fd: a long path does not fit into sockaddr_un. */
static int bind_beneath(int sock, int dir, const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	mode_t mask;
	int r = str_format(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/%s", dir, name);

	if (r < 0)
		return r;
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return -errno;
	mask = umask(0177);
	r = bind(sock, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	(void)umask(mask);
	return r;
}

/* Rename after listen(): a name without a listener belongs to a dead engine (see sweep_sockets).
 * Our parent, the daemon of this state directory, found no live engine there. */
static int listen_as(int sock, int dir, const char *name)
{
	char tmp[HANDOVER_NAME_MAX + 8];
	int r = str_format(tmp, sizeof(tmp), "%s" TMP_SUFFIX, name);

	if (r >= 0)
		r = bind_beneath(sock, dir, tmp);
	if (r >= 0 && listen(sock, BACKLOG) < 0)
		r = -errno;
	if (r >= 0 && renameat(dir, tmp, dir, name) < 0)
		r = -errno;
	return r;
}

static bool is_dead(int dir, const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	cleanup_close int sock = fd_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

	return sock >= 0 &&
	       str_format(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/%s", dir, name) >=
	               0 &&
	       connect(sock, (const struct sockaddr *)&addr, sizeof(addr)) < 0 &&
	       errno == ECONNREFUSED;
}

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* Sockets of killed engines. A live engine sees a connection that is closed at once. */
static void sweep_sockets(int dir, const char *own)
{
	int fd = fd_open_at(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	attr_cleanup(closedirp) DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list) {
		(void)fd_close(fd);
		return;
	}
	for (struct dirent *entry = readdir(list); entry; entry = readdir(list))
		if (str_has_prefix(entry->d_name, PREFIX) && !strstr(entry->d_name, TMP_SUFFIX) &&
		    !str_equal(entry->d_name, own) && is_dead(dir, entry->d_name))
			(void)unlinkat(dir, entry->d_name, 0);
}

int handover_open(const struct options *options, const struct instance *instance,
                  struct handover *ret_handover, struct error *err)
{
	cleanup_close int sock = -1;
	int r;

	if (!options->handover || options->lease_ms == 0)
		return 0;
	if (!is_socket_name(options->handover))
		return error_set(err, ERR_CONFIG, 0, "'%.64s' is not a valid socket name",
		                 options->handover);
	r = sock = fd_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	if (r >= 0)
		r = listen_as(sock, instance->dir, options->handover);
	if (r < 0)
		return error_set(err, ERR_UNAVAILABLE, -r, "handover socket in '%.128s'",
		                 options->runtime_dir);
	sweep_sockets(instance->dir, options->handover);
	(void)!str_copy(ret_handover->name, sizeof(ret_handover->name), options->handover);
	ret_handover->lease_ms = options->lease_ms;
	ret_handover->listener = TAKE_FD(sock);
	return 0;
}

void handover_remove(const struct handover *handover, const struct instance *instance)
{
	if (handover->name[0])
		(void)unlinkat(instance->dir, handover->name, 0);
}

bool handover_is_lost(const struct instance *instance)
{
	struct stat st;

	return fstat(instance->lock, &st) == 0 && st.st_nlink == 0;
}

int handover_accept(const struct handover *handover, enum engine_ids ids)
{
	cleanup_close int sock = fd_accept(handover->listener);
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t len = sizeof(peer);

	if (sock < 0)
		return sock;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	/* The user who started the engine: root of its user namespace, or, if that is the host's
	 * root, not mapped in it. The mode of the socket keeps out all others. */
	if (peer.uid != (ids == ENGINE_IDS_RANGE ? UID_UNMAPPED : geteuid()))
		return -EPERM;
	return TAKE_FD(sock);
}

int handover_new_stream(int reattach)
{
	const struct reattach_message msg = {.magic = REATTACH_MAGIC};
	cleanup_close int ours = -1;
	cleanup_close int theirs = -1;
	int pair[2];
	int r = fd_socketpair(SOCK_STREAM, pair);

	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	r = fd_send(reattach, &msg, sizeof(msg), &theirs, 1);
	return r < 0 ? r : TAKE_FD(ours);
}
