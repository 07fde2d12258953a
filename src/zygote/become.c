/* SPDX-License-Identifier: Apache-2.0 */
#include "zygote/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/drop.h"
#include "guest/harden.h"

/*
 * Theory of operation. This applies to a running process what a cold start applies to an executed
 * one: the engine's last steps for the agent (ids, an empty keyring), the agent's for itself
 * (harden.c) and its children (drop.c), from the same sources; by hand what exec does (close
 * descriptors, become dumpable again) and what the interpreter does at start (ignore SIGPIPE).
 *
 * It happens in two parts. When the agent is set up, the child enters the box and drops all
 * privileges; the rest needs the order. In between it waits as a process of the payload's ids, not
 * dumpable, in a box in which no program has run.
 *
 * The child sees no byte of a request before the order, and only the interpreter, as the payload,
 * interprets it. On any error the process exits, and the agent executes the program instead.
 */

#define EXIT_NOT_STARTED 127

/* 3 is DROP_CHANNEL, reserved for drop.c. */
enum own_fd {
	OWN_RESERVED = DROP_CHANNEL,
	OWN_AGENT,
	OWN_PIDFD,
	OWN_END,
};

void become_refuse(int agent, const struct error *err)
{
	(void)drop_report(agent, DROP_ERROR, err); /* else the agent has ended */
	_exit(EXIT_NOT_STARTED);
}

void become_alone(struct fill *fill)
{
	int agent = fcntl(fill->agent, F_DUPFD_CLOEXEC, OWN_END);
	int pidfd = fcntl(fill->pidfd, F_DUPFD_CLOEXEC, OWN_END);
	struct error err = {0};

	/* Must close the zygote's socket: the engine waits for its EOF. */
	if (agent < 0 || pidfd < 0 || dup3(STDIN_FILENO, OWN_RESERVED, O_CLOEXEC) < 0 ||
	    dup3(agent, OWN_AGENT, O_CLOEXEC) < 0 || dup3(pidfd, OWN_PIDFD, O_CLOEXEC) < 0 ||
	    syscall(SYS_close_range, OWN_END, ~0U, 0) < 0) {
		(void)error_set(&err, ERR_BOX_FAILED, errno, "arrange descriptors");
		become_refuse(agent < 0 ? fill->agent : agent, &err);
	}
	*fill = (struct fill){
		.msg = fill->msg, .agent = OWN_AGENT, .pidfd = OWN_PIDFD, .pid_ns = -1, .unified = -1, .cpu = -1};
}

struct given {
	struct drop_plan plan;
	int status; /* -1: not received */
};

static void attr_noreturn fail_start(const struct given *given, const struct error *err)
{
	if (given->status >= 0)
		(void)drop_report(given->status, DROP_ERROR, err);
	_exit(EXIT_NOT_STARTED);
}

static bool are_words_whole(const struct order *order)
{
	const struct inject_order *msg = &order->msg;
	size_t count = 0;

	for (size_t i = 0; i < msg->bytes; i++)
		count += order->words[i] == '\0';
	return msg->bytes > 0 && order->words[msg->bytes - 1] == '\0' &&
	       count == (size_t)msg->argc + msg->envc + 1;
}

/* In the order of wire/inject.h. */
static int assign_fds(const struct order *order, const int *fds, size_t count,
                      struct given *ret_given)
{
	const uint32_t flags = order->msg.flags;
	size_t next = INJECT_ORDER_FDS;
	size_t want = next + ((flags & INJECT_CHANNEL) != 0) + ((flags & INJECT_STDIN) != 0) +
	              ((flags & INJECT_RULESET) != 0);

	if (count != want)
		return -EPROTO;
	*ret_given = (struct given){
		.plan =
			{
				.setup = &order->msg.setup,
				.stdio = {fds[0], fds[1], fds[2]},
				.workspace = fds[3],
				.status = fds[4],
				.ruleset = -1,
				.notify = flags & INJECT_NOTIFY,
			},
		.status = fds[4],
	};
	if (flags & INJECT_CHANNEL)
		ret_given->plan.channel = fds[next++];
	if (flags & INJECT_STDIN)
		ret_given->plan.stdin_end = fds[next++];
	if (flags & INJECT_RULESET)
		ret_given->plan.ruleset = fds[next];
	return 0;
}

