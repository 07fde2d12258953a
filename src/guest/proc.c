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
#include "guest/beside.h"
#include "guest/file_clock.h"
#include "guest/fsid.h"
#include "guest/job.h"
#include "guest/kill_all.h"
#include "guest/prepared.h"
#include "guest/resident.h"

#define BLOCK_BYTES 512 /* unit of ru_inblock and ru_oublock */

/* Not what the host changed just before. */
void proc_note_start(struct agent *a)
{
	if (a->files_ns)
		file_clock_wait_past(a->files_ns);
	a->files_ns = 0;
	a->proc.start_us = clock_us();
	a->proc.start_real_ns = file_clock_earliest();
}

void proc_init(struct proc *p)
{
	*p = (struct proc){
		.child = {.status = -1},
		.out = {{.fd = -1}, {.fd = -1}},
		.in = {.fd = -1},
		.report = {.listener = -1, .conn = -1},
		.denials = {.fd = -1},
		.channel = -1,
	};
}

void child_ends_close(struct child_ends *ends)
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
 * The payload owns its pipes: opening /dev/stdout, as scripts do, checks the pipe's permissions.
 * The report socket stays the agent's.
 */
int proc_open_pipes(struct agent *a, const struct msg_exec *msg, struct child_ends *ends)
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

void proc_close(struct proc *p)
{
	(void)fd_close(p->child.status);
	for (size_t i = 0; i < WIRE_STREAM_COUNT; i++)
		output_close(&p->out[i]);
	input_close(&p->in);
	report_close(&p->report);
	denials_close(&p->denials);
	(void)fd_close(p->channel);
	proc_init(p);
}

uint64_t proc_cpu_us(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / 1000;
}

static int start_program(struct agent *a, const struct msg_exec *msg, struct error *err)
{
	struct proc *p = &a->proc;
	attr_cleanup(job_done) struct job job = {0};
	attr_cleanup(child_ends_close) struct child_ends ends = {{-1, -1, -1}};
	struct drop_plan plan = {
		.setup = &a->setup,
		.workspace = a->workspace,
		.ruleset = a->ruleset,
		.notify = true,
	};
	int r = 0;

	if (job_make(&job, msg, err) < 0)
		return -1;
	r = proc_open_pipes(a, msg, &ends);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "create pipes: %s", strerror(-r));
	plan.stdio[0] = ends.fds[0] >= 0 ? ends.fds[0] : a->null;
	plan.stdio[1] = ends.fds[1];
	plan.stdio[2] = ends.fds[2];
	proc_note_start(a);
	return inject_spawn(a, &plan, &job, &p->child, err);
}

int proc_start(struct agent *a, uint32_t id, const struct msg_exec *msg, struct error *err)
{
	struct proc *p = &a->proc;

	if (p->state != PROC_IDLE)
		return error_set(err, ERR_CONFLICT, 0, "another execution is running");
	a->snapshot.known = false;
	if (a->is_init && resident_any(a))
		kill_all_take_snapshot(a);
	if (start_program(a, msg, err) < 0) {
		proc_close(p);
		return -1;
	}
	p->id = id;
	p->drain_ms = msg->drain_ms;
	p->state = PROC_STARTING;
	return 0;
}

static int fail_execution(struct agent *a, const struct error *err)
{
	uint32_t id = a->proc.id;

	proc_close(&a->proc);
	return agent_fail(a, id, err);
}

static int start_run(struct agent *a, uint32_t id, const struct msg_run *msg, struct error *err)
{
	struct proc *p = &a->proc;
	attr_cleanup(child_ends_close) struct child_ends ends = {{-1, -1, -1}};
	const struct msg_exec pipes = {
		.stdout_max = msg->stdout_max,
		.stderr_max = msg->stderr_max,
		.stdin_open = msg->stdin_open,
	};
	int stdio[3];
	int r = proc_open_pipes(a, &pipes, &ends);

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "create pipes: %s", strerror(-r));
	stdio[0] = ends.fds[0] >= 0 ? ends.fds[0] : a->null;
	stdio[1] = ends.fds[1];
	stdio[2] = ends.fds[2];
	proc_note_start(a);
	p->cpu_us = resident_cpu_us(p->runner);
	return resident_ask(a, p->runner, id, msg, stdio, err);
}

