/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/engine_internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "driver/engine_starter.h"
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
	struct engine_reply reply = {.op = ENGINE_FAILED, .seq = ENGINE_PROBE_SEQ};
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

int engine_wait_readable(int fd, uint64_t deadline_us)
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

bool engine_is_of_past(const struct engine_reply *reply)
{
	return (reply->op == ENGINE_GONE || reply->op == ENGINE_FAILED) && reply->box_id[0] != '\0';
}

static int read_reply(int sock, uint64_t deadline, struct engine_reply *ret_reply,
                      struct helper_group *ret_group, struct error *err)
{
	int r = engine_wait_readable(sock, deadline);
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

/* It is shown, and signed in receipts. */
static bool is_plain(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return len < size;
}

int engine_check_probe(const struct engine_probe *p, struct error *err)
{
	if (p->cgroup >= ENGINE_CGROUP_COUNT || p->ids >= ENGINE_IDS_COUNT ||
	    (p->layers & ~LAYERS_ALL) || (p->features & ~ENGINE_CAN_ALL) ||
	    p->grade >= ENGINE_GRADE_COUNT || p->boxes_max == 0 ||
	    !is_plain(p->runtime, sizeof(p->runtime)) || !is_plain(p->release, sizeof(p->release)))
		return error_set(err, ERR_PROTOCOL, 0, "its probe is malformed");
	return 0;
}

static int read_probe(int sock, struct engine_probe *ret_probe, struct helper_group *ret_group,
                      struct error *err)
{
	uint64_t deadline = clock_us() + ENGINE_PROBE_TIMEOUT_US;
	struct engine_reply reply = {0};

	do {
		helper_group_close(ret_group);
		if (read_reply(sock, deadline, &reply, ret_group, err) < 0)
			return -1;
	} while (engine_is_of_past(&reply));
	if (reply.op == ENGINE_FAILED) {
		reply.error.msg[sizeof(reply.error.msg) - 1] = '\0';
		return error_set(err, ERR_UNAVAILABLE, reply.error.sys, "%.200s", reply.error.msg);
	}
	if (reply.op != ENGINE_PROBED || reply.seq != ENGINE_PROBE_SEQ)
		return error_set(err, ERR_PROTOCOL, 0, "it sent an unexpected reply");
	if (engine_check_probe(&reply.probe, err) < 0)
		return -1;
	*ret_probe = reply.probe;
	return 0;
}

int engine_probe(int sock, struct engine_probe *ret_probe, struct helper_group *ret_group,
                 struct error *err)
{
	struct engine_request request = {.op = ENGINE_PROBE, .seq = ENGINE_PROBE_SEQ};
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

int engine_wait_end(pid_t pid, uint64_t timeout_us)
{
	uint64_t deadline = clock_us() + timeout_us;
	cleanup_close int pidfd = fd_pidfd_open(pid);
	int status = 0;

	if (pidfd < 0)
		return pidfd;
	if (engine_wait_readable(pidfd, deadline) < 0)
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

int engine_fork(const char *program, char *const *argv, int *ret_sock, pid_t *ret_pid,
                struct error *err)
{
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
	pid = fork();
	if (pid < 0)
		return error_set(err, ERR_SYSTEM, errno, "fork");
	if (pid == 0)
		become_engine(program, argv, theirs);
	*ret_sock = TAKE_FD(ours);
	*ret_pid = pid;
	return 0;
}

int engine_start(const struct engine_config *config, struct engine_process *ret_process,
                 struct error *err)
{
	attr_cleanup(engine_command_done) struct engine_command command = {0};
	struct engine_process process = {.pidfd = -1};
	cleanup_close int sock = -1;

	engine_command_of(config, &command);
	if (engine_fork(command.program, command.argv, &sock, &process.pid, err) < 0)
		return -1;
	if (engine_probe(sock, &process.probe, &process.import_group, err) < 0) {
		/* Without its socket it ends and removes its names, if it can. */
		sock = fd_close(sock);
		if (engine_wait_end(process.pid, ENGINE_END_TIMEOUT_US) == -ETIMEDOUT)
			kill_engine(process.pid);
		return -1;
	}
	process.sock = TAKE_FD(sock);
	*ret_process = process;
	return 0;
}

int engine_start_by(struct engine_starter *starter, uint32_t number,
                    struct engine_process *ret_process, struct error *err)
{
	struct engine_started started;
	struct engine_process process = {0};

	if (engine_starter_wait(starter, number, &started, err) < 0)
		return -1;
	if (engine_probe(started.sock, &process.probe, &process.import_group, err) < 0) {
		(void)fd_close(started.sock);
		(void)fd_close(started.pidfd);
		return -1;
	}
	/* Images are imported into the group of the first engine. */
	helper_group_close(&process.import_group);
	process.sock = started.sock;
	process.pidfd = started.pidfd;
	*ret_process = process;
	return 0;
}
