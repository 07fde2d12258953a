/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/beside.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "guest/agent.h"
#include "guest/fsid.h"
#include "guest/job.h"
#include "guest/kill_all.h"
#include "guest/terminal.h"

/*
 * Theory of operation. The same steps as an execution's (proc.c), without what only an execution
 * has: a report, whose socket has one name; a zygote's child, which is the box's first program; and
 * the list of changed files, which could be another program's.
 *
 * Each program reads and writes one chunk per round, so that none delays the others.
 */

static void free_beside(struct agent *a, size_t i)
{
	struct beside *b = TAKE_PTR(a->besides[i]);

	(void)fd_close(b->child.status);
	for (size_t s = 0; s < WIRE_STREAM_COUNT; s++)
		output_close(&b->out[s]);
	input_close(&b->in);
	denials_close(&b->denials);
	(void)fd_close(b->terminal);
	free(b);
	while (a->besides_end > 0 && !a->besides[a->besides_end - 1])
		a->besides_end--;
}

struct beside *beside_find(struct agent *a, uint32_t id)
{
	for (size_t i = 0; i < a->besides_end; i++)
		if (a->besides[i] && a->besides[i]->id == id)
			return a->besides[i];
	return NULL;
}

bool beside_any(const struct agent *a)
{
	return a->besides_end > 0;
}

static int open_pipes(struct beside *b, const struct msg_beside *msg, struct child_ends *ends)
{
	int r = output_open(&b->out[WIRE_STDOUT], WIRE_STDOUT, msg->stdout_max, &ends->fds[1]);

	if (r >= 0)
		r = output_open(&b->out[WIRE_STDERR], WIRE_STDERR, msg->stderr_max, &ends->fds[2]);
	if (r >= 0 && msg->stdin_open)
		r = input_open(&b->in, &ends->fds[0]);
	return r;
}

/* As of an execution: the payload owns its pipes. */
static int open_own_pipes(const struct agent *a, struct beside *b, const struct msg_beside *msg,
                          struct child_ends *ends)
{
	struct fsid ids;
	int r = fsid_take(&ids, a->setup.uid, a->setup.gid);
	int back = 0;

	if (r >= 0)
		r = open_pipes(b, msg, ends);
	back = fsid_give_back(&ids);
	return r < 0 ? r : back;
}

static int open_terminal(struct beside *b, const struct msg_beside *msg, struct child_ends *ends)
{
	int in, out;

	b->terminal = terminal_open(msg->rows, msg->cols, &ends->fds[0]);
	if (b->terminal < 0)
		return b->terminal;
	out = fd_dup(b->terminal);
	if (out < 0)
		return out;
	b->out[WIRE_STDOUT] = (struct output){
		.fd = out, .stream = WIRE_STDOUT, .max = msg->stdout_max, .waits = true};
	in = fd_dup(b->terminal);
	if (in < 0)
		return in;
	input_take(&b->in, in);
	for (int i = 1; i < 3; i++) {
		ends->fds[i] = fd_dup(ends->fds[0]);
		if (ends->fds[i] < 0)
			return ends->fds[i];
	}
	return 0;
}

static int start_program(struct agent *a, struct beside *b, const struct msg_beside *msg,
                         struct error *err)
{
	attr_cleanup(job_done) struct job job = {0};
	attr_cleanup(child_ends_close) struct child_ends ends = {{-1, -1, -1}};
	const struct msg_exec exec = {.argv = msg->argv, .env = msg->env, .cwd = msg->cwd};
	bool on_terminal = msg->rows > 0;
	struct drop_plan plan = {
		.setup = &a->setup,
		.workspace = a->workspace,
		.ruleset = a->ruleset,
		.notify = true,
		.terminal = on_terminal,
	};
	int r = 0;

