/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "oci/runtimes.h"
#include "wire/container.h"
#include "wire/reattach.h"

/*
 * Theory of operation. The last step of a box: this process, PID 1 of the box's outer pid
 * namespace, starts the runtime and waits. Its end is the end of all: the kernel kills what is left
 * in the namespace, whatever the runtime did.
 *
 * The agent runs when it says so on a socket that the runtime passes to it, or, if the runtime
 * passes only the standard descriptors, when the runtime reports success. The agent waits until the
 * engine has taken note (wire/container.h). Until then what the runtime prints is kept, up to a
 * maximum, for the error; afterwards it is read and dropped.
 */

#define SAID_MAX 160 /* of its output, in an error */
#define FDS_END  7   /* the runtime's descriptors are below */

enum source {
	SOURCE_OUTPUT,
	SOURCE_READY,
	SOURCE_CHILDREN,
	SOURCE_ENGINE, /* the status socket, until the engine closes it */
	SOURCE_COUNT
};

struct launch {
	const struct runtime_row *row;
	int fds[SOURCE_COUNT];
	pid_t runtime;
	bool agent_runs;
	int status; /* of the last process that ended */
	size_t said_len;
	char said[SAID_MAX + 1];
};

/* In the runtime's process. */

/* Past all numbers that will be taken. */
static int move_up(int fd)
{
	int high = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, FDS_END);

	return high < 0 ? -errno : high;
}

/* @fds by number: -1: closed. */
static int place_fds(int fds[FDS_END], int *exe)
{
	for (int i = 0; i < FDS_END; i++)
		if (fds[i] >= 0 && (fds[i] = move_up(fds[i])) < 0)
			return fds[i];
	*exe = move_up(*exe);
	if (*exe < 0)
		return *exe;
	for (int i = 0; i < FDS_END; i++)
		if (fds[i] >= 0 ? dup2(fds[i], i) < 0
		                : close_range((unsigned)i, (unsigned)i, 0) < 0)
			return -errno;
	/* The rest is close-on-exec, and the engine's copies are already closed in this process. */
	return syscall(SYS_close_range, (unsigned)*exe + 1, ~0U, 0) < 0 ? -errno : 0;
}

/* As many as the command names have to be open. */
static int choose_fds(const struct build *b, int output, int ready, int fds[FDS_END])
{
	const struct runtime_row *row = runtime_row_of(b->host);
	int null = fd_open("/dev/null", O_RDWR, 0);

	if (null < 0)
		return null;
	/* One descriptor only: gVisor shuts a socket down when one of its copies is closed. */
	fds[STDIN_FILENO] = row->by_stdio ? b->agent_box : null;
	fds[STDOUT_FILENO] = output;
	fds[STDERR_FILENO] = output;
	if (row->by_stdio)
		return 0;
	fds[STDERR_FILENO + 1] = b->agent_box;
	fds[REATTACH_FD] = b->reattach_box >= 0 ? b->reattach_box : null;
	fds[CONTAINER_READY_FD] = ready;
	if (!row->bundle_file)
		fds[PLACE_DESCRIPTION_FD] = b->description;
	return 0;
}

