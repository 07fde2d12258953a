/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/files.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/agent.h"
#include "guest/file_clock.h"
#include "guest/file_worker.h"

/* Found after decoding the message. */
#define VIOLATION (-EPROTO)
/* Not a message for every few bytes. */
#define ROOM_STEP (WIRE_FILE_WINDOW / 4)
/* The window counts whole frames; FILE_END is not counted. */
#define PENDING_MAX (WIRE_FILE_WINDOW + FRAME_MAX_LEN)

enum source {
	SOURCE_TO,
	SOURCE_FROM,
	SOURCE_STATUS,
	SOURCES
};

void files_init(struct agent *a)
{
	for (size_t i = 0; i < WIRE_FILES_MAX; i++) {
		struct file_stream *s = &a->files[i];
		*s = (struct file_stream){.child = {.status = -1}, .to = -1, .from = -1};
		buf_init(&s->pending, PENDING_MAX);
		buf_init(&s->received, FRAME_MAX_LEN);
	}
}

static void stream_forget(struct file_stream *s)
{
	(void)fd_close(s->to);
	(void)fd_close(s->from);
	(void)fd_close(s->child.status);
	buf_done(&s->pending);
	buf_done(&s->received);
	*s = (struct file_stream){.child = {.status = -1}, .to = -1, .from = -1};
	buf_init(&s->pending, PENDING_MAX);
	buf_init(&s->received, FRAME_MAX_LEN);
}

/* A child that cleans up is not killed, unless the array is full. */
static void note_leaving(struct agent *a, pid_t pid)
{
	for (size_t i = 0; i < WIRE_FILES_MAX; i++) {
		if (a->files_leaving[i] != 0)
			continue;
		a->files_leaving[i] = pid;
		return;
	}
}

/* A writing child sees EOF and cleans up. */
static void abandon_operation(struct agent *a, struct file_stream *s)
{
	if (!s->writes && !s->reaped)
		(void)kill(s->child.pid, SIGKILL);
	else if (!s->reaped)
		note_leaving(a, s->child.pid);
	stream_forget(s);
}

static struct file_stream *find_stream(struct agent *a, uint32_t id)
{
	for (size_t i = 0; i < WIRE_FILES_MAX; i++)
		if (a->files[i].id == id)
			return &a->files[i];
	return NULL;
}

bool files_any(const struct agent *a)
{
	for (size_t i = 0; i < WIRE_FILES_MAX; i++)
		if (a->files[i].id != 0 || a->files_leaving[i] != 0)
			return true;
	return false;
}

bool files_has(const struct agent *a, pid_t pid)
{
	for (size_t i = 0; i < WIRE_FILES_MAX; i++) {
		const struct file_stream *s = &a->files[i];

		if (a->files_leaving[i] == pid || (s->id != 0 && !s->reaped && s->child.pid == pid))
			return true;
	}
	return false;
}

void files_reset(struct agent *a)
{
	for (size_t i = 0; i < WIRE_FILES_MAX; i++)
		if (a->files[i].id != 0)
			abandon_operation(a, &a->files[i]);
}

void files_reaped(struct agent *a, pid_t pid)
{
	for (size_t i = 0; i < WIRE_FILES_MAX; i++) {
		if (a->files[i].id != 0 && a->files[i].child.pid == pid)
			a->files[i].reaped = true;
		if (a->files_leaving[i] == pid)
			a->files_leaving[i] = 0;
	}
}

/* An execution that starts now did not make the change. */
static void note_change(struct agent *a, const struct file_stream *s)
{
	if (s->changes)
		a->files_ns = file_clock_latest();
}

static int send_failed(struct agent *a, uint32_t id, const struct error *err)
{
	const struct msg_file_failed msg = {
		.code = err->code,
		.sys = err->sys,
		.text = wire_str(err->msg),
	};

	return msg_file_failed_encode(&a->ch.out, id, &msg);
}

static int fail_operation(struct agent *a, struct file_stream *s, const struct error *err)
{
	uint32_t id = s->id;

	note_change(a, s);
	stream_forget(s);
	return send_failed(a, id, err);
}

static int start_worker(struct agent *a, struct file_stream *s, const struct file_job *job,
                        struct error *err)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	int r = fd_pipe(in, 0);

	if (r >= 0)
		r = fd_pipe(out, 0);
	cleanup_close int theirs_in = in[0];
	cleanup_close int theirs_out = out[1];
	s->to = in[1];
	s->from = out[0];
	if (r >= 0)
		r = fd_set_nonblock(s->to, true);
	if (r >= 0)
		r = fd_set_nonblock(s->from, true);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "make pipes: %s", strerror(-r));
	struct drop_plan plan = {
		.setup = &a->setup,
		.stdio = {theirs_in, theirs_out, a->null},
		.workspace = a->workspace,
		.ruleset = a->ruleset,
	};
	if (spawn_payload(&plan, file_worker_run, job, &s->child, err) == 0)
		return 0;
	/* The program has used up its processes. */
	if (err->sys == EAGAIN)
		err->code = ERR_BUSY;
	return -1;
}