	if (job_make(&job, &exec, err) < 0)
		return -1;
	r = on_terminal ? open_terminal(b, msg, &ends) : open_own_pipes(a, b, msg, &ends);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "create %s: %s",
		                 on_terminal ? "a terminal" : "pipes", strerror(-r));
	plan.stdio[0] = ends.fds[0] >= 0 ? ends.fds[0] : a->null;
	plan.stdio[1] = ends.fds[1];
	plan.stdio[2] = ends.fds[2];
	b->start_us = clock_us();
	return spawn_payload(&plan, job_execute, &job, &b->child, err);
}

static int find_place(const struct agent *a)
{
	for (int i = 0; i < WIRE_BESIDE_MAX; i++)
		if (!a->besides[i])
			return i;
	return -1;
}

static struct beside *new_beside(struct agent *a, size_t i)
{
	struct beside *b = a->besides[i] = NEW(struct beside);

	b->child.status = b->terminal = b->in.fd = b->denials.fd = -1;
	for (size_t s = 0; s < WIRE_STREAM_COUNT; s++)
		b->out[s].fd = -1;
	if (i >= a->besides_end)
		a->besides_end = i + 1;
	return b;
}

int beside_start(struct agent *a, uint32_t id, const struct msg_beside *msg, struct error *err)
{
	int place = find_place(a);
	struct beside *b;

	if (place < 0)
		return error_set(err, ERR_BUSY, 0, "%d programs run beside the execution",
		                 WIRE_BESIDE_MAX);
	b = new_beside(a, (size_t)place);
	a->had_beside = true;
	if ((msg->source.len > 0 && resident_check_source(&msg->source, b->source, err) < 0) ||
	    start_program(a, b, msg, err) < 0) {
		free_beside(a, (size_t)place);
		return -1;
	}
	b->id = id;
	b->drain_ms = msg->drain_ms;
	return 0;
}

void beside_resize(const struct beside *b, uint16_t rows, uint16_t cols)
{
	if (b->terminal >= 0)
		(void)!terminal_resize(b->terminal, rows, cols);
}

int beside_grant(struct beside *b, uint32_t bytes)
{
	struct output *o = &b->out[WIRE_STDOUT];

	if (b->state == BESIDE_DRAINING)
		return 0; /* it crossed the end */
	if (b->terminal < 0 || bytes == 0 || o->max + bytes > o->produced + WIRE_TERMINAL_WINDOW)
		return -EPROTO;
	o->max += bytes;
	return 0;
}

static bool is_alone(const struct agent *a, const struct beside *b)
{
	for (size_t i = 0; i < a->besides_end; i++)
		if (a->besides[i] && a->besides[i] != b)
			return false;
	return a->proc.state == PROC_IDLE && !resident_any(a);
}

static void kill_program(const struct agent *a, const struct beside *b)
{
	if (a->is_init && is_alone(a, b))
		kill_all_signal(a, SIGKILL);
	else if (!a->is_init || !kill_all_session(a, b->child.pid))
		(void)kill(-b->child.pid, SIGKILL);
}

void beside_signal(const struct agent *a, const struct beside *b, int signo)
{
	pid_t group = b->terminal >= 0 ? terminal_foreground(b->terminal) : 0;

	if (signo == SIGKILL)
		kill_program(a, b);
	else
		(void)kill(-(group ? group : b->child.pid), signo);
	/* It may not have its session yet; its pid is its own until reaped. */
	if (b->state == BESIDE_STARTING)
		(void)kill(b->child.pid, signo);
}

void beside_kill_all(const struct agent *a)
{
	for (size_t i = 0; i < a->besides_end; i++)
		if (a->besides[i])
			(void)kill(-a->besides[i]->child.pid, SIGKILL);
}

void beside_detach(struct agent *a)
{
	for (size_t i = 0; i < a->besides_end; i++) {
		struct beside *b = a->besides[i];
		struct output *o = b ? &b->out[WIRE_STDOUT] : NULL;

		if (!b)
			continue;
		b->in.room = 0;
		if (o->waits)
			o->max = o->produced + WIRE_TERMINAL_WINDOW;
	}
}

