/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/fd.h"

/* Faults on demand: interrupt the next call, or limit it to so many bytes. */
static bool interrupt_once;
static size_t at_most;
static bool signalfd_fails;

static bool interrupted(void)
{
	bool now = interrupt_once;

	interrupt_once = false;
	if (now)
		errno = EINTR;
	return now;
}

static size_t limited(size_t len)
{
	return at_most && at_most < len ? at_most : len;
}

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len)
{
	return interrupted() ? -1 : __real_write(fd, data, limited(len));
}

ssize_t __real_read(int fd, void *data, size_t len);
ssize_t __wrap_read(int fd, void *data, size_t len);
ssize_t __wrap_read(int fd, void *data, size_t len)
{
	return interrupted() ? -1 : __real_read(fd, data, limited(len));
}

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return at_most ? (ssize_t)at_most : __real_sendmsg(fd, msg, flags);
}

int __real_signalfd(int fd, const sigset_t *mask, int flags);
int __wrap_signalfd(int fd, const sigset_t *mask, int flags);
int __wrap_signalfd(int fd, const sigset_t *mask, int flags)
{
	if (!signalfd_fails)
		return __real_signalfd(fd, mask, flags);
	errno = EMFILE;
	return -1;
}

static int closed_in_vain;

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	int r = __real_close(fd);

	closed_in_vain += r < 0 && errno == EBADF;
	return r;
}

struct fixture {
	char path[64];
	int dir;
	int lowest; /* what the next open returns, to detect leaks */
};

static int lowest_free(void)
{
	int fd = dup(0);

	assert_true(fd >= 0);
	(void)close(fd);
	return fd;
}

static int set_up(void **state)
{
	static struct fixture f;

	(void)snprintf(f.path, sizeof(f.path), "/tmp/millibox-test-fd-XXXXXX");
	if (!mkdtemp(f.path))
		return -1;
	f.dir = fd_open(f.path, O_RDONLY | O_DIRECTORY, 0);
	f.lowest = lowest_free();
	interrupt_once = false;
	at_most = 0;
	signalfd_fails = false;
	*state = &f;
	return f.dir < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	static const char *const made[] = {"d/f", "d/link", "f", "link", "s", "new", "etc"};
	struct fixture *f = *state;
	bool clean = lowest_free() == f->lowest;

	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		(void)unlinkat(f->dir, made[i], 0);
	(void)unlinkat(f->dir, "d", AT_REMOVEDIR);
	(void)fd_close(f->dir);
	return rmdir(f->path) == 0 && clean ? 0 : -1;
}

