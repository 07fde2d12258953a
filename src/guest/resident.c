/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/resident.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "guest/agent.h"
#include "guest/job.h"
#include "guest/kill_all.h"

/* Per runner. */
enum source {
	SOURCE_WORDS, /* the status socket, then the channel */
	SOURCE_DENIALS,
	SOURCES
};

static void resident_forget(struct resident *r)
{
	(void)fd_close(r->child.status);
	(void)fd_close(r->channel);
	denials_close(&r->denials);
	*r = (struct resident){.child = {.status = -1}, .channel = -1, .denials = {.fd = -1}};
}

void resident_init(struct agent *a)
{
	for (size_t i = 0; i < RESIDENT_MAX; i++) {
		a->residents[i].child.status = a->residents[i].channel = -1;
		a->residents[i].denials.fd = -1;
	}
}

static bool is_alive(const struct resident *r)
{
	return r->state == RESIDENT_STARTING || r->state == RESIDENT_ALIVE;
}

struct resident *resident_find(struct agent *a, uint32_t id)
{
	for (size_t i = 0; i < RESIDENT_MAX; i++)
		if (is_alive(&a->residents[i]) && a->residents[i].id == id)
			return &a->residents[i];
	return NULL;
}

static size_t count_alive(const struct agent *a)
{
	size_t count = 0;

	for (size_t i = 0; i < RESIDENT_MAX; i++)
		count += is_alive(&a->residents[i]);
	return count;
}

bool resident_any(const struct agent *a)
{
	return count_alive(a) > 0;
}

bool resident_has(const struct agent *a, pid_t pid)
{
	for (size_t i = 0; i < RESIDENT_MAX; i++)
		if (is_alive(&a->residents[i]) && a->residents[i].child.pid == pid)
			return true;
	return false;
}

uint64_t resident_cpu_us(const struct resident *r)
{
	return is_alive(r) && r->child.pid != 0 ? proc_cpu_us(r->child.pid) : 0;
}

static bool is_running(const struct agent *a, const struct resident *r)
{
	return a->proc.runner == r && a->proc.state != PROC_IDLE;
}

static struct resident *find_place(struct agent *a)
{
	for (size_t i = 0; i < RESIDENT_MAX; i++)
		if (a->residents[i].state == RESIDENT_NONE)
			return &a->residents[i];
	return NULL;
}

/* The request channel; the caller owns *ret_theirs. */
static int open_channel(struct resident *r, int *ret_theirs)
{
	int ends[2] = {-1, -1};
	int n = fd_socketpair(SOCK_SEQPACKET, ends);

	if (n < 0)
		return n;
	r->channel = ends[0];
	*ret_theirs = ends[1];
	return fd_set_nonblock(r->channel, true);
}

static int spawn_runner(struct agent *a, struct resident *r, const struct msg_exec *msg,
                        struct error *err)
{
	attr_cleanup(job_done) struct job job = {0};
	cleanup_close int theirs = -1;
	struct drop_plan plan = {
		.setup = &a->setup,
		.stdio = {a->null, a->null, a->null},
		.workspace = a->workspace,
		.ruleset = a->ruleset,
		.notify = true,
	};
	int n = 0;

	if (job_make(&job, msg, err) < 0)
		return -1;
	n = open_channel(r, &theirs);
	if (n < 0)
		return error_set(err, ERR_BOX_FAILED, -n, "create a channel: %s", strerror(-n));
	plan.channel = theirs;
	r->start_us = clock_us();
	return inject_spawn(a, &plan, &job, &r->child, err);
}

int resident_start(struct agent *a, uint32_t id, const struct msg_exec *msg, struct error *err)
{
	struct resident *r = find_place(a);

	if (!r)
		return error_set(err, ERR_CONFLICT, 0, "the box has %d runners already",
		                 RESIDENT_MAX);
	if (spawn_runner(a, r, msg, err) < 0) {
		resident_forget(r);
		return -1;
	}
	r->id = id;
	r->state = RESIDENT_STARTING;
	return 0;
}

int resident_check_source(const struct wire_bytes *source, char ret_name[RESIDENT_SOURCE_MAX + 1],
                          struct error *err)
{
	if (put_check_path(source, err) < 0)
		return -1;
	if (memchr(source->data, '/', source->len))
		return error_set(err, ERR_INVALID, 0,
		                 "the source of a run must not be in a directory");
	memcpy(ret_name, source->data, source->len); /* a path component is shorter than ret_name */
	ret_name[source->len] = '\0';
	return 0;
}

static int make_request(struct buf *b, const char *verb, uint32_t id, const struct msg_run *msg)
{
	struct wire_bytes item;
	uint32_t pos = 0;
	int r = buf_addf(b, "%s %u " AGENT_RUN_DIR "/", verb, id);

	if (r >= 0)
		r = buf_add(b, msg->source.data, msg->source.len);
	if (r >= 0)
		r = buf_add(b, "", 1);
	while (r >= 0 && wire_strs_next(&msg->args, &pos, &item)) {
		r = buf_add(b, item.data, item.len);
		if (r >= 0)
			r = buf_add(b, "", 1);
	}
	return r;
}