int files_open(struct agent *a, const struct frame *frame)
{
	struct file_stream *s = find_stream(a, 0);
	struct msg_file_open msg;
	struct file_job job;
	struct error err = {0};

	if (msg_file_open_decode(frame, &msg) < 0 || msg.op >= WIRE_FILE_OP_COUNT ||
	    (msg.flags & ~(uint32_t)WIRE_FILE_FLAGS_ALL) || find_stream(a, frame->id))
		return VIOLATION;
	if (!s)
		(void)error_set(&err, ERR_BUSY, 0, "more than %d concurrent file operations",
		                WIRE_FILES_MAX);
	if (!s || file_worker_check_job(&msg, &job, &err) < 0)
		return send_failed(a, frame->id, &err);
	s->id = frame->id;
	s->granted = WIRE_FILE_WINDOW;
	s->writes = job.op == WIRE_FILE_WRITE || job.op == WIRE_FILE_UNTAR;
	s->changes = s->writes || job.op == WIRE_FILE_MOVE || job.op == WIRE_FILE_REMOVE;
	if (start_worker(a, s, &job, &err) < 0)
		return fail_operation(a, s, &err);
	if (!s->writes)
		s->to = fd_close(s->to);
	return 0;
}

static int write_some(struct agent *a, struct file_stream *s);
static int forward_frames(struct agent *a, struct file_stream *s);

static uint32_t frame_size(const struct frame *frame)
{
	return FRAME_HEADER_LEN + frame->len;
}

static int queue_for_worker(struct file_stream *s, const struct frame *frame)
{
	uint8_t header[FRAME_HEADER_LEN];
	int r = 0;

	if (s->to < 0)
		return 0;
	frame_put_header(frame, header);
	r = buf_add(&s->pending, header, sizeof(header));
	return r < 0 ? r : buf_add(&s->pending, frame->payload, frame->len);
}

int files_data(struct agent *a, const struct frame *frame)
{
	struct file_stream *s = find_stream(a, frame->id);
	struct msg_file_data msg;

	if (msg_file_data_decode(frame, &msg) < 0)
		return VIOLATION;
	/* It may have ended meanwhile. */
	if (!s)
		return 0;
	if (!s->writes || s->ended || msg.data.len == 0 ||
	    s->pending.len + s->owed + frame_size(frame) > WIRE_FILE_WINDOW)
		return VIOLATION;
	if (s->to < 0) {
		s->owed += frame_size(frame); /* the child no longer reads */
		return write_some(a, s);
	}
	return queue_for_worker(s, frame) < 0 ? VIOLATION : 0;
}

int files_end(struct agent *a, const struct frame *frame)
{
	struct file_stream *s = find_stream(a, frame->id);
	struct msg_file_end msg;

	if (msg_file_end_decode(frame, &msg) < 0)
		return VIOLATION;
	if (!s)
		return 0;
	if (!s->writes || s->ended)
		return VIOLATION;
	s->ended = true;
	return queue_for_worker(s, frame) < 0 ? VIOLATION : 0;
}

int files_grant(struct agent *a, const struct frame *frame)
{
	struct file_stream *s = find_stream(a, frame->id);
	struct msg_file_grant msg;

	if (msg_file_grant_decode(frame, &msg) < 0 || msg.bytes > WIRE_FILE_WINDOW)
		return VIOLATION;
	if (!s)
		return 0;
	if (msg.bytes > WIRE_FILE_WINDOW - s->granted)
		return VIOLATION;
	s->granted += msg.bytes;
	/* poll does not wake for frames that wait for credit. */
	int r = s->received.len > 0 ? forward_frames(a, s) : 0;
	return r < 0 ? r : 0;
}

int files_cancel(struct agent *a, const struct frame *frame)
{
	struct file_stream *s = find_stream(a, frame->id);
	struct msg_file_cancel msg;

	if (msg_file_cancel_decode(frame, &msg) < 0)
		return VIOLATION;
	if (s)
		abandon_operation(a, s);
	return 0;
}

/* Written bytes return to the window. */
static int write_some(struct agent *a, struct file_stream *s)
{
	ssize_t n = s->pending.len > 0 ? write(s->to, s->pending.data, s->pending.len) : 0;
	int r = 0;

	if (n > 0) {
		s->owed += (uint32_t)n;
		buf_consume(&s->pending, (size_t)n);
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		/* EPIPE: it ended early and reports why. */
		s->owed += (uint32_t)s->pending.len;
		buf_reset(&s->pending);
		s->to = fd_close(s->to);
	}
	if (s->ended) /* nothing more will come */
		s->owed = 0;
	if (s->owed == 0 || (s->owed < ROOM_STEP && s->pending.len > 0))
		return 0;
	r = msg_file_room_encode(&a->ch.out, s->id, &(struct msg_file_room){.bytes = s->owed});
	s->owed = 0;
	return r;
}