static void make_file(const struct fixture *f, const char *name, const char *text)
{
	cleanup_close int fd = fd_open_at(f->dir, name, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static bool is_cloexec(int fd)
{
	return fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

static bool is_nonblock(int fd)
{
	return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

static void closing_preserves_errno_and_forgets(void **state)
{
	int fd = fd_open("/dev/null", O_RDONLY, 0);
	int copy = fd;

	(void)state;
	errno = ENOTTY;
	fd_closep(&fd);
	assert_int_equal(fd, -1);
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(fcntl(copy, F_GETFD), -1);
	errno = ENOTTY;
	assert_int_equal(fd_close(-1), -1);
	assert_int_equal(fd_close(copy), -1);
	assert_int_equal(errno, ENOTTY);
}

static void everything_made_is_close_on_exec(void **state)
{
	int pair[2], pipes[2];
	int made[] = {
		fd_open("/dev/null", O_RDONLY, 0),
		fd_open_beneath(((struct fixture *)*state)->dir, ".", O_RDONLY | O_DIRECTORY, 0),
		fd_socket(AF_UNIX, SOCK_STREAM, 0),
		fd_memfd("x", 0),
		fd_epoll(),
		fd_inotify(),
		fd_dup(0),
		fd_pidfd_open(getpid()),
	};

	assert_int_equal(fd_pipe(pipes, O_NONBLOCK), 0);
	assert_int_equal(fd_socketpair(SOCK_SEQPACKET, pair), 0);
	assert_true(is_nonblock(pipes[0]) && is_nonblock(made[5]));
	assert_false(is_nonblock(pair[0]));
	assert_true(made[6] > 2);
	for (size_t i = 0; i < 2; i++) {
		assert_true(is_cloexec(pair[i]) && is_cloexec(pipes[i]));
		(void)fd_close(pair[i]);
		(void)fd_close(pipes[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		assert_true(made[i] >= 0);
		assert_true(is_cloexec(made[i]));
		(void)fd_close(made[i]);
	}
}

static void failures_are_negative_errno(void **state)
{
	struct fixture *f = *state;
	int fds[2];

	assert_int_equal(fd_open("/no/such/file", O_RDONLY, 0), -ENOENT);
	assert_int_equal(fd_open_at(f->dir, "none", O_RDONLY, 0), -ENOENT);
	assert_int_equal(fd_open_beneath(f->dir, "none", O_RDONLY, 0), -ENOENT);
	assert_int_equal(fd_pipe(fds, -1), -EINVAL);
	assert_int_equal(fd_socketpair(12345, fds), -EINVAL);
	assert_int_equal(fd_socket(-1, SOCK_STREAM, 0), -EAFNOSUPPORT);
	assert_int_equal(fd_accept(-1), -EBADF);
	assert_int_equal(fd_memfd("x", ~0U), -EINVAL);
	assert_int_equal(fd_dup(-1), -EBADF);
	assert_int_equal(fd_pidfd_open(-1), -EINVAL);
	assert_int_equal(fd_set_nonblock(-1, true), -EBADF);
	assert_int_equal(fd_write_all(-1, "x", 1), -EBADF);
	assert_int_equal(fd_read_all(-1, fds, 1), -EBADF);
	assert_int_equal(fd_send(-1, "x", 1, NULL, 0), -EBADF);
	assert_int_equal(fd_recv(-1, fds, 1, NULL, NULL), -EBADF);
}

static void beneath_finds_files_below_the_directory(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(mkdirat(f->dir, "d", 0700), 0);
	make_file(f, "d/f", "x");

	/* The mode must not matter when nothing is created. */
	int fd = fd_open_beneath(f->dir, "d/f", O_RDONLY, 0644);
	assert_true(fd >= 0);
	(void)fd_close(fd);
	fd = fd_open_beneath(f->dir, "d//f", O_RDONLY, 0);
	assert_true(fd >= 0);
	(void)fd_close(fd);
	fd = fd_open_beneath(f->dir, "new", O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	(void)fd_close(fd);
	fd = fd_open_beneath(f->dir, "..new", O_RDONLY, 0);
	assert_int_equal(fd, -ENOENT); /* a name, not a way up */
}

static void beneath_follows_nothing_out(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(mkdirat(f->dir, "d", 0700), 0);
	make_file(f, "f", "x");
	assert_int_equal(symlinkat("/etc/passwd", f->dir, "link"), 0);
	assert_int_equal(symlinkat("../f", f->dir, "d/link"), 0);

	assert_int_equal(fd_open_beneath(f->dir, "link", O_RDONLY, 0), -ELOOP);
	assert_int_equal(fd_open_beneath(f->dir, "d/link", O_RDONLY, 0), -ELOOP);
	assert_int_equal(fd_open_beneath(f->dir, "/etc/passwd", O_RDONLY, 0), -EXDEV);
	assert_int_equal(fd_open_beneath(f->dir, "..", O_RDONLY, 0), -EXDEV);
	assert_int_equal(fd_open_beneath(f->dir, "d/../f", O_RDONLY, 0), -EXDEV);
	assert_int_equal(fd_open_beneath(f->dir, "d/..", O_RDONLY, 0), -EXDEV);

	/* Negative control: the plain open follows the link. */
	int fd = fd_open_at(f->dir, "link", O_RDONLY, 0);
	assert_true(fd >= 0);
	(void)fd_close(fd);
}

static void beneath_crosses_no_mount(void **state)
{
	cleanup_close int root = fd_open("/", O_RDONLY | O_DIRECTORY, 0);

	(void)state;
	assert_true(root >= 0);
	assert_int_equal(fd_open_beneath(root, "proc/version", O_RDONLY, 0), -EXDEV);
}

static void accepted_connections_do_not_block(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	cleanup_close int server = fd_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	cleanup_close int client = fd_socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/s", f->path);
	assert_int_equal(bind(server, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(server, 1), 0);
	assert_int_equal(fd_accept(server), -EAGAIN);
	assert_int_equal(connect(client, (struct sockaddr *)&addr, sizeof(addr)), 0);

	cleanup_close int accepted = fd_accept(server);
	assert_true(accepted >= 0);
	assert_true(is_nonblock(accepted) && is_cloexec(accepted));
}

static void signals_arrive_on_their_descriptor(void **state)
{
	static const int signals[] = {SIGUSR1, SIGUSR2};
	cleanup_close int fd = fd_signalfd(signals, 2);
	struct signalfd_siginfo info;

	(void)state;
	assert_true(fd >= 0);
	assert_true(is_cloexec(fd) && is_nonblock(fd));
	assert_int_equal(raise(SIGUSR2), 0);
	assert_int_equal(fd_read_all(fd, &info, sizeof(info)), sizeof(info));
	assert_int_equal(info.ssi_signo, SIGUSR2);
	assert_int_equal(fd_read_all(fd, &info, sizeof(info)), -EAGAIN);
}

static void signals_that_cannot_be_had_stay_as_they_were(void **state)
{
	sigset_t before, after;

	(void)state;
	(void)sigprocmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(fd_signalfd((const int[]){SIGHUP, 12345}, 2), -EINVAL);
	signalfd_fails = true;
	assert_int_equal(fd_signalfd((const int[]){SIGHUP}, 1), -EMFILE);
	(void)sigprocmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&after, SIGHUP), sigismember(&before, SIGHUP));
}

static void blocking_is_switched_both_ways(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(fd_pipe(fds, 0), 0);
	assert_int_equal(fd_set_nonblock(fds[0], true), 0);
	assert_true(is_nonblock(fds[0]));
	assert_int_equal(fd_set_nonblock(fds[0], false), 0);
	assert_false(is_nonblock(fds[0]));
	(void)fd_close(fds[0]);
	(void)fd_close(fds[1]);
}

static void short_and_interrupted_transfers_are_completed(void **state)
{
	cleanup_close int fd = fd_memfd("x", 0);
	char text[16] = "";

	(void)state;
	at_most = 3;
	interrupt_once = true;
	assert_int_equal(fd_write_all(fd, "0123456789", 10), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	interrupt_once = true;
	assert_int_equal(fd_read_all(fd, text, sizeof(text)), 10);
	assert_string_equal(text, "0123456789");
	assert_int_equal(fd_read_all(fd, text, sizeof(text)), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_all(fd, text, 4), 4);
	assert_int_equal(fd_read_all(fd, text, 0), 0);
}

static void messages_carry_descriptors(void **state)
{
	int pair[2], sent[FD_PASS_MAX], got[FD_PASS_MAX];
	size_t count = 99;
	char text[8] = "";
	struct stat a, b;

	(void)state;
	assert_int_equal(fd_socketpair(SOCK_SEQPACKET, pair), 0);
	for (size_t i = 0; i < FD_PASS_MAX; i++)
		sent[i] = fd_memfd("x", 0);
	assert_int_equal(fd_send(pair[0], "abc", 3, sent, FD_PASS_MAX), 0);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), got, &count), 3);
	assert_string_equal(text, "abc");
	assert_int_equal(count, FD_PASS_MAX);
	for (size_t i = 0; i < FD_PASS_MAX; i++) {
		assert_int_equal(fstat(sent[i], &a), 0);
		assert_int_equal(fstat(got[i], &b), 0);
		assert_true(a.st_ino == b.st_ino);
		assert_true(is_cloexec(got[i]));
		(void)fd_close(sent[i]);
		(void)fd_close(got[i]);
	}
	assert_int_equal(fd_send(pair[0], "d", 1, NULL, 0), 0);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), got, &count), 1);
	assert_int_equal(count, 0);
	(void)fd_close(pair[0]);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), got, &count), 0);
	(void)fd_close(pair[1]);
}

