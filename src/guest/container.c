/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/container.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "guest/agent.h"
#include "wire/container.h"
#include "wire/reattach.h"

/* The other direction of the control stream, if its input is a pipe. */
#define OUTPUT_FD (AGENT_SOCKET + 1)

static int read_words(struct container *c, char **argv)
{
	uint64_t lacks = 0;

	for (; *argv; argv++) {
		if (str_equal(*argv, CONTAINER_WORD))
			c->is_used = true;
		else if (str_equal(*argv, CONTAINER_STDIO_WORD))
			c->is_used = c->by_stdio = true;
		else if (str_equal(*argv, CONTAINER_ROOT_WORD))
			c->has_own_root = true;
		else if (str_has_prefix(*argv, CONTAINER_LACKS) &&
		         parse_u64(*argv + strlen(CONTAINER_LACKS), &lacks) < 0)
			return -EINVAL;
	}
	c->lacks = (uint32_t)lacks;
	return 0;
}

static bool is_socket(int fd)
{
	int type;
	socklen_t len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
}

static int take_stdio(struct container *c)
{
	if (dup3(STDIN_FILENO, AGENT_SOCKET, O_CLOEXEC) < 0)
		return -errno;
	if (is_socket(AGENT_SOCKET))
		return 0;
	if (dup3(STDOUT_FILENO, OUTPUT_FD, O_CLOEXEC) < 0)
		return -errno;
	c->output = OUTPUT_FD;
	return 0;
}

/* A kernel without the call: nothing there was opened by us. */
static void close_from(int first)
{
	if (syscall(SYS_close_range, (unsigned)first, INT_MAX, 0) == 0)
		return;
	for (int fd = first; fd < 64; fd++)
		(void)close(fd);
}

int container_open(struct agent *a, char **argv)
{
	struct container *c = &a->container;
	int r;

	*c = (struct container){.output = -1};
	r = read_words(c, argv);
	if (r < 0 || !c->is_used)
		return r;
	if (c->by_stdio)
		r = take_stdio(c);
	/* open_null() occupies them again. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		(void)close(fd);
	if (a->reattach < 0 && c->output < 0)
		(void)close(REATTACH_FD);
	if (c->by_stdio)
		(void)close(CONTAINER_READY_FD);
	close_from(CONTAINER_READY_FD + 1);
	return r;
}

/* Exits with 0 if this process, which is not the agent, cannot open @fd of the agent's. */
static attr_noreturn void try_to_open(pid_t agent, int fd)
{
	char path[64];
	int opened;

	if (str_format(path, sizeof(path), "/proc/%d/fd/%d", (int)agent, fd) < 0)
		_exit(1);
	opened = fd_open(path, O_RDONLY | O_NONBLOCK, 0);
	_exit(opened >= 0);
}

/*
 * Linux lets no other process open what an agent that is not dumpable has open. gVisor does: with a
 * pipe for a control stream, programs could speak to the daemon in the agent's name. Sockets cannot
 * be opened by a path.
 */
int container_check_stream(const struct agent *a, struct error *err)
{
	pid_t child, agent = getpid();
	int status = 0;

	if (a->container.output < 0)
		return 0;
	child = fork();
	if (child == 0)
		try_to_open(agent, AGENT_SOCKET);
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "check the control stream");
	if (status != 0)
		return error_set(err, ERR_BOX_FAILED, 0,
		                 "this runtime lets programs open the pipes of the agent");
	return 0;
}

void container_say_ready(const struct agent *a)
{
	char byte = 0;

	if (!a->container.is_used || a->container.by_stdio)
		return;
	if (write(CONTAINER_READY_FD, &byte, sizeof(byte)) == sizeof(byte))
		(void)!read(CONTAINER_READY_FD, &byte, sizeof(byte));
	(void)close(CONTAINER_READY_FD);
}
