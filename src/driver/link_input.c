/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/link.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "driver/internal.h"
#include <assert.h>
#include <limits.h>
#include <seccomp.h>

/*
 * Theory of operation. This file judges bytes of a process that its program may have taken over. A
 * frame is accepted only if the table knows its type, it is allowed now, it belongs to a live
 * execution, and it stays within its grants. The first violation ends the box: nothing later from
 * that peer can be relied on.
 *
 * Every frame uses up a grant (bytes of output, report or stdin taken, denials, log lines, the
 * state of an execution). So even a conforming agent cannot send endlessly and monopolize the loop.
 *
 * A callback may destroy the box, which closes the link (memory stays until the box is gone): a
 * handler touches nothing after its callback.
 */

enum phase {
	PHASE_NONE,     /* never: unknown, or other direction */
	PHASE_FIRST,    /* the box's first message, once */
	PHASE_BOX,      /* the box's, any time */
	PHASE_HANDED,   /* an execution's, before its start */
	PHASE_RUNNING,  /* an execution's, between STARTED and DONE */
	PHASE_EXEC,     /* an execution's, started or not */
	PHASE_ENDING,   /* the box's, or an execution's before its start */
	PHASE_FILE,     /* a file operation's: link_file.c */
	PHASE_PORT,     /* a connection's: link_port.c */
	PHASE_RESUME,   /* the box's, once, on a stream not its first */
	PHASE_DESCRIBE, /* a yet unknown execution's, after RESUME */
};

int link_violation(struct error *err, const struct frame *frame, const char *what)
{
	return error_set(err, ERR_PROTOCOL, 0, "the agent broke the protocol: %s %s",
	                 msg_name(frame->type), what);
}

void link_plain_text(struct wire_bytes text, char *ret_text, size_t size)
{
	size_t len = text.len < size - 1 ? text.len : size - 1;

	for (size_t i = 0; i < len; i++)
		ret_text[i] =
			(char)(text.data[i] >= ' ' && text.data[i] <= '~' ? text.data[i] : '?');
	ret_text[len] = '\0';
}

static int take_hello(struct link *l, struct link_exec *e, const struct frame *frame,
                      struct error *err)
{
	struct msg_hello hello;

	(void)e;
	if (msg_hello_decode(frame, &hello) < 0)
		return link_violation(err, frame, "is malformed");
	if (hello.version != WIRE_VERSION)
		return link_violation(err, frame, "has another version");
	if (hello.layers & ~LINK_AGENT_LAYERS)
		return link_violation(err, frame, "claims layers of the engine");
	l->greeted = true;
	l->events->on_hello(l->events->ctx, &hello);
	return 0;
}

static int take_started(struct link *l, struct link_exec *e, const struct frame *frame,
                        struct error *err)
{
	struct msg_started started;

	if (msg_started_decode(frame, &started) < 0)
		return link_violation(err, frame, "is malformed");
	/* A resumed run may have lost its runner. */
	if (e->runner && !e->resumed && !link_find(l, e->runner))
		return link_violation(err, frame, "names a run without a runner");
	if (e->prepared)
		return link_violation(err, frame, "names a program without code");
	e->started = true;
	if (l->events->on_injected)
		l->events->on_injected(l->events->ctx, started.injected != 0);
	l->box->on_started(l->box->ctx, e->id);
	return 0;
}

static int take_ready(struct link *l, struct link_exec *e, const struct frame *frame,
                      struct error *err)
{
	struct msg_ready ready;

	if (msg_ready_decode(frame, &ready) < 0)
		return link_violation(err, frame, "is malformed");
	if (!e->prepared || e->waits)
		return link_violation(err, frame, "names no program to prepare, or is repeated");
	e->waits = true;
	l->box->on_prepared(l->box->ctx, e->id);
	return 0;
}

static int take_stdin_room(struct link *l, struct link_exec *e, const struct frame *frame,
                           struct error *err)
{
	struct msg_stdin_room room;