static void refused_messages_leave_no_descriptor_open(void **state)
{
	struct fixture *f = *state;
	int pair[2], got[FD_PASS_MAX];
	size_t count = 99;
	char text[2];

	assert_int_equal(fd_socketpair(SOCK_SEQPACKET, pair), 0);
	int before = lowest_free();

	assert_int_equal(fd_send(pair[0], "too long", 8, (const int[]){0, 1}, 2), 0);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), got, &count), -EMSGSIZE);
	assert_int_equal(fd_send(pair[0], "", 0, (const int[]){0}, 1), 0);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), got, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(fd_send(pair[0], "ab", 2, (const int[]){0}, 1), 0);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), NULL, NULL), -EMSGSIZE);
	assert_int_equal(fd_send(pair[0], "too long", 8, NULL, 0), 0);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), NULL, NULL), -EMSGSIZE);
	assert_int_equal(fd_send(pair[0], "ok", 2, NULL, 0), 0);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), NULL, NULL), 2);

	assert_int_equal(lowest_free(), before);
	(void)fd_close(pair[0]);
	(void)fd_close(pair[1]);
	(void)f;
}

/* More than FD_PASS_MAX, sent by a peer that does not use fd_send. */
static void too_many_descriptors_are_all_closed(void **state)
{
	union {
		char space[CMSG_SPACE(12 * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = (char[]){'x'}, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
	                     .msg_iovlen = 1,
	                     .msg_control = control.space,
	                     .msg_controllen = sizeof(control.space)};
	int pair[2], got[FD_PASS_MAX], zeros[12] = {0};
	size_t count = 99;
	char text[2];

	(void)state;
	assert_int_equal(fd_socketpair(SOCK_SEQPACKET, pair), 0);
	int before = lowest_free();
	struct cmsghdr *c = &control.align;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(zeros));
	memcpy(CMSG_DATA(c), zeros, sizeof(zeros));
	assert_int_equal(sendmsg(pair[0], &msg, 0), 1);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), got, &count), -EMSGSIZE);
	assert_int_equal(count, 99);
	assert_int_equal(lowest_free(), before);
	assert_int_equal(fd_send(pair[0], "x", 1, zeros, FD_PASS_MAX + 1), -EINVAL);
	(void)fd_close(pair[0]);
	(void)fd_close(pair[1]);
}

