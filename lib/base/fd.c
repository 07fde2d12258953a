/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* headers before 6.5 */
#endif

/* Retry on EINTR. Value: the result, or a negative errno. */
#define RETRY(call)                                                                                \
	({                                                                                         \
		__auto_type r_ = (call);                                                           \
		while (r_ < 0 && errno == EINTR)                                                   \
			r_ = (call);                                                               \
		r_ < 0 ? -errno : r_;                                                              \
	})

static int or_errno(int fd)
{
	return fd < 0 ? -errno : fd;
}

int fd_close(int fd)
{
	int saved = errno;

	/* Do not retry EINTR: Linux has closed it, and the number may be reused. */
	if (fd >= 0)
		(void)close(fd);
	errno = saved;
	return -1;
}

void fd_closep(int *fd)
{
	*fd = fd_close(*fd);
}

int fd_open(const char *path, int flags, unsigned mode)
{
	return fd_open_at(AT_FDCWD, path, flags, mode);
}

int fd_open_at(int dir, const char *path, int flags, unsigned mode)
{
	return RETRY(openat(dir, path, flags | O_CLOEXEC | O_NOCTTY, (mode_t)mode));
}

static bool has_dotdot(const char *path)
{
	for (const char *part = path; part; part = strchr(part, '/')) {
		part += strspn(part, "/");
		if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0'))
			return true;
	}
	return false;
}

/* Through no other mount. */
static int step_beneath(int dir, const char *name, int flags, unsigned mode)
{
	cleanup_close int fd = fd_open_at(dir, name, flags | O_NOFOLLOW, mode);
	struct stat here, there;

	if (fd < 0)
		return fd;
	if (fstat(dir, &here) < 0 || fstat(fd, &there) < 0)
		return -errno;
	if (here.st_dev != there.st_dev)
		return -EXDEV;
	/* With O_PATH a link is opened, not followed. */
	if (S_ISLNK(there.st_mode) && !((flags & O_PATH) && (flags & O_NOFOLLOW)))
		return -ELOOP;
	return TAKE_FD(fd);
}

/* gVisor has no openat2: name by name, and no symbolic link at all. */
static int walk_beneath(int dir, const char *path, int flags, unsigned mode)
{
	cleanup_close int at = fd_open_at(dir, ".", O_PATH | O_DIRECTORY, 0);
	char name[NAME_MAX + 1];

	if (path[0] == '/')
		return -EXDEV;
	while (at >= 0) {
		size_t len = strcspn(path, "/");
		int next;

		if (len >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, path, len);
		name[len] = '\0';
		path += len + strspn(path + len, "/");
		if (*path == '\0')
			return len == 0 ? -ENOENT : step_beneath(at, name, flags, mode);
		next = step_beneath(at, name, O_PATH | O_DIRECTORY, 0);
		(void)fd_close(at);
		at = next;
	}
	return at;
}

static int open_resolved(int dir, const char *path, int flags, unsigned mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
		/* The kernel rejects a mode without a creating flag. */
		.mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? mode : 0,
		.resolve = resolve,
	};
	int r;

	/* RESOLVE_BENEATH accepts "a/../b" and may return EAGAIN on a race. */
	if (has_dotdot(path))
		return -EXDEV;
	r = (int)RETRY(syscall(SYS_openat2, dir, path, &how, sizeof(how)));
	return r == -ENOSYS ? walk_beneath(dir, path, flags, mode) : r;
}

