/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "guest/agent.h"
#include "guest/fsid.h"

#define BLOCK_BYTES 512 /* unit of ru_inblock and ru_oublock */

void proc_init(struct proc *p)
{
	*p = (struct proc){
		.child = {.status = -1},
		.out = {{.fd = -1},   {.fd = -1}},
		.in = {.fd = -1           },
		.report = {.listener = -1, .conn = -1},
		.denials = {.fd = -1 },
	};
}

/* What the child needs: made before the fork, where allocating is safe. */
struct exec_job {
	char **argv; /* owned */
	char **env;  /* owned */
	char *cwd;   /* owned */
};

static void exec_job_done(struct exec_job *job)
{
	free(job->argv);
	free(job->env);
	free(job->cwd);
}

/* One block: the pointers, then the strings. Its size is bounded by that of a frame. */
static char **copy_strs(const struct wire_strs *strs)
{
	size_t head = (strs->count + (size_t)1) * sizeof(char *);
	char **list = xmalloc(head + strs->encoded_len + strs->count);
	char *text = (char *)list + head;
	struct wire_bytes item;
	uint32_t pos = 0;
	size_t i = 0;

	while (wire_strs_next(strs, &pos, &item)) {
		list[i++] = text;
		memcpy(text, item.data, item.len);
		text[item.len] = '\0';
		text += item.len + 1;
	}
	list[i] = NULL;
	return list;
}

static int make_job(const struct msg_exec *msg, struct exec_job *ret, struct error *err)
{
	if (msg->cwd.len > 0 && put_check_path(&msg->cwd, err) < 0)
		return error_wrap(err, "working directory");
	ret->argv = copy_strs(&msg->argv);
	ret->env = copy_strs(&msg->env);
	ret->cwd = xmemdup0(msg->cwd.data, msg->cwd.len);
	if (!ret->argv[0])
		return error_set(err, ERR_INVALID, 0, "nothing to execute");
	/* Nothing is searched: neither PATH nor a working directory decides what runs. */
	if (ret->argv[0][0] != '/')
		return error_set(err, ERR_INVALID, 0, "'%.64s' is not an absolute path",
		                 ret->argv[0]);
	return 0;
}

/* In the child, as the payload. */
static int execute(const void *arg, int status, struct error *err)
{
	const struct exec_job *job = arg;

	(void)status;
	if (job->cwd[0] != '\0') {
		int dir = fd_open_beneath(AT_FDCWD, job->cwd, O_PATH | O_DIRECTORY, 0);
		if (dir < 0 || fchdir(dir) < 0) {
			int sys = dir < 0 ? -dir : errno;
			return error_set(err, ERR_INVALID, sys, "enter '%.128s': %s", job->cwd,
			                 strerror(sys));
		}
	}
	(void)execve(job->argv[0], job->argv, job->env);
	return error_set(err, errno == E2BIG ? ERR_TOO_LARGE : ERR_BOX_FAILED, errno,
	                 "execute '%.128s': %s", job->argv[0], strerror(errno));
}

struct child_ends {
	int fds[3]; /* owned */
};

static void child_ends_close(struct child_ends *ends)
{
	for (size_t i = 0; i < ARRAY_SIZE(ends->fds); i++)
		(void)fd_close(ends->fds[i]);
}

static int open_stdio(struct proc *p, const struct msg_exec *msg, struct child_ends *ends)
{
	int r = output_open(&p->out[WIRE_STDOUT], WIRE_STDOUT, msg->stdout_max, &ends->fds[1]);

	if (r >= 0)
		r = output_open(&p->out[WIRE_STDERR], WIRE_STDERR, msg->stderr_max, &ends->fds[2]);
	if (r >= 0 && msg->stdin_open)
		r = input_open(&p->in, &ends->fds[0]);
	return r;
}

/*
 * The payload owns its pipes: opening /dev/stdout asks the pipe itself for permission, and scripts
 * do that all the time. The report socket stays the agent's.
 */
static int open_pipes(struct agent *a, const struct msg_exec *msg, struct child_ends *ends)
{
	struct proc *p = &a->proc;
	struct fsid ids;
	int r = fsid_take(&ids, a->setup.uid, a->setup.gid);
	int back = 0;

	if (r >= 0)
		r = open_stdio(p, msg, ends);
	back = fsid_give_back(&ids);
	if (r >= 0)
		r = back;
	if (r >= 0)
		r = agent_open_run_dir(a, true);
	if (r >= 0 && msg->report_max > 0)
		r = report_open(&p->report, AGENT_RUN_DIR, a->run_dir, msg->report_max);
	return r < 0 ? r : agent_open_run_dir(a, false);
}