	if (msg_stdin_room_decode(frame, &room) < 0)
		return link_violation(err, frame, "is malformed");
	/* Room comes from bytes taken; otherwise the agent could fill our queue. */
	if (room.bytes == 0 || room.bytes > WIRE_STDIN_WINDOW - e->stdin_room)
		return link_violation(err, frame, "grants 0 bytes or more than the window");
	e->stdin_room += room.bytes;
	link_pump_stdin(l, e);
	return 0;
}

static int take_output(struct link *l, struct link_exec *e, const struct frame *frame,
                       struct error *err)
{
	static const enum output_stream streams[] = {
		[WIRE_STDOUT] = OUTPUT_STDOUT, [WIRE_STDERR] = OUTPUT_STDERR};
	struct msg_output output;
	enum output_stream stream;

	if (msg_output_decode(frame, &output) < 0)
		return link_violation(err, frame, "is malformed");
	if (output.stream >= ARRAY_SIZE(streams))
		return link_violation(err, frame, "names an unknown stream");
	stream = streams[output.stream];
	if (output.data.len == 0)
		return link_violation(err, frame, "is empty");
	if (output.data.len > e->output_max[stream] - e->output_bytes[stream])
		return link_violation(err, frame, "exceeds the grant");
	e->output_bytes[stream] += output.data.len;
	l->box->on_output(l->box->ctx, e->id, stream, output.data.data, output.data.len);
	return 0;
}

static int take_report(struct link *l, struct link_exec *e, const struct frame *frame,
                       struct error *err)
{
	struct msg_report report;

	if (msg_report_decode(frame, &report) < 0)
		return link_violation(err, frame, "is malformed");
	if (report.data.len == 0)
		return link_violation(err, frame, "is empty");
	if (report.data.len > e->report_left)
		return link_violation(err, frame, "exceeds the grant");
	e->report_left -= report.data.len;
	e->reported = true;
	l->box->on_report(l->box->ctx, e->id, report.data.data, report.data.len);
	return 0;
}

static void name_syscall(uint32_t number, char *ret_name, size_t size)
{
	cleanup_free char *name = NULL;
	int r;

	if (number <= INT_MAX)
		name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number);
	if (name && str_copy(ret_name, size, name) == 0)
		return;
	r = str_format(ret_name, size, "%u", number);
	assert(r == 0);
	(void)r;
}

static int take_denial(struct link *l, struct link_exec *e, const struct frame *frame,
                       struct error *err)
{
	struct msg_denial denial;
	char name[64];

	if (msg_denial_decode(frame, &denial) < 0)
		return link_violation(err, frame, "is malformed");
	if (denial.kind >= WIRE_DENIAL_COUNT)
		return link_violation(err, frame, "has an unknown kind");
	if (e->denials++ == LINK_DENIALS_MAX)
		return link_violation(err, frame, "is sent too often");
	name_syscall(denial.number, name, sizeof(name));
	l->box->on_denial(l->box->ctx, e->id, name, denial.count);
	return 0;
}

static int take_changed(struct link *l, struct link_exec *e, const struct frame *frame,
                        struct error *err)
{
	struct msg_changed changed;

	(void)l;
	if (msg_changed_decode(frame, &changed) < 0)
		return link_violation(err, frame, "is malformed");
	if (changed.since_ns == 0 || e->changed_since_ns)
		return link_violation(err, frame, "is empty or repeated");
	e->changed_since_ns = changed.since_ns;
	return 0;
}

static bool has_output(const struct msg_done *done, const struct link_exec *e)
{
	return done->stdout_bytes > 0 || done->stderr_bytes > 0 || e->denials > 0 || e->reported;
}

static bool done_is_sound(const struct msg_done *done, const struct link_exec *e)
{
	if (done->signalled > 1 || done->disk_full > 1 || done->runner_lost > 2)
		return false;
	if (done->signalled ? done->status < 1 || done->status > 64
	                    : done->status < 0 || done->status > 255)
		return false;
	/* Only a run can lose its runner; unread code has done nothing. */
	if (done->runner_lost == 1 && !e->runner)
		return false;
	if (done->runner_lost == 2 && ((!e->runner && !e->given) || has_output(done, e)))
		return false;
	/* At least what was forwarded. */
	return done->stdout_bytes >= e->output_bytes[OUTPUT_STDOUT] &&
	       done->stderr_bytes >= e->output_bytes[OUTPUT_STDERR];
}

