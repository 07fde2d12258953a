/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/spawn.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"

#define EXIT_NOT_STARTED 127 /* as in shells */

static void attr_noreturn run_child(const struct drop_plan *plan, spawn_work_fn work,
                                    const void *arg)
{
	struct error err = {0};

	if (drop_to_payload(plan, &err) < 0 || work(arg, plan->status, &err) < 0) {
		(void)drop_report(plan->status, DROP_ERROR, &err);
		_exit(EXIT_NOT_STARTED);
	}
	(void)drop_report(plan->status, DROP_DONE, NULL);
	_exit(0);
}

int spawn_payload(struct drop_plan *plan, spawn_work_fn work, const void *arg,
                  struct spawned *ret_child, struct error *err)
{
	int ends[2] = {-1, -1};
	int r = fd_socketpair(SOCK_SEQPACKET, ends);

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "create a status socket: %s",
		                 strerror(-r));
	cleanup_close int ours = ends[0];
	cleanup_close int theirs = ends[1];
	r = fd_set_nonblock(ours, true);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "create a status socket: %s",
		                 strerror(-r));
	plan->status = theirs;
	/*
	 * fork, not vfork: the agent must respond before the exec, and copying so small a process
	 * is fast.
	 */
	pid_t pid = fork();
	if (pid < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "fork: %s", strerror(errno));
	if (pid == 0)
		run_child(plan, work, arg);
	*ret_child = (struct spawned){.pid = pid, .status = TAKE_FD(ours)};
	return 0;
}

static enum spawn_news read_word(const struct drop_message *msg, int *fds, size_t count,
                                 int *ret_listener, struct error *ret_error)
{
	if (msg->word == DROP_LISTENER && count == 1) {
		*ret_listener = TAKE_FD(fds[0]);
		return SPAWN_LISTENER;
	}
	if (msg->word == DROP_DONE || msg->word == DROP_READY)
		return SPAWN_DONE;
	*ret_error = msg->error;
	return SPAWN_ERROR;
}

enum spawn_news spawn_read_from(int status, int *ret_listener, struct ucred *ret_sender,
                                struct error *ret_error)
{
	struct drop_message msg = {0};
	const struct iovec into = {.iov_base = &msg, .iov_len = sizeof(msg)};
	int fds[FD_PASS_MAX] = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
	size_t count = 0;
	ssize_t n = fd_recv_from(status, &into, fds, &count, ret_sender);

	if (n == -EAGAIN || n == -EINTR)
		return SPAWN_WAIT;
	/* Only our own code writes here. */
	if (n != (ssize_t)sizeof(msg))
		return SPAWN_END;
	return read_word(&msg, fds, count, ret_listener, ret_error);
}

enum spawn_news spawn_read(int status, int *ret_listener, struct error *ret_error)
{
	return spawn_read_from(status, ret_listener, NULL, ret_error);
}

int spawn_send_started(const struct spawned *child, struct buf *out, uint32_t id)
{
	const struct msg_started msg = {
		.pid = (uint32_t)child->pid,
		.injected = child->injected,
	};

	return msg_started_encode(out, id, &msg);
}
