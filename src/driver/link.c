/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/link.h"

#include "base/alloc.h"
#include "driver/internal.h"
#include "io/stream.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>

/*
 * Theory of operation. This file sends and owns the lifecycle; link_input.c handles the agent's
 * frames.
 *
 * Nothing waits for HELLO: SETUP, files and EXEC are in the socket's buffer before the agent runs,
 * which saves a round trip. This is safe. The engine's layers are known when the socket arrives
 * (the backend opens no link to a box that lacks one). HELLO only claims the agent's own layers,
 * before any was applied; no program runs without them because the agent treats every failing step
 * between fork and exec as fatal and answers FAILED. Only Landlock may be missing, on an older
 * kernel: SETUP says whether that is fatal. The check at HELLO is a second barrier: it ends a box
 * whose agent admits a missing layer.
 *
 * Stdin has a window (WIRE_STDIN_WINDOW): a program that does not read fills our bounded buffer,
 * not the agent's memory, and blocks no other frames.
 */

struct buf *link_out(struct link *l)
{
	return l->opened ? stream_queue(l->stream) : &l->early;
}

void link_flush(struct link *l)
{
	if (l->opened)
		stream_flush(l->stream);
}

static size_t on_stream_data(void *ctx, const char *data, size_t len)
{
	return link_input(ctx, data, len);
}

static void on_stream_end(void *ctx, int sys)
{
	struct error err = {0};

	(void)error_set(&err, ERR_AGENT_LOST, sys, "the stream to the agent ended");
	link_fail(ctx, &err);
}

struct link *link_new(struct loop *loop, const char *box_id, const struct link_events *events,
                      const struct box_events *box)
{
	struct link *l = NEW(struct link);
	/* Room for SETUP before what was queued before link_open. */
	struct stream_limits limits = {.read_max = FRAME_MAX_LEN,
	                               .write_max = LINK_QUEUE_MAX + FRAME_MAX_LEN};
	struct stream_events stream = {
		.ctx = l, .on_data = on_stream_data, .on_end = on_stream_end};

	l->box_id = box_id;
	l->request_id = "";
	l->events = events;
	l->box = box;
	list_init(&l->execs);
	list_init(&l->files);
	list_init(&l->ports);
	list_init(&l->listings);
	buf_init(&l->early, LINK_QUEUE_MAX);
	l->stream = stream_new(loop, &limits, &stream);
	return l;
}

void link_free(struct link *l)
{
	struct box_file *file;
	struct link_exec *e;

	if (!l)
		return;
	LIST_FOREACH (e, &l->execs, struct link_exec, node)
		link_forget(l, e);
	LIST_FOREACH (file, &l->files, struct box_file, node)
		link_file_forget(file);
	link_ports_free(l);
	stream_free(l->stream);
	buf_done(&l->early);
	free(l);
}

void link_set_request(struct link *l, const char *request_id)
{
	l->request_id = request_id;
}

void link_open(struct link *l, int fd, const struct msg_setup *setup)
{
	int r;

	assert(!l->opened && !l->closed);
	l->opened = true;
	r = msg_setup_encode(link_out(l), 0, setup);
	assert(r == 0);
	r = buf_add(link_out(l), l->early.data, l->early.len);
	assert(r == 0);
	(void)r;
	buf_done(&l->early);
	if (fd >= 0)
		stream_open(l->stream, fd);
}

void link_adopt(struct link *l, int fd)
{
	assert(!l->opened && !l->closed);
	l->opened = l->resuming = true;
	if (fd >= 0)
		stream_open(l->stream, fd);
}

void link_close(struct link *l)
{
	l->closed = true;
	stream_close(l->stream);
	buf_reset(&l->early);
}

void link_fail(struct link *l, const struct error *err)
{
	if (l->closed)
		return;
	link_close(l);
	link_files_fail(l, err);
	link_ports_fail(l, err);
	l->events->on_lost(l->events->ctx, err);
}

void link_drain(struct link *l)
{
	if (l->closed)
		return;
	stream_drain(l->stream);
	on_stream_end(l, 0);
}