static int refuse_length(int n, struct error *err)
{
	return error_set(err, ERR_TOO_LARGE, -n, "arguments exceed %d bytes", RESIDENT_REQUEST_MAX);
}

int resident_send(int channel, uint32_t id, const struct msg_run *msg, struct error *err)
{
	cleanup_buf struct buf b = BUF_INIT(RESIDENT_REQUEST_MAX);
	int n = make_request(&b, msg->stdin_open ? "stdin" : "run", id, msg);

	if (n < 0)
		return refuse_length(n, err);
	n = fd_send(channel, b.data, b.len, NULL, 0);
	if (n >= 0)
		return 0;
	return error_set(err, ERR_BOX_FAILED, -n, "cannot send the request to the runner: %s",
	                 strerror(-n));
}

int resident_ask(struct agent *a, struct resident *r, uint32_t id, const struct msg_run *msg,
                 const int stdio[3], struct error *err)
{
	cleanup_buf struct buf b = BUF_INIT(RESIDENT_REQUEST_MAX);
	int n = make_request(&b, "run", id, msg);

	if (n < 0)
		return refuse_length(n, err);
	/* Refusals before this run do not count. */
	denials_pump(&r->denials);
	r->denials.kinds = 0;
	n = r->channel < 0 ? -EPIPE : fd_send(r->channel, b.data, b.len, stdio, 3);
	if (n >= 0)
		return 0;
	/* It closed its end, or has not read the last request. */
	resident_signal(a, r, SIGKILL);
	return error_set(err, ERR_BOX_FAILED, -n, "cannot send the request to the runner: %s",
	                 strerror(-n));
}

static void kill_group(const struct resident *r, int signo)
{
	/* It may not have its session yet; its pid is its own until reaped. */
	if (kill(-r->child.pid, signo) < 0 && is_alive(r))
		(void)kill(r->child.pid, signo);
}

void resident_signal(const struct agent *a, const struct resident *r, int signo)
{
	bool alone = count_alive(a) == (is_alive(r) ? 1 : 0) &&
	             (a->proc.state == PROC_IDLE || a->proc.runner == r) && !beside_any(a);

	if (inject_signal(a, &r->child, signo))
		return;
	/* From PID 1 "all" is the box without the agent: none escapes by forking. */
	if (signo == SIGKILL && a->is_init && alone)
		kill_all_signal(a, SIGKILL);
	else
		kill_group(r, signo);
}

void resident_kill_all(const struct agent *a)
{
	for (size_t i = 0; i < RESIDENT_MAX; i++)
		if (is_alive(&a->residents[i]) && a->residents[i].child.pid > 0)
			kill_group(&a->residents[i], SIGKILL);
}

int resident_settle(struct agent *a, struct resident *r)
{
	struct msg_done msg;
	int n = 0;

	if (r->state != RESIDENT_ENDED)
		return 0;
	proc_fill_done(&msg, r->wait_status, r->end_us - r->start_us);
	n = msg_done_encode(&a->ch.out, r->id, &msg);
	resident_forget(r);
	return n;
}

static int fail_runner(struct agent *a, struct resident *r, const struct error *err)
{
	uint32_t id = r->id;
	int n = is_running(a, r) ? proc_run_failed(a, err) : 0;

	resident_forget(r);
	return n < 0 ? n : agent_fail(a, id, err);
}

/* Until exec. */
static int read_child(struct agent *a, struct resident *r)
{
	struct error err = {0};

	while (r->state == RESIDENT_STARTING) {
		int listener = -1;
		int n = 0;
		switch (inject_read(a, &r->child, &listener, &err)) {
		case SPAWN_WAIT:
			return 0;
		case SPAWN_LISTENER:
			denials_open(&r->denials, listener);
			continue;
		case SPAWN_ERROR:
			return fail_runner(a, r, &err);
		case SPAWN_DONE: /* only from workers */
		case SPAWN_END:
			r->child.status = fd_close(r->child.status);
			r->state = RESIDENT_ALIVE;
			n = spawn_send_started(&r->child, &a->ch.out, r->id);
			return n < 0 ? n : proc_run_started(a);
		}
	}
	return 0;
}

/* No sign, no leading zeros. */
static const char *take_number(const char *pos, const char *end, uint32_t max, uint32_t *ret_value)
{
	const char *start = pos;
	uint64_t value = 0;

	for (; pos < end && *pos >= '0' && *pos <= '9' && value <= max; pos++)
		value = value * 10 + (uint64_t)(*pos - '0');
	if (pos == start || value > max || (*start == '0' && pos > start + 1))
		return NULL;
	*ret_value = (uint32_t)value;
	return pos;
}

static const char *take_word(const char *pos, const char *end, const char *word)
{
	size_t len = strlen(word);

	return (size_t)(end - pos) >= len && memcmp(pos, word, len) == 0 ? pos + len : NULL;
}