int proc_run(struct agent *a, uint32_t id, const struct msg_run *msg, struct error *err)
{
	struct proc *p = &a->proc;
	char source[RESIDENT_SOURCE_MAX + 1];

	if (resident_check_source(&msg->source, source, err) < 0)
		return -1;
	if (p->state != PROC_IDLE) {
		agent_remove_source(a, source);
		return error_set(err, ERR_CONFLICT, 0, "another execution is running");
	}
	p->runner = resident_find(a, msg->runner);
	if (!p->runner)
		(void)error_set(err, ERR_NOT_FOUND, 0, "no runner %u", msg->runner);
	if (!p->runner || start_run(a, id, msg, err) < 0) {
		proc_close(p);
		agent_remove_source(a, source);
		return -1;
	}
	p->id = id;
	p->drain_ms = msg->drain_ms;
	p->report_left = msg->report_max;
	memcpy(p->source, source, sizeof(source));
	p->state = PROC_STARTING;
	return 0;
}

int proc_run_started(struct agent *a)
{
	struct proc *p = &a->proc;

	if (p->state != PROC_STARTING || !p->runner || p->runner->state != RESIDENT_ALIVE)
		return 0;
	/* CPU time before it entered the box does not count. */
	if (p->runner->child.injected && p->cpu_us == 0)
		p->cpu_us = resident_cpu_us(p->runner);
	p->state = PROC_RUNNING;
	return spawn_send_started(&p->runner->child, &a->ch.out, p->id);
}

int proc_run_report(struct agent *a, const char *data, size_t len)
{
	struct proc *p = &a->proc;
	struct msg_report msg = {
		.data = {data, len < p->report_left ? (uint32_t)len : p->report_left},
	};

	p->report_left -= msg.data.len;
	return msg.data.len > 0 ? msg_report_encode(&a->ch.out, p->id, &msg) : 0;
}

void proc_run_over(struct agent *a, int wait_status, bool lost)
{
	struct proc *p = &a->proc;
	uint64_t cpu_us = 0;

	p->end_us = clock_us();
	cpu_us = resident_cpu_us(p->runner);
	p->cpu_us = cpu_us > p->cpu_us ? cpu_us - p->cpu_us : 0;
	p->wait_status = wait_status;
	p->runner_lost = lost;
	p->state = PROC_DRAINING;
}

int proc_run_failed(struct agent *a, const struct error *err)
{
	agent_remove_source(a, a->proc.source);
	return fail_execution(a, err);
}

void proc_signal(const struct agent *a, int signo)
{
	if (inject_signal(a, &a->proc.child, signo))
		return;
	/*
	 * From PID 1 "all" is the box without the agent: no process escapes with its own session.
	 * Otherwise it would be the rest of the machine; beside resident runners it is every
	 * process newer than the run, beside other programs every process of its session.
	 */
	if (a->is_init && !resident_any(a) && !beside_any(a)) {
		kill_all_signal(a, signo);
		return;
	}
	if (signo == SIGKILL && a->is_init &&
	    (beside_any(a) ? kill_all_session(a, a->proc.child.pid) : kill_all_since_snapshot(a)))
		return;
	if (a->proc.child.pid > 0)
		(void)kill(-a->proc.child.pid, signo);
}

static bool is_full(const char *path)
{
	struct statfs st;

	if (statfs(path, &st) < 0)
		return false;
	return (st.f_blocks > 0 && st.f_bavail == 0) || (st.f_files > 0 && st.f_ffree == 0);
}

static uint64_t timeval_us(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * USEC_PER_SEC + (uint64_t)t->tv_usec;
}

void proc_fill_done(struct msg_done *msg, int wait_status, uint64_t duration_us)
{
	bool signalled = WIFSIGNALED(wait_status);
	struct rusage all = {0};

	(void)getrusage(RUSAGE_CHILDREN, &all);
	*msg = (struct msg_done){
		.signalled = signalled,
		.status = signalled ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status),
		.duration_us = duration_us,
		.cpu_user_us = timeval_us(&all.ru_utime),
		.cpu_system_us = timeval_us(&all.ru_stime),
		.max_rss_kib = (uint64_t)all.ru_maxrss,
		.read_bytes = (uint64_t)all.ru_inblock * BLOCK_BYTES,
		.write_bytes = (uint64_t)all.ru_oublock * BLOCK_BYTES,
		.disk_full = is_full(AGENT_WORKSPACE) || is_full("/tmp") || is_full("/dev/shm"),
	};
}

/*
 * By the file system's counters: only a child with the program's rights reads what it created. An
 * empty workspace, the usual case, needs no scan.
 */
static bool is_workspace_empty(void)
{
	struct statfs st;

	return statfs(AGENT_WORKSPACE, &st) == 0 && st.f_files > 0 && st.f_files - st.f_ffree <= 1;
}

static int send_changed(struct agent *a)
{
	const struct msg_changed msg = {.since_ns = a->proc.start_real_ns};

	return is_workspace_empty() ? 0 : msg_changed_encode(&a->ch.out, a->proc.id, &msg);
}