struct buf *link_output(struct link *l)
{
	return link_out(l);
}

struct link_exec *link_find(struct link *l, uint32_t id)
{
	struct link_exec *e;

	LIST_FOREACH (e, &l->execs, struct link_exec, node)
		if (e->id == id)
			return e;
	return NULL;
}

void link_forget(struct link *l, struct link_exec *e)
{
	list_remove(&e->node);
	l->execs_count--;
	buf_done(&e->stdin_kept);
	free(e);
}

static int encode_file(struct buf *b, uint32_t id, const struct exec_file *file)
{
	struct msg_put_begin begin = {.place = file->source ? WIRE_PLACE_RUN : WIRE_PLACE_WORKSPACE,
	                              .path = wire_str(file->path),
	                              .mode = file->mode};
	struct msg_put_end end = {0};
	int r = msg_put_begin_encode(b, id, &begin);

	for (size_t at = 0; r == 0 && at < file->len;) {
		size_t left = file->len - at;
		uint32_t len = left < FRAME_CHUNK ? (uint32_t)left : FRAME_CHUNK;
		struct msg_put_data piece = {.data = {(const char *)file->data + at, len}};

		r = msg_put_data_encode(b, id, &piece);
		at += len;
	}
	return r < 0 ? r : msg_put_end_encode(b, id, &end);
}

static struct wire_strs list_strings(const char *const *list)
{
	struct wire_strs strs = {.items = list};

	/* One more than allowed makes the encoder reject the list. */
	while (list[strs.count] && strs.count <= WIRE_STRS_MAX)
		strs.count++;
	return strs;
}

static int encode_exec(struct buf *b, const struct exec_plan *plan)
{
	struct msg_exec exec = {.argv = list_strings(plan->argv),
	                        .env = list_strings(plan->env),
	                        .cwd = wire_str(plan->cwd),
	                        .stdout_max = plan->stdout_max,
	                        .stderr_max = plan->stderr_max,
	                        .drain_ms = LINK_DRAIN_MS,
	                        .stdin_open = plan->stdin_open,
	                        .report_max = plan->report_max,
	                        .keep = plan->keep};

	return msg_exec_encode(b, plan->id, &exec);
}

static int encode_beside(struct buf *b, const struct exec_plan *plan)
{
	struct msg_beside beside = {.argv = list_strings(plan->argv),
	                            .env = list_strings(plan->env),
	                            .cwd = wire_str(plan->cwd),
	                            .stdout_max =
	                                    plan->rows ? WIRE_TERMINAL_WINDOW : plan->stdout_max,
	                            .stderr_max = plan->stderr_max,
	                            .drain_ms = LINK_DRAIN_MS,
	                            .stdin_open = plan->stdin_open,
	                            .source = wire_str(plan->source ? plan->source : ""),
	                            .rows = plan->rows,
	                            .cols = plan->cols};

	return msg_beside_encode(b, plan->id, &beside);
}

static int encode_run(struct buf *b, const struct run_plan *plan)
{
	struct msg_run run = {.runner = plan->runner,
	                      .source = wire_str(plan->source),
	                      .args = list_strings(plan->args),
	                      .stdout_max = plan->stdout_max,
	                      .stderr_max = plan->stderr_max,
	                      .drain_ms = LINK_DRAIN_MS,
	                      .stdin_open = plan->stdin_open,
	                      .report_max = plan->report_max};

	return msg_run_encode(b, plan->id, &run);
}

struct handover {
	const struct exec_plan *exec;
	const struct run_plan *run;
	uint32_t id;
	const struct exec_file *files;
	size_t files_count;
};

static int encode_files(struct buf *b, const struct handover *h, struct error *err)
{
	for (size_t i = 0; i < h->files_count; i++) {
		int r = encode_file(b, h->id, &h->files[i]);

		if (r == -ENOBUFS)
			return error_set(err, ERR_TOO_LARGE, 0,
			                 "files and commands of one box exceed %u bytes",
			                 LINK_QUEUE_MAX);
		if (r < 0)
			return error_set(err, ERR_INVALID, -r, "file '%.80s' cannot be sent",
			                 h->files[i].path);
	}
	return 0;
}