int fd_open_beneath(int dir, const char *path, int flags, unsigned mode)
{
	return open_resolved(dir, path, flags, mode,
	                     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

/* A link with ".." gives EAGAIN on a concurrent rename. */
#define INSIDE_TRIES 16

int fd_open_inside(int dir, const char *path, int flags, unsigned mode)
{
	int r = -EAGAIN;

	for (int i = 0; i < INSIDE_TRIES && r == -EAGAIN; i++)
		r = open_resolved(dir, path, flags, mode,
		                  RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
	return r;
}

int fd_pipe(int ret_fds[2], int flags)
{
	return or_errno(pipe2(ret_fds, flags | O_CLOEXEC));
}

int fd_socketpair(int type, int ret_fds[2])
{
	return or_errno(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ret_fds));
}

int fd_socket(int domain, int type, int protocol)
{
	return or_errno(socket(domain, type | SOCK_CLOEXEC, protocol));
}

int fd_accept(int fd)
{
	return RETRY(accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

int fd_memfd(const char *name, unsigned flags)
{
	return or_errno(memfd_create(name, flags | MFD_CLOEXEC));
}

int fd_signalfd(const int *signals, size_t count)
{
	sigset_t set, before;
	int fd;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < count; i++)
		if (sigaddset(&set, signals[i]) < 0)
			return -errno;
	/* Block first, or a signal in between has its default effect. */
	if (sigprocmask(SIG_BLOCK, &set, &before) < 0)
		return -errno;
	fd = or_errno(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
	if (fd < 0)
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return fd;
}

int fd_epoll(void)
{
	return or_errno(epoll_create1(EPOLL_CLOEXEC));
}

int fd_eventfd(void)
{
	return or_errno(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

int fd_inotify(void)
{
	return or_errno(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
}

int fd_dup(int fd)
{
	/* Never 0, 1 or 2: those are stdio even when closed. */
	return or_errno(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

/* By its name, beside @ptmx: gVisor cannot open the other end of a descriptor. There nobody else
 * mounts anything on the directory. */
static int open_terminal_end(int fd, const char *ptmx)
{
	const char *slash = strrchr(ptmx, '/');
	unsigned number;
	char path[64];
	int len;

	/* The C libraries disagree about the type of this number. */
	if (syscall(SYS_ioctl, fd, TIOCGPTN, &number) < 0)
		return -errno;
	len = snprintf(path, sizeof(path), "%.*s/%u", slash ? (int)(slash - ptmx) : 0, ptmx,
	               number);
	if (len < 0 || (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	return fd_open(path, O_RDWR | O_NOCTTY, 0);
}

int fd_terminal(const char *ptmx, int *ret_end)
{
	cleanup_close int fd = fd_open(ptmx, O_RDWR | O_NOCTTY | O_NONBLOCK, 0);
	const int unlocked = 0;
	int end;

	if (fd < 0)
		return fd;
	if (ioctl(fd, TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	end = or_errno(ioctl(fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
	if (end == -ENOTTY)
		end = open_terminal_end(fd, ptmx);
	if (end < 0)
		return end;
	*ret_end = end;
	return TAKE_FD(fd);
}

int fd_pidfd_open(pid_t pid)
{
	return or_errno((int)syscall(SYS_pidfd_open, pid, 0)); /* always close-on-exec */
}

int fd_pidfd_kill(int pidfd, int signo)
{
	return or_errno((int)syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0));
}

int fd_peer_pidfd(int sock)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(int);
	int pidfd = -1;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
		return pidfd; /* always close-on-exec */
	if (errno != ENOPROTOOPT)
		return -errno;
	len = sizeof(peer);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	return peer.pid > 0 ? fd_pidfd_open(peer.pid) : -ESRCH;
}

int fd_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int fd_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = RETRY(write(fd, p, len));

		if (n < 0)
			return (int)n;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t fd_read_all(int fd, void *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = RETRY(read(fd, (char *)data + done, len - done));

		if (n < 0)
			return n;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

union control {
	char space[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
	char with_sender[CMSG_SPACE(FD_PASS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	struct cmsghdr align;
};

int fd_send(int sock, const void *data, size_t len, const int *fds, size_t count)
{
	union control control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (count > FD_PASS_MAX)
		return -EINVAL;
	if (count > 0) {
		msg.msg_control = control.space;
		/* The C libraries disagree about the types of both lengths. */
		msg.msg_controllen = (unsigned)CMSG_SPACE(count * sizeof(int));

		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = (unsigned)CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	n = RETRY(sendmsg(sock, &msg, MSG_NOSIGNAL));
	if (n < 0)
		return (int)n;
	/* Only a stream socket sends a part; the rest would lose its descriptors. */
	return (size_t)n == len ? 0 : -EMSGSIZE;
}

/* musl's CMSG_NXTHDR has sign conversions. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
static void read_once(const struct cmsghdr *c, int fds[FD_PASS_MAX], size_t *count)
{
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < n; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		/* Alignment may leave room for more descriptors than requested. */
		if (*count < FD_PASS_MAX)
			fds[(*count)++] = fd;
		else
			(void)fd_close(fd);
	}
}

static size_t take_ancillary(struct msghdr *msg, int fds[FD_PASS_MAX], struct ucred *ret_sender)
{
	size_t count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			read_once(c, fds, &count);
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS && ret_sender)
			memcpy(ret_sender, CMSG_DATA(c), sizeof(*ret_sender));
	}
	return count;
}
#pragma GCC diagnostic pop

ssize_t fd_recv(int sock, void *data, size_t size, int *ret_fds, size_t *ret_count)
{
	return fd_recv_from(sock, &(struct iovec){.iov_base = data, .iov_len = size}, ret_fds,
	                    ret_count, NULL);
}

/*
 * A SOCK_SEQPACKET socket can report EOF although a message is queued, when the last message and
 * the close arrive between the kernel's two checks (a few in a million). So EOF counts only when
 * read twice. An empty message looks like EOF; one that follows it is returned.
 */
ssize_t fd_recv_plain(int sock, void *data, size_t size, int flags)
{
	ssize_t n = RETRY(recv(sock, data, size, flags));

	if (n != 0)
		return n;
	n = RETRY(recv(sock, data, size, flags | MSG_DONTWAIT));
	return n == -EAGAIN ? 0 : n;
}

static ssize_t recv_once(int sock, struct msghdr *msg, unsigned room, int flags)
{
	msg->msg_controllen = room;
	return RETRY(recvmsg(sock, msg, MSG_CMSG_CLOEXEC | flags));
}

static void close_all(const int *fds, size_t count)
{
	while (count > 0)
		(void)fd_close(fds[--count]);
}

ssize_t fd_recv_from(int sock, const struct iovec *into, int *ret_fds, size_t *ret_count,
                     struct ucred *ret_sender)
{
	union control control = {0};
	struct iovec iov = *into;
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	unsigned most = ret_sender ? sizeof(control) : sizeof(control.space);
	unsigned room = ret_fds ? most : 0;
	int fds[FD_PASS_MAX];
	size_t count = 0;
	ssize_t n;

	msg.msg_control = ret_fds ? control.space : NULL;
	n = recv_once(sock, &msg, room, 0);
	if (n == 0) {
		close_all(fds, take_ancillary(&msg, fds, NULL));
		n = recv_once(sock, &msg, room, MSG_DONTWAIT);
		/* Nothing follows: *msg still describes the first read. */
		if (n == -EAGAIN) {
			msg.msg_controllen = 0;
			msg.msg_flags = 0;
			n = 0;
		}
	}
	if (n < 0)
		return n;
	if (ret_fds)
		count = take_ancillary(&msg, fds, ret_sender);
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		n = -EMSGSIZE;
	/* An empty message looks like EOF; do not leak its descriptors. */
	if (n <= 0) {
		close_all(fds, count);
		count = 0;
	}
	if (n < 0)
		return n;
	if (ret_fds) {
		memcpy(ret_fds, fds, count * sizeof(int));
		*ret_count = count;
	}
	return n;
}