/* Return: 1, 0: malformed, or the channel's negative errno. */
static int take_message(struct agent *a, const char *data, size_t len)
{
	const char *end = data + len;
	const char *report = take_word(data, end, "report ");
	const char *pos = report ? report : take_word(data, end, "done ");
	uint32_t id = 0, code = 0;

	if (pos)
		pos = take_number(pos, end, UINT32_MAX, &id);
	if (!pos || id != a->proc.id)
		return 0;
	if (report) {
		pos = take_word(pos, end, "\n");
		if (!pos || end - pos > RESIDENT_PIECE_MAX)
			return 0;
		int r = proc_run_report(a, pos, (size_t)(end - pos));
		return r < 0 ? r : 1;
	}
	pos = take_word(pos, end, " ");
	if (!pos || take_number(pos, end, 255, &code) != end)
		return 0;
	proc_run_over(a, (int)code << 8, false); /* as a wait status */
	return 1;
}

static int read_runner(struct agent *a, struct resident *r)
{
	char *data = a->ch.scratch;

	for (int i = 0; i < RESIDENT_BATCH && r->channel >= 0 && !channel_is_full(&a->ch); i++) {
		ssize_t n = fd_recv_plain(r->channel, data, sizeof(a->ch.scratch),
		                          MSG_DONTWAIT | MSG_TRUNC);
		int took = 0;
		if (n == -EAGAIN)
			return 0;
		/* It exited with the request unread: see prepared.c. */
		if (n == -ECONNRESET && is_running(a, r))
			a->proc.untaken = true;
		/* 0 is EOF or an empty message. */
		if (n > 0 && (size_t)n <= sizeof(a->ch.scratch) && is_running(a, r) &&
		    a->proc.state == PROC_RUNNING)
			took = take_message(a, data, (size_t)n);
		if (took < 0)
			return took;
		if (took == 0) {
			/* It broke the protocol. Its run ends when it exits. */
			resident_signal(a, r, SIGKILL); /* before it sees EOF and exits */
			r->channel = fd_close(r->channel);
		}
	}
	return 0;
}

/* It reports its own pid, and may have exited. */
static int read_injected(struct agent *a)
{
	int n = 0;

	for (size_t i = 0; i < RESIDENT_MAX && n >= 0; i++)
		if (a->residents[i].state == RESIDENT_STARTING && a->residents[i].child.injected)
			n = read_child(a, &a->residents[i]);
	return n;
}

static struct resident *find_process(struct agent *a, pid_t pid)
{
	for (size_t i = 0; i < RESIDENT_MAX; i++)
		if (is_alive(&a->residents[i]) && a->residents[i].child.pid == pid)
			return &a->residents[i];
	return NULL;
}

int resident_reaped(struct agent *a, pid_t pid, int wait_status)
{
	int n = read_injected(a);
	struct resident *r = n < 0 ? NULL : find_process(a, pid);

	if (!r)
		return n;
	n = read_child(a, r);
	/* It may have answered before it exited. */
	if (n >= 0 && r->state == RESIDENT_ALIVE)
		n = read_runner(a, r);
	if (n < 0 || r->state != RESIDENT_ALIVE)
		return n;
	if (is_running(a, r) && a->proc.state == PROC_RUNNING)
		proc_run_over(a, wait_status, true);
	r->state = RESIDENT_ENDED;
	r->end_us = clock_us();
	r->wait_status = wait_status;
	r->channel = fd_close(r->channel);
	resident_signal(a, r, SIGKILL); /* what it left behind */
	return is_running(a, r) ? 0 : resident_settle(a, r);
}

void resident_watch(const struct agent *a, struct pollfd *fds)
{
	for (size_t i = 0; i < RESIDENT_MAX; i++, fds += SOURCES) {
		const struct resident *r = &a->residents[i];
		fds[SOURCE_WORDS] = (struct pollfd){.fd = -1, .events = POLLIN};
		fds[SOURCE_DENIALS] = (struct pollfd){.fd = r->denials.fd, .events = POLLIN};
		if (r->state == RESIDENT_STARTING)
			fds[SOURCE_WORDS].fd = r->child.status;
		else if (r->state == RESIDENT_ALIVE && !channel_is_full(&a->ch))
			fds[SOURCE_WORDS].fd = r->channel;
	}
}

int resident_pump(struct agent *a, const struct pollfd *fds)
{
	int n = 0;

	for (size_t i = 0; i < RESIDENT_MAX && n >= 0; i++, fds += SOURCES) {
		struct resident *r = &a->residents[i];
		if (fds[SOURCE_DENIALS].revents)
			denials_pump(&r->denials);
		if (r->state == RESIDENT_STARTING)
			n = read_child(a, r);
		else if (fds[SOURCE_WORDS].revents && r->state == RESIDENT_ALIVE)
			n = read_runner(a, r);
	}
	return n;
}