static int encode_label(struct buf *b, const struct handover *h, struct error *err)
{
	const char *text = h->exec ? h->exec->label : h->run->label;
	struct msg_label label;

	if (!text)
		return 0;
	label.text = wire_str(text);
	if (msg_label_encode(b, h->id, &label) < 0)
		return error_set(err, ERR_TOO_LARGE, 0, "the queue to the agent is full");
	return 0;
}

static int reject_strings(struct error *err, int r)
{
	return error_set(err, r == -EINVAL ? ERR_INVALID : ERR_TOO_LARGE, -r,
	                 "arguments and environment exceed %d bytes or %d strings",
	                 FRAME_MAX_PAYLOAD, WIRE_STRS_MAX);
}

/* All or nothing: half a program violates the protocol. */
static int encode_plan(struct link *l, const struct handover *h, struct error *err)
{
	struct buf *b = link_out(l);
	size_t before = b->len;
	int r = encode_label(b, h, err);

	if (r == 0)
		r = encode_files(b, h, err);
	if (r == 0) {
		if (!h->exec)
			r = encode_run(b, h->run);
		else
			r = h->exec->beside ? encode_beside(b, h->exec) : encode_exec(b, h->exec);
		if (r < 0)
			r = reject_strings(err, r);
	}
	if (r < 0) {
		b->len = before;
		if (b->data)
			b->data[before] = '\0';
	}
	return r;
}

static int check_open(const struct link *l, struct error *err)
{
	if (l->closed)
		return error_set(err, ERR_AGENT_LOST, 0, "box %s has ended", l->box_id);
	return 0;
}

struct link_exec *link_add(struct link *l, uint32_t id)
{
	struct link_exec *e = NEW(struct link_exec);

	e->id = id;
	e->stdin_room = WIRE_STDIN_WINDOW;
	buf_init(&e->stdin_kept, BOX_STDIN_MAX);
	list_append(&l->execs, &e->node);
	l->execs_count++;
	return e;
}

/* Return: the execution, its frames queued, or NULL with *err. */
static struct link_exec *queue_execution(struct link *l, const struct handover *h,
                                         struct error *err)
{
	struct link_exec *e;

	if (link_find(l, h->id)) {
		(void)error_set(err, ERR_CONFLICT, 0, "execution %u exists", h->id);
		return NULL;
	}
	if (l->execs_count == BOX_EXECS_MAX) {
		(void)error_set(err, ERR_BUSY, 0, "a box runs at most %d programs", BOX_EXECS_MAX);
		return NULL;
	}
	if (encode_plan(l, h, err) < 0)
		return NULL;
	e = link_add(l, h->id);
	link_flush(l);
	return e;
}

/* The agent may exceed its grants once, when the program has ended. */
void link_set_terminal(struct link_exec *e)
{
	e->terminal = true;
	e->output_max[OUTPUT_STDOUT] = (uint64_t)2 * WIRE_TERMINAL_WINDOW;
	e->output_max[OUTPUT_STDERR] = 0;
}

int link_exec(struct link *l, const struct exec_plan *plan, struct error *err)
{
	const struct handover h = {.exec = plan,
	                           .id = plan->id,
	                           .files = plan->files,
	                           .files_count = plan->files_count};
	struct link_exec *e;

	if (check_open(l, err) < 0)
		return -1;
	e = queue_execution(l, &h, err);
	if (!e)
		return -1;
	e->keep = plan->keep;
	if (plan->keep)
		return 0; /* only its runs have output */
	e->output_max[OUTPUT_STDOUT] = plan->stdout_max;
	e->output_max[OUTPUT_STDERR] = plan->stderr_max;
	e->report_left = plan->beside ? 0 : plan->report_max;
	e->stdin_open = plan->stdin_open;
	if (plan->rows)
		link_set_terminal(e);
	return 0;
}