/* Only descriptors are taken from the ancillary data: credentials are skipped. */
static void other_ancillary_data_is_passed_over(void **state)
{
	int pair[2], got[FD_PASS_MAX];
	size_t count = 99;
	char text[2];

	(void)state;
	assert_int_equal(fd_socketpair(SOCK_SEQPACKET, pair), 0);
	assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)), 0);
	assert_int_equal(fd_send(pair[0], "x", 1, NULL, 0), 0);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), got, &count), 1);
	assert_int_equal(count, 0);
	(void)fd_close(pair[0]);
	(void)fd_close(pair[1]);
}

static void a_dead_peer_is_an_error_and_no_signal(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(fd_socketpair(SOCK_STREAM, pair), 0);
	(void)fd_close(pair[1]);
	assert_int_equal(fd_send(pair[0], "x", 1, NULL, 0), -EPIPE);
	at_most = 1;
	assert_int_equal(fd_send(pair[0], "xy", 2, NULL, 0), -EMSGSIZE);
	(void)fd_close(pair[0]);
}

#define LAST_WORDS   100000 /* enough for the kernel to get it wrong about twenty times */
#define LAST_WORDS_S 10     /* a machine whose cores are all busy does fewer */

static _Atomic int speaker = -1; /* -2: no more */

/* Sends one message and closes. */
static void *speak(void *arg)
{
	int fd;

	(void)arg;
	while ((fd = speaker) != -2)
		if (fd >= 0) {
			(void)!send(fd, "x", 1, MSG_NOSIGNAL);
			(void)fd_close(fd);
			speaker = -1;
		} else {
			(void)sched_yield();
		}
	return NULL;
}