/* A started run ends before its runner: a dead runner answers nothing. */
static bool has_open_run(const struct link *l, const struct link_exec *runner)
{
	const struct link_exec *e;

	if (!runner->keep)
		return false;
	LIST_FOREACH (e, &l->execs, struct link_exec, node)
		if (e->runner == runner->id && e->started)
			return true;
	return false;
}

static int take_done(struct link *l, struct link_exec *e, const struct frame *frame,
                     struct error *err)
{
	struct msg_done done;
	struct exec_facts facts;

	if (msg_done_decode(frame, &done) < 0)
		return link_violation(err, frame, "is malformed");
	if (!done_is_sound(&done, e))
		return link_violation(err, frame, "is inconsistent");
	if (has_open_run(l, e))
		return link_violation(err, frame, "leaves a run unfinished");
	facts = (struct exec_facts){.signalled = done.signalled,
	                            .status = done.status,
	                            .duration_us = done.duration_us,
	                            .cpu_user_us = done.cpu_user_us,
	                            .cpu_system_us = done.cpu_system_us,
	                            .max_rss_kib = done.max_rss_kib,
	                            .read_bytes = done.read_bytes,
	                            .write_bytes = done.write_bytes,
	                            .stdout_bytes = done.stdout_bytes,
	                            .stderr_bytes = done.stderr_bytes,
	                            .disk_full = done.disk_full,
	                            .runner_lost = done.runner_lost && e->runner,
	                            .untaken = done.runner_lost == 2,
	                            .changed_since_ns = e->changed_since_ns};
	link_forget(l, e);
	l->box->on_done(l->box->ctx, frame->id, &facts);
	return 0;
}

static int take_failed(struct link *l, struct link_exec *e, const struct frame *frame,
                       struct error *err)
{
	struct error failure = {0};
	struct msg_failed failed;
	enum error_code code;
	char text[160];

	if (msg_failed_decode(frame, &failed) < 0)
		return link_violation(err, frame, "is malformed");
	code = failed.code > ERR_NONE && failed.code < ERR_COUNT ? (enum error_code)failed.code
	                                                         : ERR_BOX_FAILED;
	link_plain_text(failed.text, text, sizeof(text));
	(void)error_set(&failure, code, failed.sys > 0 && failed.sys < 4096 ? failed.sys : 0,
	                "agent: %s", text);
	if (!e) {
		link_fail(l, &failure);
		return 0;
	}
	link_forget(l, e);
	l->box->on_exec_failed(l->box->ctx, frame->id, &failure);
	return 0;
}

static int take_log(struct link *l, struct link_exec *e, const struct frame *frame,
                    struct error *err)
{
	struct msg_log log;
	char text[240], ctx[BOX_CTX_LEN];
	int r;

	(void)e;
	if (msg_log_decode(frame, &log) < 0 || log.level >= LOG_LEVEL_COUNT)
		return link_violation(err, frame, "is malformed");
	if (l->logs++ == LINK_LOGS_MAX)
		return link_violation(err, frame, "is sent too often");
	link_plain_text(log.text, text, sizeof(text));
	r = str_format(ctx, sizeof(ctx), "request_id=%s box=%s", l->request_id, l->box_id);
	assert(r == 0);
	(void)r;
	/* "err" is for failures of the daemon itself. */
	log_ctx(log.level < LOG_LEVEL_WARN ? LOG_LEVEL_WARN : (enum log_level)log.level, ctx,
	        "agent says: %s", text);
	return 0;
}

static void check_resumed(struct link *l)
{
	if (l->described > 0)
		return;
	l->resuming = false;
	l->box->on_resumed(l->box->ctx, l->last_id);
}

static int take_resume(struct link *l, struct link_exec *e, const struct frame *frame,
                       struct error *err)
{
	struct msg_resume resume;