int link_prepare(struct link *l, const struct prepare_plan *plan, struct error *err)
{
	struct msg_prepare msg = {.argv = list_strings(plan->argv),
	                          .env = list_strings(plan->env),
	                          .report = plan->report};
	struct link_exec *e;

	if (check_open(l, err) < 0)
		return -1;
	if (link_find(l, plan->id))
		return error_set(err, ERR_CONFLICT, 0, "execution %u exists", plan->id);
	if (msg_prepare_encode(link_out(l), plan->id, &msg) < 0)
		return reject_strings(err, 0);
	e = link_add(l, plan->id);
	e->prepared = true;
	link_flush(l);
	return 0;
}

static void set_grants(struct link_exec *e, const struct run_plan *plan)
{
	e->output_max[OUTPUT_STDOUT] = plan->stdout_max;
	e->output_max[OUTPUT_STDERR] = plan->stderr_max;
	e->report_left = plan->report_max;
	e->stdin_open = plan->stdin_open;
}

static int run_prepared(struct link *l, const struct handover *h, struct error *err)
{
	struct link_exec *e = link_find(l, h->id);

	if (!e || !e->waits)
		return error_set(err, ERR_CONFLICT, 0, "no prepared program %u", h->id);
	if (encode_plan(l, h, err) < 0)
		return -1;
	e->prepared = e->waits = false;
	e->given = true;
	set_grants(e, h->run);
	link_flush(l);
	return 0;
}

int link_run(struct link *l, const struct run_plan *plan, struct error *err)
{
	const struct handover h = {.run = plan,
	                           .id = plan->id,
	                           .files = plan->files,
	                           .files_count = plan->files_count};
	const struct link_exec *runner;
	struct link_exec *e;

	if (check_open(l, err) < 0)
		return -1;
	if (plan->runner == plan->id)
		return run_prepared(l, &h, err);
	runner = link_find(l, plan->runner);
	if (!runner || !runner->keep)
		return error_set(err, ERR_CONFLICT, 0, "no runner %u", plan->runner);
	e = queue_execution(l, &h, err);
	if (!e)
		return -1;
	e->runner = plan->runner;
	set_grants(e, plan);
	return 0;
}

/*
 * The window keeps one stdin from filling the queue, but many stdins or signals could: the rest is
 * sent with the next credit.
 */
static bool send_stdin_piece(struct link *l, struct link_exec *e)
{
	size_t len = e->stdin_kept.len - e->stdin_sent;
	struct msg_stdin_data piece;

	if (len > e->stdin_room)
		len = e->stdin_room;
	if (len > FRAME_CHUNK)
		len = FRAME_CHUNK;
	if (len == 0)
		return false;
	piece.data = (struct wire_bytes){e->stdin_kept.data + e->stdin_sent, (uint32_t)len};
	if (msg_stdin_data_encode(link_out(l), e->id, &piece) < 0)
		return false;
	e->stdin_sent += len;
	e->stdin_room -= (uint32_t)len;
	return true;
}

void link_pump_stdin(struct link *l, struct link_exec *e)
{
	struct msg_stdin_end end = {0};

	while (send_stdin_piece(l, e))
		;
	/* Move the rest only if the front is the larger part. */
	if (e->stdin_sent >= e->stdin_kept.len / 2) {
		buf_consume(&e->stdin_kept, e->stdin_sent);
		e->stdin_sent = 0;
	}
	if (e->stdin_ended && e->stdin_open && e->stdin_kept.len == 0 &&
	    msg_stdin_end_encode(link_out(l), e->id, &end) == 0)
		e->stdin_open = false;
	link_flush(l);
}

/* Return: 0 with *ret_exec (NULL: ended), or -1 with *err. */
static int find_stdin(struct link *l, uint32_t id, struct link_exec **ret_exec, struct error *err)
{
	struct link_exec *e;

	if (check_open(l, err) < 0)
		return -1;
	e = link_find(l, id);
	if (e && (!e->stdin_open || e->stdin_ended))
		return error_set(err, ERR_CONFLICT, 0, "stdin of execution %u is closed", id);
	*ret_exec = e;
	return 0;
}