static int send_done(struct agent *a)
{
	struct proc *p = &a->proc;
	struct msg_done msg;

	proc_fill_done(&msg, p->wait_status, p->end_us - p->start_us);
	/* The runner's own time, not children of earlier runs. */
	if (p->runner) {
		msg.runner_lost = p->runner_lost;
		msg.cpu_user_us = p->cpu_us;
		msg.cpu_system_us = msg.max_rss_kib = msg.read_bytes = msg.write_bytes = 0;
	}
	/* It was not waited for, so it is not in RUSAGE_CHILDREN. */
	if (p->announced)
		msg.cpu_user_us += proc_cpu_us(p->child.pid);
	msg.stdout_bytes = p->out[WIRE_STDOUT].produced;
	msg.stderr_bytes = p->out[WIRE_STDERR].produced;
	/* With output while it waited, the run counts. */
	if (p->untaken && msg.stdout_bytes + msg.stderr_bytes == 0)
		msg.runner_lost = 2;
	return msg_done_encode(&a->ch.out, p->id, &msg);
}

/* Detected where the socket is read. */
static bool is_host_gone(int r)
{
	return r == -EPIPE || r == -ECONNRESET;
}

/* Processes that the run started stay; their pipes are drained. */
static int leave_run(struct agent *a)
{
	struct proc *p = &a->proc;
	struct resident *runner = p->runner;
	char source[sizeof(p->source)];
	int r;

	memcpy(source, p->source, sizeof(source));
	for (size_t i = 0; i < WIRE_STREAM_COUNT; i++)
		discard_add(&a->discard, TAKE_FD(p->out[i].fd));
	proc_close(p);
	/* If the runner has ended too, report both at once. */
	r = resident_settle(a, runner);
	/* Before the cleanup. */
	if (r >= 0)
		r = agent_flush(a);
	agent_remove_source(a, source);
	return is_host_gone(r) ? 0 : r;
}

static int finish_execution(struct agent *a)
{
	struct proc *p = &a->proc;
	struct denials *d = p->runner ? &p->runner->denials : &p->denials;
	int r = 0;

	denials_pump(d);
	r = denials_send(d, &a->ch, p->id);
	if (r >= 0)
		r = send_changed(a);
	if (r >= 0)
		r = send_done(a);
	if (r >= 0 && p->runner)
		return leave_run(a);
	/* Before the rest dies. */
	if (r >= 0)
		r = agent_flush(a);
	proc_signal(a, SIGKILL);
	proc_close(p);
	return is_host_gone(r) ? 0 : r;
}

/* Until exec. */
static int read_child(struct agent *a)
{
	struct proc *p = &a->proc;
	struct error err = {0};

	while (p->state == PROC_STARTING) {
		int listener = -1;
		switch (inject_read(a, &p->child, &listener, &err)) {
		case SPAWN_WAIT:
			return 0;
		case SPAWN_LISTENER:
			denials_open(&p->denials, listener);
			continue;
		case SPAWN_ERROR:
			return fail_execution(a, &err);
		case SPAWN_DONE: /* only from workers */
		case SPAWN_END:
			p->child.status = fd_close(p->child.status);
			p->state = PROC_RUNNING;
			return spawn_send_started(&p->child, &a->ch.out, p->id);
		}
	}
	return 0;
}

struct input *proc_input(struct agent *a, uint32_t id)
{
	struct beside *b = beside_find(a, id);

	if (b)
		return &b->in;
	return a->proc.state != PROC_IDLE && a->proc.id == id ? &a->proc.in : NULL;
}

int proc_reaped(struct agent *a, pid_t pid, int wait_status)
{
	struct proc *p = &a->proc;
	int r = 0;

	/* It reports its own pid, and may have exited. */
	if (p->state == PROC_STARTING && p->child.injected)
		r = read_child(a);
	else if (p->state == PROC_PREPARING && p->child.injected)
		r = prepared_pump(a);
	if (r < 0 || p->state == PROC_IDLE || p->state == PROC_DRAINING || pid != p->child.pid)
		return r;
	r = p->channel >= 0 ? prepared_reaped(a, wait_status) : read_child(a);
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
	else if (p->channel >= 0 && p->state != PROC_DRAINING)
		fds[PROC_STATUS].fd = prepared_fd(a);
	fds[PROC_DENIALS].fd = p->denials.fd;
	if (p->state == PROC_PREPARING || p->state == PROC_PREPARED)
		return; /* output of the run to come */
	if (output_wants(&p->out[WIRE_STDOUT], ch))
		fds[PROC_OUT].fd = p->out[WIRE_STDOUT].fd;
	if (output_wants(&p->out[WIRE_STDERR], ch))
		fds[PROC_ERR].fd = p->out[WIRE_STDERR].fd;
	if (input_wants(&p->in))
		fds[PROC_IN] = (struct pollfd){.fd = p->in.fd, .events = POLLOUT};
	fds[PROC_REPORT].fd = report_fd(&p->report, ch);
}

