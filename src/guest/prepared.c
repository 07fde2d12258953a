/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/prepared.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "guest/agent.h"
#include "guest/inject.h"
#include "guest/job.h"

/*
 * Theory of operation. Everything that does not depend on the code is set up before a caller waits:
 * a RUN costs one message to the process and one to the host. Until then the process has run only
 * its runner, so nothing of the payload can have written to its channel.
 *
 * The kernel tells whether the request was read: closing a socket with unread data, by exiting or
 * otherwise, shows as ECONNRESET at the other end, else as EOF. A runner waits with poll() and then
 * reads, so one killed before its request arrives cannot read it.
 *
 * Its stdin is /dev/null; the pipe that it may need instead is descriptor 4.
 */

#define WORD_MAX 32 /* of a runner's message */

static int spawn_prepared(struct agent *a, struct job *job, struct child_ends *ends,
                          struct error *err)
{
	struct proc *p = &a->proc;
	int pair[2] = {-1, -1};
	int r = fd_socketpair(SOCK_SEQPACKET, pair);

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "create a channel: %s", strerror(-r));
	p->channel = pair[0];
	cleanup_close int theirs = pair[1];
	r = fd_set_nonblock(p->channel, true);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "create a channel: %s", strerror(-r));
	struct drop_plan plan = {
		.setup = &a->setup,
		.stdio = {a->null, ends->fds[1], ends->fds[2]},
		.channel = theirs,
		.stdin_end = ends->fds[0],
		.workspace = a->workspace,
		.ruleset = a->ruleset,
		.notify = true,
	};
	return inject_spawn(a, &plan, job, &p->child, err);
}

static int start_prepared(struct agent *a, const struct msg_prepare *msg, struct error *err)
{
	attr_cleanup(job_done) struct job job = {0};
	attr_cleanup(child_ends_close) struct child_ends ends = {{-1, -1, -1}};
	/* RUN sets what is forwarded. */
	const struct msg_exec exec = {
		.argv = msg->argv,
		.env = msg->env,
		.stdin_open = 1,
		.report_max = msg->report ? 1 : 0,
	};
	int r = 0;

	if (job_make(&job, &exec, err) < 0)
		return -1;
	r = proc_open_pipes(a, &exec, &ends);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "create pipes: %s", strerror(-r));
	return spawn_prepared(a, &job, &ends, err);
}

int prepared_start(struct agent *a, uint32_t id, const struct msg_prepare *msg, struct error *err)
{
	struct proc *p = &a->proc;

	if (p->state != PROC_IDLE)
		return error_set(err, ERR_CONFLICT, 0, "another execution is running");
	if (start_prepared(a, msg, err) < 0) {
		proc_close(p);
		return -1;
	}
	p->id = id;
	p->state = PROC_PREPARING;
	return 0;
}

static int fail_prepared(struct agent *a, const struct error *err)
{
	uint32_t id = a->proc.id;

	proc_signal(a, SIGKILL);
	proc_close(&a->proc);
	return agent_fail(a, id, err);
}

int prepared_run(struct agent *a, const struct msg_run *msg, struct error *err)
{
	struct proc *p = &a->proc;
	int r = 0;

	p->out[WIRE_STDOUT].max = msg->stdout_max;
	p->out[WIRE_STDERR].max = msg->stderr_max;
	p->report.left = msg->report_max;
	p->drain_ms = msg->drain_ms;
	if (!msg->stdin_open)
		input_close(&p->in);
	/* Refusals during startup are not the program's. */
	denials_pump(&p->denials);
	p->denials.kinds = 0;
	p->denials.leaver = 0;
	proc_note_start(a);
	r = resident_send(p->channel, p->id, msg, err);
	if (r < 0) {
		proc_signal(a, SIGKILL);
		proc_close(p);
		return -1;
	}
	p->state = PROC_RUNNING;
	r = spawn_send_started(&p->child, &a->ch.out, p->id);
	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "queue STARTED") : 0;
}

int prepared_fd(const struct agent *a)
{
	const struct proc *p = &a->proc;

	return p->state == PROC_PREPARING ? p->child.status : p->channel;
}

/* Until exec. */
static int read_child(struct agent *a)
{
	struct proc *p = &a->proc;
	struct error err = {0};

	while (p->state == PROC_PREPARING) {
		int listener = -1;
		switch (inject_read(a, &p->child, &listener, &err)) {
		case SPAWN_WAIT:
			return 0;
		case SPAWN_LISTENER:
			denials_open(&p->denials, listener);
			continue;
		case SPAWN_ERROR:
			return fail_prepared(a, &err);
		case SPAWN_DONE: /* only from workers */
		case SPAWN_END:
			p->child.status = fd_close(p->child.status);
			p->state = PROC_PREPARED;
		}
	}
	return 0;
}

static int take_ready(struct agent *a, const char *word, size_t len)
{
	const struct msg_ready ready = {0};
	struct error err = {0};

	if (len == strlen("ready") && memcmp(word, "ready", len) == 0)
		return msg_ready_encode(&a->ch.out, a->proc.id, &ready);
	(void)error_set(&err, ERR_BOX_FAILED, 0, "the runner exited or cannot be prepared");
	return fail_prepared(a, &err);
}

/* Return: the code of "done CODE", or -1. */
static int parse_done(const char *word, size_t len)
{
	static const char said[] = "done ";
	size_t at = sizeof(said) - 1;
	int code = 0;

	if (len <= at || len > at + 3 || memcmp(word, said, at) != 0)
		return -1;
	for (; at < len; at++) {
		if (word[at] < '0' || word[at] > '9')
			return -1;
		code = code * 10 + (word[at] - '0');
	}
	return code <= 255 ? code : -1;
}

static void take_done(struct agent *a, const char *word, size_t len)
{
	struct proc *p = &a->proc;
	int code = parse_done(word, len);

	p->channel = fd_close(p->channel);
	if (code >= 0)
		proc_exit_announced(a, code);
}

int prepared_pump(struct agent *a)
{
	struct proc *p = &a->proc;
	char word[WORD_MAX];
	ssize_t n = 0;
	int r = read_child(a);

	if (r < 0 || (p->state != PROC_PREPARED && p->state != PROC_RUNNING))
		return r;
	n = fd_recv_plain(p->channel, word, sizeof(word), MSG_DONTWAIT | MSG_TRUNC);
	if (n == -EAGAIN)
		return 0;
	p->untaken = n == -ECONNRESET && p->state == PROC_RUNNING;
	if (n < 0 || (size_t)n > sizeof(word))
		n = 0;
	if (p->state == PROC_PREPARED)
		return take_ready(a, word, (size_t)n);
	take_done(a, word, (size_t)n);
	return 0;
}

int prepared_reaped(struct agent *a, int wait_status)
{
	bool signalled = WIFSIGNALED(wait_status);
	struct error err = {0};
	int r = prepared_pump(a); /* it may have sent an error or "done" */

	if (r < 0 || a->proc.state != PROC_PREPARED)
		return r;
	(void)error_set(&err, ERR_BOX_FAILED, 0, "the prepared runner exited (%s %d)",
	                signalled ? "signal" : "status",
	                signalled ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
	return fail_prepared(a, &err);
}