	(void)e;
	if (msg_resume_decode(frame, &resume) < 0)
		return link_violation(err, frame, "is malformed");
	if (resume.count > WIRE_KEPT_MAX)
		return link_violation(err, frame, "announces too many");
	l->last_id = resume.last_id;
	l->described = resume.count;
	check_resumed(l);
	return 0;
}

static bool describe_is_sound(const struct link *l, const struct frame *frame,
                              const struct msg_describe *d)
{
	return frame->id <= l->last_id && d->keep <= 1 && d->stdin_open <= 1 &&
	       d->stdin_room <= WIRE_STDIN_WINDOW && d->text.len > 0 &&
	       d->text.len <= BOX_LABEL_MAX && d->runner <= l->last_id &&
	       (!d->keep || (d->runner == 0 && !d->stdin_open));
}

static int take_describe(struct link *l, struct link_exec *e, const struct frame *frame,
                         struct error *err)
{
	char label[BOX_LABEL_MAX + 1];
	struct msg_describe d;
	struct box_resumed what = {.id = frame->id, .label = label};
	struct box_grant grant = {0};

	if (msg_describe_decode(frame, &d) < 0)
		return link_violation(err, frame, "is malformed");
	if (!describe_is_sound(l, frame, &d))
		return link_violation(err, frame, "is inconsistent");
	link_plain_text(d.text, label, sizeof(label));
	what.keep = d.keep;
	what.runner = d.runner;
	what.stdin_open = d.stdin_open;
	what.stdin_bytes = d.stdin_bytes;
	/* Before the callback, which may signal it. */
	e = link_add(l, frame->id);
	e->resumed = true;
	e->keep = d.keep;
	e->runner = d.runner;
	e->stdin_open = d.stdin_open;
	e->stdin_room = d.stdin_room;
	if (l->box->on_resume(l->box->ctx, &what, &grant) < 0)
		return link_violation(err, frame, "names an unknown id");
	e->forget = grant.forget;
	e->output_max[OUTPUT_STDOUT] = grant.stdout_max;
	e->output_max[OUTPUT_STDERR] = grant.stderr_max;
	e->report_left = grant.report_max;
	if (grant.terminal)
		link_set_terminal(e);
	l->described--;
	check_resumed(l);
	return 0;
}

static const struct {
	int (*take)(struct link *l, struct link_exec *e, const struct frame *frame,
	            struct error *err);
	enum phase phase;
} messages[MSG_COUNT] = {
	[MSG_HELLO] = {take_hello, PHASE_FIRST},
	[MSG_STARTED] = {take_started, PHASE_HANDED},
	[MSG_READY] = {take_ready, PHASE_HANDED},
	[MSG_STDIN_ROOM] = {take_stdin_room, PHASE_EXEC},
	[MSG_OUTPUT] = {take_output, PHASE_RUNNING},
	[MSG_REPORT] = {take_report, PHASE_RUNNING},
	[MSG_DENIAL] = {take_denial, PHASE_RUNNING},
	[MSG_DONE] = {take_done, PHASE_RUNNING},
	[MSG_FAILED] = {take_failed, PHASE_ENDING},
	[MSG_LOG] = {take_log, PHASE_BOX},
	[MSG_CHANGED] = {take_changed, PHASE_RUNNING},
	[MSG_FILE_ROOM] = {NULL, PHASE_FILE},
	[MSG_FILE_ENTRY] = {NULL, PHASE_FILE},
	[MSG_FILE_BYTES] = {NULL, PHASE_FILE},
	[MSG_FILE_DONE] = {NULL, PHASE_FILE},
	[MSG_FILE_FAILED] = {NULL, PHASE_FILE},
	[MSG_PORT_OPENED] = {NULL, PHASE_PORT},
	[MSG_PORT_ROOM] = {NULL, PHASE_PORT},
	[MSG_PORT_BYTES] = {NULL, PHASE_PORT},
	[MSG_PORT_FINISHED] = {NULL, PHASE_PORT},
	[MSG_PORT_CLOSED] = {NULL, PHASE_PORT},
	[MSG_PORT_FOUND] = {NULL, PHASE_PORT},
	[MSG_PORT_LISTED] = {NULL, PHASE_PORT},
	[MSG_RESUME] = {take_resume, PHASE_RESUME},
	[MSG_DESCRIBE] = {take_describe, PHASE_DESCRIBE},
};