static int fail_program(struct agent *a, size_t i, const struct error *err)
{
	uint32_t id = a->besides[i]->id;

	free_beside(a, i);
	return agent_send_failed(a, id, err);
}

/* Until exec. */
static int read_child(struct agent *a, size_t i)
{
	struct beside *b = a->besides[i];
	struct error err = {0};

	while (b->state == BESIDE_STARTING) {
		int listener = -1;
		switch (spawn_read(b->child.status, &listener, &err)) {
		case SPAWN_WAIT:
			return 0;
		case SPAWN_LISTENER:
			denials_open(&b->denials, listener);
			continue;
		case SPAWN_ERROR:
			return fail_program(a, i, &err);
		case SPAWN_DONE: /* only from workers */
		case SPAWN_END:
			b->child.status = fd_close(b->child.status);
			b->state = BESIDE_RUNNING;
			return spawn_send_started(&b->child, &a->ch.out, b->id);
		}
	}
	return 0;
}

static uint64_t timeval_us(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * USEC_PER_SEC + (uint64_t)t->tv_usec;
}

static int send_done(struct agent *a, const struct beside *b)
{
	struct msg_done msg;

	proc_fill_done(&msg, b->wait_status, b->end_us - b->start_us);
	/* Of this program, not of all children so far. */
	msg.cpu_user_us = timeval_us(&b->usage.ru_utime);
	msg.cpu_system_us = timeval_us(&b->usage.ru_stime);
	msg.max_rss_kib = (uint64_t)b->usage.ru_maxrss;
	msg.read_bytes = msg.write_bytes = 0;
	msg.stdout_bytes = b->out[WIRE_STDOUT].produced;
	msg.stderr_bytes = b->out[WIRE_STDERR].produced;
	return msg_done_encode(&a->ch.out, b->id, &msg);
}

static int finish_program(struct agent *a, size_t i)
{
	struct beside *b = a->besides[i];
	int r = 0;

	denials_pump(&b->denials);
	kill_program(a, b);
	r = denials_send(&b->denials, &a->ch, b->id);
	if (r >= 0)
		r = send_done(a, b);
	if (b->source[0])
		agent_remove_source(a, b->source);
	free_beside(a, i);
	return r;
}

int beside_reaped(struct agent *a, pid_t pid, int wait_status, const struct rusage *usage)
{
	for (size_t i = 0; i < a->besides_end; i++) {
		struct beside *b = a->besides[i];
		int r;

		if (!b || b->child.pid != pid || b->state == BESIDE_DRAINING)
			continue;
		r = read_child(a, i);
		if (r < 0 || a->besides[i] != b || b->state != BESIDE_RUNNING)
			return r;
		b->end_us = clock_us();
		b->wait_status = wait_status;
		b->usage = *usage;
		b->state = BESIDE_DRAINING;
		/* What its terminal holds fits: it is read to the end. */
		if (b->terminal >= 0)
			b->out[WIRE_STDOUT].max += WIRE_TERMINAL_WINDOW;
		return 0;
	}
	return 0;
}

/* Messages of a terminal are not in the journal: they wait until that was sent. */
static bool wants_output(const struct agent *a, const struct output *o)
{
	return output_wants(o, &a->ch) && !(o->waits && a->journal.replaying);
}

static void watch_one(const struct agent *a, const struct beside *b, struct pollfd *fds)
{
	if (b->state == BESIDE_STARTING)
		fds[BESIDE_STATUS].fd = b->child.status;
	fds[BESIDE_DENIALS].fd = b->denials.fd;
	for (size_t s = 0; s < WIRE_STREAM_COUNT; s++)
		if (wants_output(a, &b->out[s]))
			fds[BESIDE_OUT + s].fd = b->out[s].fd;
	if (input_wants(&b->in))
		fds[BESIDE_IN] = (struct pollfd){.fd = b->in.fd, .events = POLLOUT};
}

