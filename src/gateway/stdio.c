/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/fd.h"
#include "base/log.h"
#include "gateway/gateway.h"
#include "gateway/lines.h"
#include "gateway/spawn.h"
#include "io/watch.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * A server that is a program: one message per line on its stdin and stdout. The starter runs it and
 * passes three pipes. Its stderr is for the operator.
 */

#define QUEUE_MAX (4 * (size_t)GATEWAY_FRAME_MAX) /* for a server that does not read */
#define READ_SIZE (64 * 1024)
#define READ_TURN 16

struct stdio {
	struct server *server;
	uint32_t generation; /* of the present start */
	bool is_ending;      /* its output has ended: the starter says how */
	int fds[SPAWN_FD_COUNT];
	struct watch *watches[SPAWN_FD_COUNT];
	struct lines lines, notes;
	struct buf output;
	size_t sent;
	char note[128]; /* the last line of stderr */
};

static void send_order(const struct stdio *t, enum spawn_op op)
{
	const struct spawn_message m = {
		.op = op, .server = (uint32_t)t->server->index, .generation = t->generation};
	int r = fd_send(t->server->gateway->starter_fd, &m, sizeof(m), NULL, 0);

	if (r < 0)
		log_warn("order to the starter of %s: %s, ignoring", t->server->spec->name,
		         strerror(-r));
}

static void close_pipe(struct stdio *t, enum spawn_fd which)
{
	watch_free(t->watches[which]);
	t->watches[which] = NULL;
	t->fds[which] = fd_close(t->fds[which]);
}

static void close_pipes(struct stdio *t)
{
	for (int i = 0; i < SPAWN_FD_COUNT; i++)
		close_pipe(t, (enum spawn_fd)i);
	lines_reset(&t->lines);
	lines_reset(&t->notes);
	buf_reset(&t->output);
	t->sent = 0;
}

void stdio_start(struct stdio *t)
{
	t->generation++;
	t->is_ending = false;
	t->note[0] = '\0';
	send_order(t, SPAWN_START);
}

void stdio_stop(struct stdio *t)
{
	close_pipes(t);
	if (t->generation)
		send_order(t, SPAWN_STOP);
	/* Whatever is still to come is of an earlier start. */
	t->generation++;
}

static void flush_output(struct stdio *t)
{
	while (t->sent < t->output.len) {
		ssize_t n = write(t->fds[SPAWN_FD_IN], t->output.data + t->sent,
		                  t->output.len - t->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) { /* it ends: its status comes */
			t->sent = t->output.len;
			break;
		}
		if (n < 0)
			break;
		t->sent += (size_t)n;
	}
	if (t->sent == t->output.len) {
		buf_done(&t->output);
		buf_init(&t->output, QUEUE_MAX);
		t->sent = 0;
	}
	watch_set(t->watches[SPAWN_FD_IN], t->output.len > 0 ? WATCH_WRITE : 0);
}

int stdio_send(struct stdio *t, const char *text, size_t len)
{
	if (t->fds[SPAWN_FD_IN] < 0)
		return -EPIPE;
	if (t->output.len - t->sent + len + 1 > QUEUE_MAX / 2)
		return -ENOBUFS;
	buf_consume(&t->output, t->sent);
	t->sent = 0;
	if (buf_add(&t->output, text, len) < 0 || buf_add(&t->output, "\n", 1) < 0)
		return -ENOBUFS;
	flush_output(t);
	return 0;
}

static void on_writable(void *ctx, int events)
{
	(void)events;
	flush_output(ctx);
}

/* Return: false at the end. */
static bool read_lines(struct lines *lines, int fd)
{
	char data[READ_SIZE];
	ssize_t n = read(fd, data, sizeof(data));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	lines_add(lines, data, (size_t)n);
	return n > 0;
}

