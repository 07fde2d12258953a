/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "guest/agent.h"
#include "wire/inject.h"

int inject_open(struct agent *a, char **argv)
{
	struct inject *in = a->inject = NEW(struct inject);

	*in = (struct inject){.sock = -1, .ordered = -1, .stdio = {-1, -1, -1}};
	while (*argv && strcmp(*argv, INJECT_WORD) != 0)
		argv++;
	if (!*argv)
		return 0;
	if (fcntl(INJECT_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	in->sock = INJECT_FD;
	in->command = argv + 1;
	return fd_set_nonblock(in->sock, true);
}

/* An exact match, before the program's own arguments. */
static bool matches_command(const struct inject *in, const struct job *job)
{
	size_t i = 0;

	if (in->sock < 0)
		return false;
	for (; in->command[i]; i++)
		if (!job->argv[i] || strcmp(job->argv[i], in->command[i]) != 0)
			return false;
	return i > 0;
}

static void drop_fallback(struct inject *in)
{
	for (size_t i = 0; i < ARRAY_SIZE(in->stdio); i++)
		in->stdio[i] = fd_close(in->stdio[i]);
	if (in->channel > 0)
		(void)fd_close(in->channel);
	if (in->stdin_end > 0)
		(void)fd_close(in->stdin_end);
	in->channel = in->stdin_end = 0;
	in->ordered = fd_close(in->ordered);
	job_done(&in->job);
	in->job = (struct job){0};
	in->pending = false;
}

/* Copies for the fallback; the caller closes its own. */
static int keep_fallback(struct inject *in, const struct drop_plan *plan)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(in->stdio) && r >= 0; i++)
		r = in->stdio[i] = fd_dup(plan->stdio[i]);
	if (r >= 0 && plan->channel > 0)
		r = in->channel = fd_dup(plan->channel);
	if (r >= 0 && plan->stdin_end > 0)
		r = in->stdin_end = fd_dup(plan->stdin_end);
	return r < 0 ? r : 0;
}

static int add_words(struct buf *b, char *const *words, uint32_t *ret_count)
{
	int r = 0;

	for (; *words && r >= 0; words++, (*ret_count)++)
		r = buf_add(b, *words, strlen(*words) + 1);
	return r;
}

static int make_order(const struct agent *a, const struct drop_plan *plan, const struct job *job,
                      struct buf *b)
{
	struct inject_order order = {
		.magic = INJECT_MAGIC,
		.flags = (plan->channel > 0 ? INJECT_CHANNEL : 0) |
	                 (plan->stdin_end > 0 ? INJECT_STDIN : 0) |
	                 (plan->ruleset >= 0 ? INJECT_RULESET : 0) |
	                 (plan->notify ? INJECT_NOTIFY : 0),
		.setup = a->setup,
	};
	int r = buf_add(b, &order, sizeof(order));

	if (r >= 0)
		r = add_words(b, job->argv, &order.argc);
	if (r >= 0)
		r = add_words(b, job->env, &order.envc);
	if (r >= 0)
		r = buf_add(b, job->cwd, strlen(job->cwd) + 1);
	if (r < 0)
		return r;
	order.bytes = (uint32_t)(b->len - sizeof(order));
	memcpy(b->data, &order, sizeof(order));
	return 0;
}

static int send_order(const struct agent *a, const struct drop_plan *plan, const struct job *job)
{
	cleanup_buf struct buf b = BUF_INIT(sizeof(struct inject_order) + INJECT_WORDS_MAX);
	int fds[FD_PASS_MAX] = {plan->stdio[0], plan->stdio[1], plan->stdio[2], plan->workspace,
	                        plan->status};
	size_t count = INJECT_ORDER_FDS;
	int r = make_order(a, plan, job, &b);

	if (plan->channel > 0)
		fds[count++] = plan->channel;
	if (plan->stdin_end > 0)
		fds[count++] = plan->stdin_end;
	if (plan->ruleset >= 0)
		fds[count++] = plan->ruleset;
	return r < 0 ? r : fd_send(a->inject->sock, b.data, b.len, fds, count);
}