int proc_timeout_ms(const struct agent *a)
{
	const struct proc *p = &a->proc;
	uint64_t end = p->end_us + p->drain_ms * USEC_PER_MS;
	uint64_t now = 0;

	/* With a full channel, wait for the host. */
	if (p->state != PROC_DRAINING || channel_is_full(&a->ch))
		return -1;
	now = clock_us();
	if (now >= end)
		return 0;
	/* Waking early would only poll again. */
	uint64_t ms = (end - now) / USEC_PER_MS + 1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Those that poll found ready, or all (@fds NULL). Output first: a report refers to it. */
static int pump_streams(struct agent *a, const struct pollfd *fds)
{
	struct proc *p = &a->proc;
	int total = 0;

	static_assert(PROC_ERR == PROC_OUT + 1 && WIRE_STDERR == WIRE_STDOUT + 1, "in this order");
	for (size_t i = 0; i < WIRE_STREAM_COUNT; i++) {
		if (fds && !fds[PROC_OUT + i].revents)
			continue;
		int r = output_wants(&p->out[i], &a->ch) ? output_pump(&p->out[i], &a->ch, p->id)
		                                         : 0;
		if (r < 0)
			return r;
		total += r;
	}
	if (report_fd(&p->report, &a->ch) >= 0 && (!fds || fds[PROC_REPORT].revents)) {
		/* The socket has a name that other programs of the box know. */
		p->report.session = a->had_beside ? p->child.pid : 0;
		int r = report_pump(&p->report, &a->ch, p->id);
		if (r < 0)
			return r;
		total += r;
	}
	return total;
}

/* All that the pipes hold; later output only until the deadline. */
static int drain_pipes(struct agent *a)
{
	struct proc *p = &a->proc;
	bool is_drained;
	int n = 0;

	while (!channel_is_full(&a->ch) && p->drained < PROC_DRAIN_MAX_BYTES) {
		n = pump_streams(a, NULL);
		if (n <= 0)
			break;
		p->drained += (uint64_t)n;
	}
	if (n < 0)
		return n;
	/* The host is slow: lose no output. */
	if (channel_is_full(&a->ch))
		return 0;
	is_drained = p->out[WIRE_STDOUT].fd < 0 && p->out[WIRE_STDERR].fd < 0 && p->report.conn < 0;
	if (is_drained || p->drained >= PROC_DRAIN_MAX_BYTES || proc_timeout_ms(a) == 0)
		return finish_execution(a);
	return 0;
}

void proc_exit_announced(struct agent *a, int code)
{
	struct proc *p = &a->proc;

	/* Without a cgroup the kernel reports usage only at exit. */
	if (a->setup.data_limit > 0)
		return;
	p->end_us = clock_us();
	p->wait_status = code << 8; /* as a wait status */
	p->announced = true;
	p->state = PROC_DRAINING;
}

static int read_process(struct agent *a, const struct pollfd *fds)
{
	const struct proc *p = &a->proc;

	if (p->channel >= 0)
		return fds[PROC_STATUS].revents ? prepared_pump(a) : 0;
	/* Even if not ready: the exec may fall between poll's checks of it and of the output, and
	 * STARTED comes first. */
	return p->state == PROC_STARTING && !p->runner ? read_child(a) : 0;
}

static void check_leaver(struct agent *a)
{
	const struct proc *p = &a->proc;

	/* Not its children. */
	if (p->state == PROC_RUNNING && p->child.pid > 0 && p->denials.leaver == p->child.pid)
		proc_exit_announced(a, p->denials.leave_code);
}

int proc_pump(struct agent *a, const struct pollfd *fds)
{
	struct proc *p = &a->proc;
	int r = 0;

	if (fds[PROC_DENIALS].revents)
		denials_pump(&p->denials);
	r = read_process(a, fds);
	if (p->state == PROC_PREPARING || p->state == PROC_PREPARED)
		return r;
	check_leaver(a);
	if (r >= 0 && p->state != PROC_IDLE && (p->in.room > 0 || fds[PROC_IN].revents))
		r = input_pump(&p->in, &a->ch, p->id);
	if (r < 0 || p->state == PROC_IDLE)
		return r;
	if (p->state == PROC_DRAINING)
		return drain_pipes(a);
	if (fds[PROC_OUT].revents || fds[PROC_ERR].revents || fds[PROC_REPORT].revents)
		r = pump_streams(a, fds);
	return r < 0 ? r : 0;
}