static void close_all(struct proc *p)
{
	(void)fd_close(p->child.status);
	for (size_t i = 0; i < WIRE_STREAM_COUNT; i++)
		output_close(&p->out[i]);
	input_close(&p->in);
	report_close(&p->report);
	denials_close(&p->denials);
	proc_init(p);
}

static int start(struct agent *a, const struct msg_exec *msg, struct error *err)
{
	struct proc *p = &a->proc;
	attr_cleanup(exec_job_done) struct exec_job job = {0};
	attr_cleanup(child_ends_close) struct child_ends ends = {
		{-1, -1, -1}
        };
	struct drop_plan plan = {
		.setup = &a->setup,
		.workspace = a->workspace,
		.ruleset = a->ruleset,
		.notify = true,
	};
	int r = 0;

	if (make_job(msg, &job, err) < 0)
		return -1;
	r = open_pipes(a, msg, &ends);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "make the pipes: %s", strerror(-r));
	plan.stdio[0] = ends.fds[0] >= 0 ? ends.fds[0] : a->null;
	plan.stdio[1] = ends.fds[1];
	plan.stdio[2] = ends.fds[2];
	p->start_us = clock_us();
	return spawn_payload(&plan, execute, &job, &p->child, err);
}

int proc_start(struct agent *a, uint32_t id, const struct msg_exec *msg, struct error *err)
{
	struct proc *p = &a->proc;

	if (p->state != PROC_IDLE)
		return error_set(err, ERR_CONFLICT, 0, "another execution is running");
	if (start(a, msg, err) < 0) {
		close_all(p);
		return -1;
	}
	p->id = id;
	p->drain_ms = msg->drain_ms;
	p->state = PROC_STARTING;
	return 0;
}

void proc_signal(const struct agent *a, int signo)
{
	/*
	 * From PID 1 "all" is exactly the box without the agent, atomically: no process can fork
	 * its way out of it. Anywhere else it would be the rest of the machine.
	 */
	if (a->is_init)
		(void)kill(-1, signo);
	else if (a->proc.child.pid > 0)
		(void)kill(-a->proc.child.pid, signo);
}

static bool is_full(const char *path)
{
	struct statfs st;

	if (statfs(path, &st) < 0)
		return false;
	return (st.f_blocks > 0 && st.f_bavail == 0) || (st.f_files > 0 && st.f_ffree == 0);
}

static bool is_disk_full(void)
{
	return is_full(AGENT_WORKSPACE) || is_full("/tmp") || is_full("/dev/shm");
}

static uint64_t timeval_us(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * USEC_PER_SEC + (uint64_t)t->tv_usec;
}

static int send_done(struct agent *a)
{
	struct proc *p = &a->proc;
	bool signalled = WIFSIGNALED(p->wait_status);
	struct rusage all = {0};
	struct msg_done msg = {0};

	(void)getrusage(RUSAGE_CHILDREN, &all); /* cannot fail with these arguments */
	msg = (struct msg_done){
		.signalled = signalled,
		.status = signalled ? WTERMSIG(p->wait_status) : WEXITSTATUS(p->wait_status),
		.duration_us = p->end_us - p->start_us,
		.cpu_user_us = timeval_us(&all.ru_utime),
		.cpu_system_us = timeval_us(&all.ru_stime),
		.max_rss_kib = (uint64_t)all.ru_maxrss,
		.read_bytes = (uint64_t)all.ru_inblock * BLOCK_BYTES,
		.write_bytes = (uint64_t)all.ru_oublock * BLOCK_BYTES,
		.stdout_bytes = p->out[WIRE_STDOUT].produced,
		.stderr_bytes = p->out[WIRE_STDERR].produced,
		.disk_full = is_disk_full(),
	};
	return msg_done_encode(&a->ch.out, p->id, &msg);
}

static int finish(struct agent *a)
{
	struct proc *p = &a->proc;
	int r = 0;

	denials_pump(&p->denials);
	r = denials_send(&p->denials, &a->ch, p->id);
	if (r >= 0)
		r = send_done(a);
	/* The answer first: whoever waits for it need not wait for the rest to die. */
	if (r >= 0)
		r = channel_flush(&a->ch);
	proc_signal(a, SIGKILL);
	close_all(p);
	return r;
}

static int fail(struct agent *a, const struct error *err)
{
	uint32_t id = a->proc.id;

	close_all(&a->proc);
	return agent_fail(a, id, err);
}

/* The child's words, until it executed its program. */
static int hear_child(struct agent *a)
{
	struct proc *p = &a->proc;
	struct error err = {0};

	while (p->state == PROC_STARTING) {
		int listener = -1;
		struct msg_started msg = {.pid = (uint32_t)p->child.pid};
		switch (spawn_read(p->child.status, &listener, &err)) {
		case SPAWN_WAIT:
			return 0;
		case SPAWN_LISTENER:
			denials_open(&p->denials, listener);
			continue;
		case SPAWN_ERROR:
			return fail(a, &err);
		case SPAWN_DONE: /* never said by a child that executes */
		case SPAWN_END:
			p->child.status = fd_close(p->child.status);
			p->state = PROC_RUNNING;
			return msg_started_encode(&a->ch.out, p->id, &msg);
		}
	}
	return 0;
}