static void on_output(void *ctx, int events)
{
	struct stdio *t = ctx;
	uint32_t generation = t->generation;
	bool goes_on = read_lines(&t->lines, t->fds[SPAWN_FD_OUT]);
	struct line line;

	(void)events;
	/* A message may end the server, and with it the pipes. */
	while (t->generation == generation && lines_next(&t->lines, &line)) {
		if (!line.is_cut)
			server_received(t->server, line.text, line.len);
		else if (line.id)
			server_lost_message(t->server, line.id);
		else
			log_warn("%s sent a line that is too long, ignoring",
			         t->server->spec->name);
	}
	if (t->generation == generation && !goes_on) {
		close_pipe(t, SPAWN_FD_OUT);
		t->is_ending = true;
		/* It may have closed its output and live on. */
		send_order(t, SPAWN_STOP);
	}
}

static void on_notes(void *ctx, int events)
{
	struct stdio *t = ctx;
	bool goes_on = read_lines(&t->notes, t->fds[SPAWN_FD_ERR]);
	struct line line;

	(void)events;
	while (lines_next(&t->notes, &line)) {
		(void)snprintf(t->note, sizeof(t->note), "%.*s", (int)line.len, line.text);
		log_debug("%s: %s", t->server->spec->name, t->note);
	}
	if (!goes_on)
		close_pipe(t, SPAWN_FD_ERR);
}

static void open_pipes(struct stdio *t, const int fds[SPAWN_FD_COUNT])
{
	static watch_fn *const fns[] = {
		[SPAWN_FD_IN] = on_writable, [SPAWN_FD_OUT] = on_output, [SPAWN_FD_ERR] = on_notes};

	for (int i = 0; i < SPAWN_FD_COUNT; i++) {
		t->fds[i] = fds[i];
		t->watches[i] = watch_new(t->server->gateway->loop, fds[i], fns[i], t);
		watch_set(t->watches[i], i == SPAWN_FD_IN ? 0 : WATCH_READ);
	}
	server_opened(t->server);
}

static void report_end(struct stdio *t, int status)
{
	/* Its last words. */
	if (t->fds[SPAWN_FD_ERR] >= 0)
		on_notes(t, WATCH_READ);
	if (t->note[0])
		log_warn("the last line of MCP server %s: %s", t->server->spec->name, t->note);
	if (WIFSIGNALED(status) && !t->is_ending)
		server_fail(t->server, "was ended by signal %d", WTERMSIG(status));
	else if (WIFSIGNALED(status))
		server_fail(t->server, "has closed its output");
	else if (WEXITSTATUS(status) == 127)
		server_fail(t->server, "cannot be executed: its program does not exist");
	else
		server_fail(t->server, "has ended with status %d", WEXITSTATUS(status));
}

static void take_message(struct gateway *g, const struct spawn_message *m, int *fds, size_t count)
{
	struct stdio *t = m->server < g->servers_count ? g->servers[m->server]->stdio : NULL;

	if (!t || m->generation != t->generation)
		return;
	if (m->op == SPAWN_STARTED && count == SPAWN_FD_COUNT) {
		int own[SPAWN_FD_COUNT];

		for (size_t i = 0; i < count; i++)
			own[i] = TAKE_FD(fds[i]);
		open_pipes(t, own);
	} else if (m->op == SPAWN_FAILED) {
		server_fail(t->server, "cannot be started: %s", strerror(-m->status));
	} else if (m->op == SPAWN_ENDED) {
		report_end(t, m->status);
	}
}

void stdio_control(struct gateway *g, int fd)
{
	struct spawn_message m;
	int fds[FD_PASS_MAX];
	size_t count = 0;
	ssize_t n = fd_recv(fd, &m, sizeof(m), fds, &count);

	if (n == sizeof(m))
		take_message(g, &m, fds, count);
	for (size_t i = 0; n >= 0 && i < count; i++)
		(void)fd_close(fds[i]);
}

struct stdio *stdio_new(struct server *s)
{
	struct stdio *t = NEW(struct stdio);

	t->server = s;
	for (int i = 0; i < SPAWN_FD_COUNT; i++)
		t->fds[i] = -1;
	lines_init(&t->lines, GATEWAY_FRAME_MAX);
	lines_init(&t->notes, 4096);
	buf_init(&t->output, QUEUE_MAX);
	return t;
}

void stdio_free(struct stdio *t)
{
	if (!t)
		return;
	close_pipes(t);
	lines_done(&t->lines);
	lines_done(&t->notes);
	buf_done(&t->output);
	free(t);
}