static void attr_noreturn run_runtime(const struct build *b, int output, int ready)
{
	int fds[FDS_END] = {-1, -1, -1, -1, -1, -1, -1};
	const char *words[RUNTIME_WORDS_MAX];
	char *envp[] = {NULL};
	int exe = b->host->runtime_exe;
	sigset_t none;
	int r = choose_fds(b, output, ready, fds);

	(void)sigemptyset(&none);
	if (r >= 0 && sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		r = -errno;
	if (r >= 0)
		r = place_fds(fds, &exe);
	runtime_command(runtime_row_of(b->host), b->plan.flags, words);
	/* execve does not change the words; its type lacks the const. */
	if (r >= 0 && execveat(exe, "", (char *const *)(uintptr_t)words, envp, AT_EMPTY_PATH) < 0)
		r = -errno;
	(void)dprintf(STDERR_FILENO, "it cannot be executed: %s\n", strerror(-r));
	_exit(1);
}

/* In the process that waits. */

static void keep_output(struct launch *l)
{
	char text[1024];
	ssize_t n = read(l->fds[SOURCE_OUTPUT], text, sizeof(text));

	if (n <= 0) {
		l->fds[SOURCE_OUTPUT] = fd_close(l->fds[SOURCE_OUTPUT]);
		return;
	}
	for (ssize_t i = 0; i < n && l->said_len < SAID_MAX; i++)
		l->said[l->said_len++] = (char)(text[i] >= ' ' && text[i] <= '~' ? text[i] : ' ');
}

static void announce_agent(struct launch *l)
{
	const char byte = 0;

	if (l->agent_runs)
		return;
	l->agent_runs = true;
	(void)send(l->fds[SOURCE_ENGINE], &byte, sizeof(byte), MSG_NOSIGNAL);
}

/* It has taken note, or is gone. */
static void release_agent(struct launch *l)
{
	l->fds[SOURCE_ENGINE] = fd_close(l->fds[SOURCE_ENGINE]);
	l->fds[SOURCE_READY] = fd_close(l->fds[SOURCE_READY]);
}

static void read_ready(struct launch *l)
{
	char byte;

	if (read(l->fds[SOURCE_READY], &byte, sizeof(byte)) == sizeof(byte))
		announce_agent(l);
	else
		l->fds[SOURCE_READY] = fd_close(l->fds[SOURCE_READY]);
}

/* Return: whether processes are left. */
static bool reap(struct launch *l)
{
	struct signalfd_siginfo info[4];
	pid_t pid;

	(void)!read(l->fds[SOURCE_CHILDREN], info, sizeof(info));
	while ((pid = waitpid(-1, &l->status, WNOHANG)) > 0)
		if (pid == l->runtime && l->row->by_stdio && l->status == 0)
			announce_agent(l);
	return pid == 0;
}

static void wait_for_all(struct launch *l)
{
	bool left = true;

	while (left) {
		struct pollfd in[SOURCE_COUNT];

		for (size_t i = 0; i < SOURCE_COUNT; i++)
			in[i] = (struct pollfd){.fd = l->fds[i], .events = POLLIN};
		if (poll(in, SOURCE_COUNT, -1) < 0 && errno != EINTR)
			return;
		if (in[SOURCE_OUTPUT].revents)
			keep_output(l);
		if (in[SOURCE_READY].revents)
			read_ready(l);
		if (in[SOURCE_ENGINE].revents)
			release_agent(l);
		if (in[SOURCE_CHILDREN].revents)
			left = reap(l);
	}
}

static int exit_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Boxes end by SIGKILL: PID 1 cannot end itself that way, and takes the agent's other exit code. */
static int code_of_end(int status)
{
	int code = exit_code(status);

	return code == 128 + SIGKILL ? EXIT_FAILURE : code;
}

static int report_failure(const struct launch *l, struct error *err)
{
	const char *name = l->row->runtime.name;

	if (WIFSIGNALED(l->status) && WTERMSIG(l->status) == SIGKILL)
		return error_set(err, ERR_BOX_FAILED, 0,
		                 "%s was killed before the agent ran: is the memory limit of the "
		                 "box too small for it?",
		                 name);
	return error_set(err, ERR_BOX_FAILED, 0, "%s ended (status %d) before the agent ran: %s",
	                 name, exit_code(l->status), l->said_len > 0 ? l->said : "it said nothing");
}

static int open_sources(struct launch *l, int ret_ends[2], struct error *err)
{
	static const int signals[] = {SIGCHLD};
	int output[2] = {-1, -1}, ready[2] = {-1, -1};
	int r = l->fds[SOURCE_CHILDREN] = fd_signalfd(signals, ARRAY_SIZE(signals));

	if (r >= 0)
		r = fd_pipe(output, 0);
	if (r >= 0)
		r = fd_socketpair(SOCK_STREAM, ready);
	l->fds[SOURCE_OUTPUT] = output[0];
	l->fds[SOURCE_READY] = ready[0];
	ret_ends[0] = output[1];
	ret_ends[1] = ready[1];
	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "channels of the runtime") : 0;
}

static int compare_fds(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/*
 * This process goes on as a copy of the engine, beside a program that has its ids and capabilities.
 * It must hold no descriptor of the engine (the daemon's socket, groups, other boxes), and its
 * memory must not be readable: not dumpable, only who has capabilities outside can trace it.
 */
static int forget_engine(const struct build *b)
{
	int kept[] = {b->sync_box, b->agent_box, b->reattach_box, b->description,
	              b->host->runtime_exe};
	int null = fd_open("/dev/null", O_RDWR, 0);
	int low = STDERR_FILENO + 1, r = null;

	if (r >= 0 && (dup2(null, STDERR_FILENO) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0))
		r = -errno;
	qsort(kept, ARRAY_SIZE(kept), sizeof(kept[0]), compare_fds);
	for (size_t i = 0; i < ARRAY_SIZE(kept) && r >= 0; i++) {
		if (kept[i] > low && close_range((unsigned)low, (unsigned)kept[i] - 1, 0) < 0)
			r = -errno;
		if (kept[i] >= low)
			low = kept[i] + 1;
	}
	return r >= 0 && close_range((unsigned)low, ~0U, 0) < 0 ? -errno : r;
}

int step_launch(struct build *b, struct error *err)
{
	struct launch l = {
		.row = runtime_row_of(b->host),
		.fds = {-1, -1, -1, b->sync_box},
	};
	int ends[2];
	int r = forget_engine(b);

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "forget the engine");
	if (open_sources(&l, ends, err) < 0)
		return -1;
	l.runtime = fork();
	if (l.runtime == 0)
		run_runtime(b, ends[0], ends[1]);
	if (l.runtime < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "fork for %s", l.row->runtime.name);
	/* The daemon must see the end of the agent's stream when the agent ends. */
	b->agent_box = fd_close(b->agent_box);
	b->reattach_box = fd_close(b->reattach_box);
	(void)fd_close(ends[0]);
	(void)fd_close(ends[1]);
	wait_for_all(&l);
	if (!l.agent_runs)
		return report_failure(&l, err);
	_exit(code_of_end(l.status));
}