int proc_reaped(struct agent *a, pid_t pid, int wait_status)
{
	struct proc *p = &a->proc;
	int r = 0;

	if (p->state == PROC_IDLE || p->state == PROC_DRAINING || pid != p->child.pid)
		return 0;
	r = hear_child(a);
	if (r < 0 || p->state != PROC_RUNNING)
		return r;
	p->end_us = clock_us();
	p->wait_status = wait_status;
	p->state = PROC_DRAINING;
	return 0;
}

void proc_watch(const struct agent *a, struct pollfd *fds)
{
	const struct proc *p = &a->proc;
	const struct channel *ch = &a->ch;

	for (int i = 0; i < PROC_SOURCES; i++)
		fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	if (p->state == PROC_STARTING)
		fds[PROC_STATUS].fd = p->child.status;
	if (output_wants(&p->out[WIRE_STDOUT], ch))
		fds[PROC_OUT].fd = p->out[WIRE_STDOUT].fd;
	if (output_wants(&p->out[WIRE_STDERR], ch))
		fds[PROC_ERR].fd = p->out[WIRE_STDERR].fd;
	if (input_wants(&p->in))
		fds[PROC_IN] = (struct pollfd){.fd = p->in.fd, .events = POLLOUT};
	fds[PROC_REPORT].fd = report_fd(&p->report, ch);
	fds[PROC_DENIALS].fd = p->denials.fd;
}

int proc_timeout_ms(const struct agent *a)
{
	const struct proc *p = &a->proc;
	uint64_t end = p->end_us + p->drain_ms * USEC_PER_MS;
	uint64_t now = 0;

	/* With a full channel there is nothing to do until the host has read some of it. */
	if (p->state != PROC_DRAINING || channel_is_full(&a->ch))
		return -1;
	now = clock_us();
	if (now >= end)
		return 0;
	/* Rounded up: waking too early would mean asking again at once. */
	uint64_t ms = (end - now) / USEC_PER_MS + 1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Output first: a report says something about what was written before it. */
static int pump_streams(struct agent *a)
{
	struct proc *p = &a->proc;
	int total = 0;

	for (size_t i = 0; i < WIRE_STREAM_COUNT; i++) {
		int r = output_wants(&p->out[i], &a->ch) ? output_pump(&p->out[i], &a->ch, p->id)
		                                         : 0;
		if (r < 0)
			return r;
		total += r;
	}
	if (report_fd(&p->report, &a->ch) >= 0) {
		int r = report_pump(&p->report, &a->ch, p->id);
		if (r < 0)
			return r;
		total += r;
	}
	return total;
}

static bool is_drained(const struct proc *p)
{
	return p->out[WIRE_STDOUT].fd < 0 && p->out[WIRE_STDERR].fd < 0 && p->report.conn < 0;
}

/* Everything that was in the pipes at the end is read; what comes later only until the deadline. */
static int drain(struct agent *a)
{
	struct proc *p = &a->proc;
	int n = 0;

	while (!channel_is_full(&a->ch) && p->drained < PROC_DRAIN_MAX_BYTES) {
		n = pump_streams(a);
		if (n <= 0)
			break;
		p->drained += (uint64_t)n;
	}
	if (n < 0)
		return n;
	/* A slow host is not the program's fault: wait for it rather than lose output. */
	if (channel_is_full(&a->ch))
		return 0;
	if (is_drained(p) || p->drained >= PROC_DRAIN_MAX_BYTES || proc_timeout_ms(a) == 0)
		return finish(a);
	return 0;
}

int proc_pump(struct agent *a, const struct pollfd *fds)
{
	struct proc *p = &a->proc;
	int r = 0;

	if (fds[PROC_DENIALS].revents)
		denials_pump(&p->denials);
	/* Ready or not: poll may have looked at it just before the exec and at the output just
	 * after, and STARTED has to come first. */
	if (p->state == PROC_STARTING)
		r = hear_child(a);
	if (r >= 0 && p->state != PROC_IDLE && (p->in.room > 0 || fds[PROC_IN].revents))
		r = input_pump(&p->in, &a->ch, p->id);
	if (r < 0 || p->state == PROC_IDLE)
		return r;
	if (p->state == PROC_DRAINING)
		return drain(a);
	if (fds[PROC_OUT].revents || fds[PROC_ERR].revents || fds[PROC_REPORT].revents)
		r = pump_streams(a);
	return r < 0 ? r : 0;
}