static bool is_closed(int agent)
{
	char byte;

	return recv(agent, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void receive_enter(int agent, struct inject_enter *ret_msg)
{
	ssize_t n = fd_recv(agent, ret_msg, sizeof(*ret_msg), NULL, NULL);

	/* An agent that has executed another program meanwhile has closed its end. */
	if (n != sizeof(*ret_msg) || ret_msg->magic != INJECT_MAGIC || is_closed(agent))
		_exit(EXIT_NOT_STARTED);
}

/* If the agent is gone, so is the box: exit silently. */
static void receive_order(int agent, struct order *ret_order, struct given *ret_given)
{
	int fds[FD_PASS_MAX];
	size_t count = 0;
	ssize_t n = fd_recv(agent, ret_order, sizeof(*ret_order), fds, &count);

	if (n < (ssize_t)offsetof(struct order, words) || ret_order->msg.magic != INJECT_MAGIC ||
	    (size_t)n != offsetof(struct order, words) + ret_order->msg.bytes ||
	    !are_words_whole(ret_order) || assign_fds(ret_order, fds, count, ret_given) < 0)
		_exit(EXIT_NOT_STARTED);
}

/*
 * All namespaces of PID 1 except pid, in which the child was created. The time namespace is that of
 * PID 1's children: before Linux 6.3 PID 1 itself is not in it.
 */
static int enter_namespaces(const struct fill *fill, struct error *err)
{
	cleanup_close int time_ns = -1;
	int r = zygote_act_as(fill->msg.owner);

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "act as the owner of the box");
	if (setns(fill->pidfd, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
	                               CLONE_NEWUTS | CLONE_NEWCGROUP) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "enter the box");
	time_ns = fd_open("/proc/1/ns/time_for_children", O_RDONLY, 0);
	if (time_ns == -ENOENT) /* no time namespaces */
		return 0;
	if (time_ns < 0 || setns(time_ns, CLONE_NEWTIME) < 0)
		return error_set(err, ERR_BOX_FAILED, time_ns < 0 ? -time_ns : errno,
		                 "enter the box's time namespace");
	return 0;
}

/* As the engine's step_become and step_session. */
static int become_agent(const struct inject_fill *msg, struct error *err)
{
	uid_t id = msg->agent_id;

	if (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "take the agent's ids");
	if (msg->owner && syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 &&
	    errno != ENOSYS)
		return error_set(err, ERR_BOX_FAILED, errno, "session keyring");
	return 0;
}

/* As the agent's hardening; zygote_harden() installed the filter. */
static int drop_agent_caps(struct error *err)
{
	bool empty = false;
	int r = harden_caps(&empty);

	if (r < 0 || !empty)
		return error_set(err, ERR_BOX_FAILED, -r, "drop capabilities");
	return 0;
}

static int become_payload(const struct inject_enter *msg, struct error *err)
{
	int r = drop_privileges(msg->uid, msg->gid);

	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "take the program's ids") : 0;
}

/* No order has come: the reason goes to the agent's socket. */
static void enter_box(const struct fill *fill, struct checked *ret_checked)
{
	struct inject_enter msg;
	struct error err = {0};

	receive_enter(fill->agent, &msg);
	if (enter_namespaces(fill, &err) < 0 || check_inside(ret_checked, &err) < 0 ||
	    become_agent(&fill->msg, &err) < 0 || drop_agent_caps(&err) < 0 ||
	    become_payload(&msg, &err) < 0)
		become_refuse(fill->agent, &err);
}

static int finish_like_exec(const struct given *given, struct error *err)
{
	if (prctl(PR_SET_DUMPABLE, 1) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return error_set(err, ERR_BOX_FAILED, errno, "reset dumpable and SIGPIPE");
	if (given->plan.channel > 0 && fcntl(DROP_CHANNEL, F_SETFD, FD_CLOEXEC) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "request channel");
	return 0;
}

static const char *last_word(const struct order *order)
{
	const char *end = order->words + order->msg.bytes - 1;

	while (end > order->words && end[-1] != '\0')
		end--;
	return end;
}

void become(const struct fill *fill, struct order *ret_order)
{
	struct given given = {.status = -1};
	struct error err = {0};
	struct checked checked = {0};

	enter_box(fill, &checked);
	receive_order(fill->agent, ret_order, &given);
	checked.filters += given.plan.setup->data_limit > 0 ? 2 : 1; /* as step_filter in drop.c */
	if (drop_to_payload(&given.plan, &err) < 0 || finish_like_exec(&given, &err) < 0 ||
	    drop_enter(last_word(ret_order), &err) < 0 ||
	    check_payload(given.plan.setup, &checked, &err) < 0)
		fail_start(&given, &err);
	if (drop_report(given.status, DROP_READY, NULL) < 0)
		_exit(EXIT_NOT_STARTED);
	(void)fd_close(given.status);
	(void)fd_close(given.plan.ruleset);
}