int link_stdin(struct link *l, uint32_t exec_id, const void *data, size_t len, struct error *err)
{
	struct link_exec *e = NULL;
	int r = find_stdin(l, exec_id, &e, err);

	if (r < 0 || !e)
		return r;
	if (buf_add(&e->stdin_kept, data, len) < 0)
		return error_set(err, ERR_TOO_LARGE, 0, "more than %u bytes of stdin are queued",
		                 BOX_STDIN_MAX);
	link_pump_stdin(l, e);
	return 0;
}

int link_stdin_end(struct link *l, uint32_t exec_id, struct error *err)
{
	struct link_exec *e = NULL;
	int r = find_stdin(l, exec_id, &e, err);

	if (r < 0 || !e)
		return r;
	e->stdin_ended = true;
	link_pump_stdin(l, e);
	return 0;
}

size_t link_stdin_waiting(struct link *l, uint32_t exec_id)
{
	const struct link_exec *e = link_find(l, exec_id);

	return e ? e->stdin_kept.len - e->stdin_sent : 0;
}

void link_ack(struct link *l, uint32_t exec_id)
{
	struct msg_ack msg = {0};

	/* If lost, the agent reports the end to a later daemon, which forgets it. */
	if (!l->closed && msg_ack_encode(link_out(l), exec_id, &msg) == 0)
		link_flush(l);
}

/* An agent that is not frozen reads at once. */
static size_t unread_commands(const struct link *l)
{
	return l->opened ? stream_pending(l->stream) : l->early.len;
}

/* As in the kernel, a signal that waits is not sent again: callers must not fill the queue of a
 * frozen box. */
static bool is_on_its_way(const struct link *l, struct link_exec *e, int signo)
{
	uint64_t bit = 1ULL << (signo & 63);

	if (unread_commands(l) == 0)
		e->signals_sent = 0;
	if (e->signals_sent & bit)
		return true;
	e->signals_sent |= bit;
	return false;
}

int link_signal(struct link *l, uint32_t exec_id, int signo, struct error *err)
{
	struct msg_signal msg = {.signo = (uint32_t)signo};
	struct link_exec *e;

	if (check_open(l, err) < 0)
		return -1;
	e = link_find(l, exec_id);
	if (!e || is_on_its_way(l, e, signo))
		return 0; /* @e NULL: has ended */
	if (msg_signal_encode(link_out(l), exec_id, &msg) < 0)
		return error_set(err, ERR_BUSY, 0, "the agent of box %s does not read commands",
		                 l->box_id);
	link_flush(l);
	return 0;
}

int link_resize(struct link *l, uint32_t exec_id, uint16_t rows, uint16_t cols, struct error *err)
{
	struct msg_resize msg = {.rows = rows, .cols = cols};
	const struct link_exec *e = link_find(l, exec_id);

	if (check_open(l, err) < 0)
		return -1;
	if (!e)
		return 0; /* has ended */
	if (!e->terminal)
		return error_set(err, ERR_CONFLICT, 0, "the program is on no terminal");
	if (unread_commands(l) > LINK_RESIZE_MAX ||
	    msg_resize_encode(link_out(l), exec_id, &msg) < 0)
		return error_set(err, ERR_BUSY, 0, "the agent of box %s does not read commands",
		                 l->box_id);
	link_flush(l);
	return 0;
}

void link_take_output(struct link *l, uint32_t exec_id, size_t bytes)
{
	struct msg_output_grant msg = {.bytes = (uint32_t)bytes};
	struct link_exec *e = link_find(l, exec_id);

	/* At most the window was on its way. Without room its program waits for ever: but the
	 * queue is full only if the agent reads nothing. */
	if (l->closed || !e || !e->terminal || bytes == 0 ||
	    msg_output_grant_encode(link_out(l), exec_id, &msg) < 0)
		return;
	e->output_max[OUTPUT_STDOUT] += bytes;
	link_flush(l);
}