void beside_watch(const struct agent *a, struct pollfd *fds)
{
	for (size_t i = 0; i < a->besides_end; i++, fds += BESIDE_SOURCES) {
		for (int s = 0; s < BESIDE_SOURCES; s++)
			fds[s] = (struct pollfd){.fd = -1, .events = POLLIN};
		if (a->besides[i])
			watch_one(a, a->besides[i], fds);
	}
}

static int drain_ms(const struct agent *a, const struct beside *b)
{
	uint64_t end = b->end_us + b->drain_ms * USEC_PER_MS;
	uint64_t now = clock_us();

	/* With a full channel, wait for the host. */
	if (channel_is_full(&a->ch))
		return -1;
	if (now >= end)
		return 0;
	uint64_t ms = (end - now) / USEC_PER_MS + 1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

int beside_timeout_ms(const struct agent *a)
{
	int least = -1;

	for (size_t i = 0; i < a->besides_end; i++) {
		const struct beside *b = a->besides[i];
		int ms = b && b->state == BESIDE_DRAINING ? drain_ms(a, b) : -1;

		if (ms >= 0 && (least < 0 || ms < least))
			least = ms;
	}
	return least;
}

/* Those that poll found ready, or all (@fds NULL). Return: bytes read, or a negative errno. */
static int pump_output(struct agent *a, struct beside *b, const struct pollfd *fds)
{
	int total = 0;

	static_assert(BESIDE_ERR == BESIDE_OUT + 1 && WIRE_STDERR == WIRE_STDOUT + 1, "in order");
	for (size_t s = 0; s < WIRE_STREAM_COUNT; s++) {
		int r;

		if ((fds && !fds[BESIDE_OUT + s].revents) || !wants_output(a, &b->out[s]))
			continue;
		r = output_pump(&b->out[s], &a->ch, b->id);
		if (r < 0)
			return r;
		total += r;
	}
	return total;
}

static int drain_program(struct agent *a, size_t i)
{
	struct beside *b = a->besides[i];
	int n = 0;

	while (!channel_is_full(&a->ch) && b->drained < PROC_DRAIN_MAX_BYTES) {
		n = pump_output(a, b, NULL);
		if (n <= 0)
			break;
		b->drained += (uint64_t)n;
	}
	if (n < 0)
		return n;
	if (channel_is_full(&a->ch))
		return 0;
	if ((b->out[WIRE_STDOUT].fd < 0 && b->out[WIRE_STDERR].fd < 0) ||
	    b->drained >= PROC_DRAIN_MAX_BYTES || drain_ms(a, b) == 0)
		return finish_program(a, i);
	return 0;
}

static int pump_one(struct agent *a, size_t i, const struct pollfd *fds)
{
	struct beside *b = a->besides[i];
	int r = 0;

	if (fds[BESIDE_DENIALS].revents)
		denials_pump(&b->denials);
	if (b->state == BESIDE_STARTING)
		r = read_child(a, i);
	b = a->besides[i];
	if (r < 0 || !b) /* it could not be started */
		return r;
	if (b->in.room > 0 || fds[BESIDE_IN].revents)
		r = input_pump(&b->in, &a->ch, b->id);
	if (r < 0)
		return r;
	/* Output comes after STARTED. */
	if (b->state == BESIDE_DRAINING)
		return drain_program(a, i);
	if (b->state == BESIDE_RUNNING)
		r = pump_output(a, b, fds);
	return r < 0 ? r : 0;
}

int beside_pump(struct agent *a, const struct pollfd *fds)
{
	size_t end = a->besides_end; /* of those that were watched */
	int r = 0;

	for (size_t i = 0; i < end && r >= 0; i++, fds += BESIDE_SOURCES)
		if (a->besides[i])
			r = pump_one(a, i, fds);
	return r;
}