static ssize_t hear(int fd, int way)
{
	char text[2];
	int got[FD_PASS_MAX];
	size_t count = 0;

	return way == 0 ? fd_recv(fd, text, sizeof(text), got, &count)
	                : fd_recv_plain(fd, text, sizeof(text), MSG_DONTWAIT);
}

/* The kernel sometimes reports EOF before them: see fd.c. */
static void last_messages_are_read_before_the_end(void **state)
{
	const time_t end = time(NULL) + LAST_WORDS_S;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, speak, NULL), 0);
	for (int i = 0; i < LAST_WORDS && time(NULL) < end; i++) {
		int pair[2], tries = 0;
		ssize_t n;

		assert_int_equal(fd_socketpair(SOCK_SEQPACKET, pair), 0);
		assert_int_equal(fd_set_nonblock(pair[0], true), 0);
		speaker = pair[1];
		/* Yield only when the other thread is not running: the race needs both. */
		while ((n = hear(pair[0], i % 2)) == -EAGAIN)
			if (++tries % 1000 == 0)
				(void)sched_yield();
		assert_int_equal(n, 1);
		while (speaker != -1)
			(void)sched_yield();
		assert_int_equal(hear(pair[0], i % 2), 0);
		(void)fd_close(pair[0]);
	}
	speaker = -2;
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void an_empty_message_is_not_the_end_of_those_behind_it(void **state)
{
	int pair[2], got[FD_PASS_MAX];
	size_t count = 99;
	char text[4];

	(void)state;
	assert_int_equal(fd_socketpair(SOCK_SEQPACKET, pair), 0);
	int before = lowest_free();
	assert_int_equal(fd_send(pair[0], "", 0, (const int[]){0}, 1), 0);
	assert_int_equal(fd_send(pair[0], "ab", 2, (const int[]){0}, 1), 0);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), got, &count), 2);
	assert_int_equal(count, 1);
	(void)fd_close(got[0]);
	assert_int_equal(fd_send(pair[0], "", 0, NULL, 0), 0);
	assert_int_equal(fd_send(pair[0], "abc", 3, NULL, 0), 0);
	assert_int_equal(fd_recv_plain(pair[1], text, 2, MSG_TRUNC), 3);
	assert_int_equal(fd_recv_plain(pair[1], text, 2, MSG_DONTWAIT), -EAGAIN);
	assert_int_equal(fd_recv_plain(-1, text, 2, 0), -EBADF);
	assert_int_equal(lowest_free(), before);
	(void)fd_close(pair[0]);
	(void)fd_close(pair[1]);
}

/* Another thread may have the numbers by then. */
static void descriptors_of_an_empty_message_are_closed_once(void **state)
{
	int pair[2], got[FD_PASS_MAX];
	size_t count = 99;
	char text[4];

	(void)state;
	assert_int_equal(fd_socketpair(SOCK_SEQPACKET, pair), 0);
	assert_int_equal(fd_set_nonblock(pair[1], true), 0);
	int before = lowest_free();
	for (int messages = 1; messages <= 3; messages++) {
		for (int i = 0; i < messages; i++)
			assert_int_equal(fd_send(pair[0], "", 0, (const int[]){0, 0}, 2), 0);
		closed_in_vain = 0;
		for (int i = 0; i < messages; i++)
			assert_int_equal(fd_recv(pair[1], text, sizeof(text), got, &count),
			                 i < (messages + 1) / 2 ? 0 : -EAGAIN);
		assert_int_equal(closed_in_vain, 0);
		assert_int_equal(lowest_free(), before);
	}
	(void)fd_close(pair[0]);
	(void)fd_close(pair[1]);
}