/* Return: our end, *ret_theirs for the plan; or a negative errno. */
static int open_status(int *ret_theirs)
{
	const int on = 1;
	int ends[2];
	int r = fd_socketpair(SOCK_SEQPACKET, ends);

	if (r < 0)
		return r;
	*ret_theirs = ends[1];
	r = fd_set_nonblock(ends[0], true);
	if (r >= 0 && setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		r = -errno;
	if (r >= 0)
		return ends[0];
	(void)fd_close(ends[0]);
	return r;
}

static int order_child(struct agent *a, struct drop_plan *plan, struct job *job,
                       struct spawned *ret_child)
{
	struct inject *in = a->inject;
	cleanup_close int theirs = -1;
	cleanup_close int ours = open_status(&theirs);
	int r = ours < 0 ? ours : keep_fallback(in, plan);

	plan->status = theirs;
	if (r >= 0)
		r = send_order(a, plan, job);
	if (r < 0) {
		drop_fallback(in);
		return r;
	}
	/* The order waits in the socket. */
	in->ordered = TAKE_FD(in->sock);
	in->job = *job;
	*job = (struct job){0};
	in->pending = true;
	*ret_child = (struct spawned){.status = TAKE_FD(ours), .injected = true};
	return 0;
}

/* The caller counted on it, but only time is lost. */
static void log_fallback(struct agent *a, const char *why, int sys)
{
	char text[256]; /* holds the format at its longest */
	/* A zygote may end at any time; the next one is made already. */
	bool is_usual = sys == EPIPE || sys == ECONNRESET;
	struct msg_log msg = {.level = is_usual ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN};
	int r;

	(void)snprintf(text, sizeof(text),
	               "zygote's child unavailable (%.100s%s%.60s), executing instead", why,
	               sys ? ": " : "", sys ? strerror(sys) : "");
	msg.text = wire_str(text);
	r = msg_log_encode(&a->ch.out, 0, &msg);
	(void)r; /* the channel is full */
}

/* Of a child that has failed; @sock may be -1. */
static void log_fallback_of(struct agent *a, int sock, const char *what, int sys)
{
	struct error why = {0};
	int listener = -1, reset = 0;
	socklen_t len = sizeof(reset);

	/* A child that ends with an order unread resets the socket, which hides what it sent. */
	if (sock >= 0)
		(void)getsockopt(sock, SOL_SOCKET, SO_ERROR, &reset, &len);
	if (sock >= 0 && spawn_read(sock, &listener, &why) == SPAWN_ERROR)
		log_fallback(a, why.msg, why.sys);
	else
		log_fallback(a, what, sys);
	(void)fd_close(listener);
}

void inject_enter(struct agent *a)
{
	struct inject *in = a->inject;
	const struct inject_enter msg = {
		.magic = INJECT_MAGIC, .uid = a->setup.uid, .gid = a->setup.gid};
	int r = in->sock < 0 ? 0 : fd_send(in->sock, &msg, sizeof(msg), NULL, 0);

	if (r >= 0)
		return;
	log_fallback_of(a, in->sock, "it does not enter the box", -r);
	in->sock = fd_close(in->sock);
}

int inject_spawn(struct agent *a, struct drop_plan *plan, struct job *job,
                 struct spawned *ret_child, struct error *err)
{
	int r;

	if (matches_command(a->inject, job)) {
		r = order_child(a, plan, job, ret_child);
		if (r >= 0)
			return 0;
		log_fallback_of(a, a->inject->sock, "it does not accept the order", -r);
	}
	/* It does not fit: let it exit. */
	a->inject->sock = fd_close(a->inject->sock);
	return spawn_payload(plan, job_execute, job, ret_child, err);
}

static enum spawn_news execute_fallback(struct agent *a, struct spawned *child, struct error *err)
{
	struct inject *in = a->inject;
	struct drop_plan plan = {
		.setup = &a->setup,
		.stdio = {in->stdio[0], in->stdio[1], in->stdio[2]},
		.channel = in->channel,
		.stdin_end = in->stdin_end,
		.workspace = a->workspace,
		.ruleset = a->ruleset,
		.notify = true,
	};
	int r;

	(void)fd_close(child->status);
	*child = (struct spawned){.status = -1};
	r = spawn_payload(&plan, job_execute, &in->job, child, err);
	if (r >= 0 && in->due)
		(void)kill(child->pid, in->due);
	drop_fallback(in);
	return r < 0 ? SPAWN_ERROR : SPAWN_WAIT;
}

/* By the kernel's word: a process of this box with the payload's ids. */
static bool is_payload(const struct agent *a, const struct ucred *sender)
{
	return sender->pid > 1 && sender->uid == a->setup.uid && sender->gid == a->setup.gid;
}

static enum spawn_news accept_child(struct agent *a, struct spawned *child,
                                    const struct ucred *sender)
{
	struct inject *in = a->inject;

	child->pid = sender->pid;
	/* It has its own session. */
	if (in->due)
		(void)kill(-child->pid, in->due);
	drop_fallback(in);
	return SPAWN_END;
}

enum spawn_news inject_read(struct agent *a, struct spawned *child, int *ret_listener,
                            struct error *ret_error)
{
	struct ucred sender = {0};
	struct error why = {0};
	enum spawn_news news;

	if (!child->injected || !a->inject->pending)
		return spawn_read(child->status, ret_listener, ret_error);
	news = spawn_read_from(child->status, ret_listener, &sender, &why);
	if (news == SPAWN_WAIT || news == SPAWN_LISTENER)
		return news;
	if (news == SPAWN_DONE && is_payload(a, &sender))
		return accept_child(a, child, &sender);
	/* Kill an impostor before it acts on its order. */
	if (news == SPAWN_DONE && sender.pid > 1)
		(void)kill(sender.pid, SIGKILL);
	if (news == SPAWN_ERROR)
		log_fallback(a, why.msg, why.sys);
	else
		log_fallback_of(a, a->inject->ordered, "it has exited", 0);
	return execute_fallback(a, child, ret_error);
}

bool inject_signal(const struct agent *a, const struct spawned *child, int signo)
{
	if (!child->injected || child->pid > 0 || !a->inject->pending)
		return false;
	a->inject->due = signo;
	return true;
}