/* As out_of_place, for RESUME and DESCRIBE. */
static const char *out_of_resume(const struct link *l, enum phase phase, const struct frame *frame,
                                 const struct link_exec *e)
{
	if (!l->greeted || !l->resuming || (phase == PHASE_DESCRIBE) != (l->described > 0))
		return "is sent although nothing is resumed";
	if ((phase == PHASE_DESCRIBE) != (frame->id != 0) || e)
		return "has the wrong execution id";
	return NULL;
}

/* Checked by link_file.c and link_port.c. */
static bool has_own_ids(enum phase phase)
{
	return phase == PHASE_FILE || phase == PHASE_PORT;
}

/* Return: NULL if @phase is allowed now, else what is wrong. */
static const char *out_of_place(const struct link *l, enum phase phase, const struct frame *frame,
                                const struct link_exec *e)
{
	/* An agent that fails to start logs why. */
	if (phase == PHASE_BOX)
		return frame->id ? "must not name an execution" : NULL;
	if ((phase == PHASE_FIRST) == l->greeted)
		return l->greeted ? "is repeated" : "is sent before HELLO";
	/* Core matches runs with the whole description: events come after it. */
	if (l->described > 0)
		return "is sent before everything is described";
	if (has_own_ids(phase))
		return NULL;
	if (phase == PHASE_FIRST || (phase == PHASE_ENDING && frame->id == 0))
		return frame->id ? "must not name an execution" : NULL;
	if (!e)
		return "names an unknown execution";
	if (phase != PHASE_EXEC && e->started != (phase == PHASE_RUNNING))
		return e->started ? "is sent after STARTED" : "is sent before STARTED";
	return NULL;
}

/* An earlier daemon recorded its end but died before the acknowledgement. */
static int take_forgotten(struct link *l, struct link_exec *e, const struct frame *frame,
                          struct error *err)
{
	e->forgotten_bytes += FRAME_HEADER_LEN + frame->len;
	if (e->forgotten_bytes > LINK_FORGOTTEN_MAX)
		return link_violation(err, frame, "exceeds every grant");
	e->started = e->started || frame->type == MSG_STARTED;
	if (frame->type != MSG_DONE && frame->type != MSG_FAILED)
		return 0;
	link_forget(l, e);
	link_ack(l, frame->id);
	if (l->box->on_forgotten)
		l->box->on_forgotten(l->box->ctx, frame->id);
	return 0;
}

static int take_frame(struct link *l, const struct frame *frame, struct error *err)
{
	enum phase phase = frame->type < MSG_COUNT ? messages[frame->type].phase : PHASE_NONE;
	struct link_exec *e = link_find(l, frame->id);
	const char *wrong = NULL;

	if (phase == PHASE_NONE)
		wrong = "is not a message of an agent";
	else if (phase == PHASE_RESUME || phase == PHASE_DESCRIBE)
		wrong = out_of_resume(l, phase, frame, e);
	else
		wrong = out_of_place(l, phase, frame, e);
	if (wrong)
		return link_violation(err, frame, wrong);
	if (phase == PHASE_FILE)
		return link_file_take(l, frame, err);
	if (phase == PHASE_PORT)
		return link_port_take(l, frame, err);
	if (e && e->forget)
		return take_forgotten(l, e, frame, err);
	return messages[frame->type].take(l, e, frame, err);
}

size_t link_input(struct link *l, const char *data, size_t len)
{
	size_t used = 0;

	while (!l->closed) {
		struct error err = {0};
		struct frame frame;
		int r = frame_parse(data + used, len - used, &frame);

		if (r == 0)
			return used;
		if (r < 0)
			(void)error_set(&err, ERR_PROTOCOL, -r, "the agent sent a malformed frame");
		else if (take_frame(l, &frame, &err) == 0)
			used += (size_t)r;
		if (error_is_set(&err))
			link_fail(l, &err);
	}
	return len;
}