static bool is_worker_type(unsigned type)
{
	return type == MSG_FILE_ENTRY || type == MSG_FILE_BYTES || type == MSG_FILE_DONE;
}

static int forward_frame(struct agent *a, const struct file_stream *s, const struct frame *frame)
{
	struct frame forwarded = *frame;
	uint8_t header[FRAME_HEADER_LEN];
	int r = 0;

	forwarded.id = s->id;
	frame_put_header(&forwarded, header);
	r = buf_add(&a->ch.out, header, sizeof(header));
	return r < 0 ? r : buf_add(&a->ch.out, frame->payload, frame->len);
}

/* Return: 1: the operation is over; 0; or the channel's negative errno. */
static int forward_frames(struct agent *a, struct file_stream *s)
{
	struct error err = {0};
	struct frame frame;
	size_t used = 0;
	int r = 0;

	while (!channel_is_full(&a->ch)) {
		r = frame_parse(s->received.data + used, s->received.len - used, &frame);
		if (r == 0 || (r > 0 && is_worker_type(frame.type) && frame.type != MSG_FILE_DONE &&
		               frame_size(&frame) > s->granted))
			break;
		/* It was taken over. */
		if (r < 0 || !is_worker_type(frame.type)) {
			(void)error_set(&err, ERR_BOX_FAILED, 0, "the worker broke the protocol");
			r = fail_operation(a, s, &err);
			return r < 0 ? r : 1;
		}
		used += (size_t)r;
		r = forward_frame(a, s, &frame);
		if (r < 0)
			return r;
		if (frame.type == MSG_FILE_DONE) {
			note_change(a, s);
			stream_forget(s);
			return 1;
		}
		s->granted -= frame_size(&frame);
	}
	buf_consume(&s->received, used);
	return 0;
}

static void read_worker(struct file_stream *s)
{
	size_t room = s->received.max - s->received.len;
	ssize_t n = 0;

	if (room > FRAME_CHUNK)
		room = FRAME_CHUNK;
	if (room == 0 || buf_reserve(&s->received, room) < 0)
		return;
	n = read(s->from, s->received.data + s->received.len, room);
	if (n > 0)
		s->received.len += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		s->from = fd_close(s->from);
}

/* EOF without FILE_DONE. */
static int on_worker_eof(struct agent *a, struct file_stream *s)
{
	struct error err = {0};
	int listener = -1;

	switch (spawn_read(s->child.status, &listener, &err)) {
	case SPAWN_WAIT:
		return 0;
	case SPAWN_ERROR:
		break;
	case SPAWN_DONE:
	case SPAWN_LISTENER:
	case SPAWN_END:
		(void)fd_close(listener);
		(void)error_set(
			&err, ERR_BOX_FAILED, 0,
			"the file worker was killed, by the program or because memory ran out");
		break;
	}
	return fail_operation(a, s, &err);
}

static int pump_stream(struct agent *a, struct file_stream *s, const struct pollfd *fds)
{
	int r = 0;

	if (fds[SOURCE_TO].revents || s->owed > 0)
		r = write_some(a, s);
	if (r >= 0 && fds[SOURCE_FROM].revents)
		read_worker(s);
	if (r >= 0 && s->received.len > 0)
		r = forward_frames(a, s);
	if (r != 0)
		return r < 0 ? r : 0;
	if (s->from < 0 && s->received.len == 0)
		r = on_worker_eof(a, s);
	return r;
}

/* Read no more than can be forwarded soon. */
static bool wants_more(const struct agent *a, const struct file_stream *s)
{
	struct frame frame;

	if (s->from < 0 || channel_is_full(&a->ch))
		return false;
	return s->received.len == 0 || frame_parse(s->received.data, s->received.len, &frame) == 0;
}

void files_watch(const struct agent *a, struct pollfd *fds)
{
	for (size_t i = 0; i < WIRE_FILES_MAX; i++, fds += SOURCES) {
		const struct file_stream *s = &a->files[i];
		fds[SOURCE_TO] = (struct pollfd){.fd = -1, .events = POLLOUT};
		fds[SOURCE_FROM] = (struct pollfd){.fd = -1, .events = POLLIN};
		fds[SOURCE_STATUS] = (struct pollfd){.fd = -1, .events = POLLIN};
		if (s->id == 0)
			continue;
		if (s->pending.len > 0)
			fds[SOURCE_TO].fd = s->to;
		if (wants_more(a, s))
			fds[SOURCE_FROM].fd = s->from;
		if (s->from < 0 && s->received.len == 0)
			fds[SOURCE_STATUS].fd = s->child.status;
	}
}

int files_pump(struct agent *a, const struct pollfd *fds)
{
	int r = 0;

	for (size_t i = 0; i < WIRE_FILES_MAX && r >= 0; i++, fds += SOURCES)
		if (a->files[i].id != 0 && !channel_is_full(&a->ch))
			r = pump_stream(a, &a->files[i], fds);
	return r;
}