static void the_peer_of_a_socket_is_signalled_through_its_pidfd(void **state)
{
	cleanup_close int pidfd = -1;
	int pair[2], status = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(fd_socketpair(SOCK_STREAM, pair), 0);
	/* Both ends are ours: the peer is this process. */
	pidfd = fd_peer_pidfd(pair[0]);
	assert_true(pidfd >= 0);
	assert_int_equal(fd_pidfd_kill(pidfd, 0), 0);
	pidfd = fd_close(pidfd);
	(void)fd_close(pair[0]);
	(void)fd_close(pair[1]);
	pid = fork();
	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	pidfd = fd_pidfd_open(pid);
	assert_int_equal(fd_pidfd_kill(pidfd, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	/* Its number may be another's now; the descriptor reaches no process. */
	assert_int_equal(fd_pidfd_kill(pidfd, SIGKILL), -ESRCH);
	assert_int_equal(fd_pidfd_kill(-1, SIGKILL), -EBADF);
	assert_int_equal(fd_peer_pidfd(-1), -EBADF);
}

/* From here on, as under gVisor. */
static void the_kernel_may_lack_openat2(void **state)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {.len = ARRAY_SIZE(code), .filter = code};
	struct fixture *f = *state;

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter), 0);
	assert_int_equal(syscall(SYS_openat2, f->dir, ".", NULL, 0), -1);
	assert_int_equal(errno, ENOSYS);
}

/* Where links cannot be followed safely, none is. */
static void inside_follows_no_link_without_openat2(void **state)
{
	struct fixture *f = *state;

	make_file(f, "f", "x");
	assert_int_equal(symlinkat("f", f->dir, "link"), 0);
	assert_int_equal(symlinkat("/etc", f->dir, "etc"), 0);
	assert_int_equal(fd_open_inside(f->dir, "link", O_RDONLY, 0), -ELOOP);
	assert_int_equal(fd_open_inside(f->dir, "etc/passwd", O_RDONLY, 0), -ENOTDIR);
	assert_int_equal(fd_open_beneath(f->dir, "none/f", O_RDONLY, 0), -ENOENT);
	assert_int_equal(fd_open_beneath(f->dir, "", O_RDONLY, 0), -ENOENT);
}

#define fd_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fd_test(closing_preserves_errno_and_forgets),
		fd_test(everything_made_is_close_on_exec),
		fd_test(failures_are_negative_errno),
		fd_test(beneath_finds_files_below_the_directory),
		fd_test(beneath_follows_nothing_out),
		fd_test(beneath_crosses_no_mount),
		fd_test(accepted_connections_do_not_block),
		fd_test(signals_arrive_on_their_descriptor),
		fd_test(signals_that_cannot_be_had_stay_as_they_were),
		fd_test(blocking_is_switched_both_ways),
		fd_test(short_and_interrupted_transfers_are_completed),
		fd_test(messages_carry_descriptors),
		fd_test(refused_messages_leave_no_descriptor_open),
		fd_test(too_many_descriptors_are_all_closed),
		fd_test(other_ancillary_data_is_passed_over),
		fd_test(a_dead_peer_is_an_error_and_no_signal),
		fd_test(the_peer_of_a_socket_is_signalled_through_its_pidfd),
		fd_test(last_messages_are_read_before_the_end),
		fd_test(an_empty_message_is_not_the_end_of_those_behind_it),
		fd_test(descriptors_of_an_empty_message_are_closed_once),
		fd_test(the_kernel_may_lack_openat2),
		fd_test(beneath_finds_files_below_the_directory),
		fd_test(beneath_follows_nothing_out),
		fd_test(beneath_crosses_no_mount),
		fd_test(inside_follows_no_link_without_openat2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
