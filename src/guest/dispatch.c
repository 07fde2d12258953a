/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/dispatch.h"

#include <errno.h>
#include <string.h>

#include "guest/agent.h"
#include "guest/beside.h"
#include "guest/files.h"
#include "guest/landlock.h"
#include "guest/ports.h"
#include "guest/prepared.h"
#include "guest/resident.h"

#define SIGNAL_MAX 64

/* Found after decoding the message. */
#define VIOLATION (-EPROTO)

/* Frames of a failed execution that were on their way. */
static bool is_skipped(const struct agent *a, const struct frame *frame)
{
	return frame->id == a->failed;
}

static bool is_current(const struct agent *a, const struct frame *frame)
{
	return a->proc.state != PROC_IDLE && a->proc.id == frame->id;
}

/* Messages of both would have one id. */
static bool is_taken(struct agent *a, const struct frame *frame)
{
	return is_current(a, frame) || beside_find(a, frame->id) || resident_find(a, frame->id);
}

static int complete_ruleset(const struct agent *a, struct error *err)
{
	int r = 0;

	if (a->ruleset < 0 || a->setup.data_limit > 0)
		return 0;
	r = landlock_allow_zero(a->ruleset, a->landlock_abi);
	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "Landlock rule for /dev/zero") : 0;
}

static int on_setup(struct agent *a, const struct frame *frame)
{
	struct error err = {0};

	if (msg_setup_decode(frame, &a->setup) < 0)
		return VIOLATION;
	a->is_set_up = true;
	if (a->setup.version != WIRE_VERSION)
		(void)error_set(&err, ERR_PROTOCOL, 0,
		                "protocol version %u of the host does not match %u of the agent",
		                a->setup.version, (unsigned)WIRE_VERSION);
	else if (a->setup.landlock_required && a->ruleset < 0)
		(void)error_set(&err, ERR_UNAVAILABLE, 0, "the kernel has no Landlock");
	else
		(void)complete_ruleset(a, &err);
	if (error_is_set(&err))
		return agent_fail(a, 0, &err) < 0 ? -EIO : 1;
	inject_enter(a);
	return 0;
}

static int on_put_begin(struct agent *a, const struct frame *frame)
{
	struct msg_put_begin msg;
	struct error err = {0};

	if (msg_put_begin_decode(frame, &msg) < 0 || msg.place >= WIRE_PLACE_COUNT)
		return VIOLATION;
	if (is_skipped(a, frame))
		return 0;
	if (a->put.state != PUT_IDLE)
		return VIOLATION;
	return put_begin(a, frame->id, &msg, &err) < 0 ? agent_fail(a, frame->id, &err) : 0;
}

static int on_put_data(struct agent *a, const struct frame *frame)
{
	struct msg_put_data msg;
	struct error err = {0};

	if (msg_put_data_decode(frame, &msg) < 0)
		return VIOLATION;
	if (is_skipped(a, frame))
		return 0;
	if (a->put.state != PUT_OPEN || a->put.id != frame->id)
		return VIOLATION;
	return put_data(&a->put, &msg.data, &err) < 0 ? agent_fail(a, frame->id, &err) : 0;
}

static int on_put_end(struct agent *a, const struct frame *frame)
{
	struct msg_put_end msg;
	struct error err = {0};

	if (msg_put_end_decode(frame, &msg) < 0)
		return VIOLATION;
	if (is_skipped(a, frame))
		return 0;
	if (a->put.state != PUT_OPEN || a->put.id != frame->id)
		return VIOLATION;
	return put_end(&a->put, &err) < 0 ? agent_fail(a, frame->id, &err) : 0;
}

static int on_exec(struct agent *a, const struct frame *frame)
{
	struct msg_exec msg;
	struct error err = {0};

	if (msg_exec_decode(frame, &msg) < 0)
		return VIOLATION;
	if (is_skipped(a, frame))
		return 0;
	if (a->put.state != PUT_IDLE || is_taken(a, frame) ||
	    journal_begin(&a->journal, frame->id, 0, msg.keep != 0) < 0)
		return VIOLATION;
	int r = msg.keep ? resident_start(a, frame->id, &msg, &err)
	                 : proc_start(a, frame->id, &msg, &err);
	return r < 0 ? agent_fail(a, frame->id, &err) : 0;
}

static int on_prepare(struct agent *a, const struct frame *frame)
{
	struct msg_prepare msg;
	struct error err = {0};

	if (msg_prepare_decode(frame, &msg) < 0)
		return VIOLATION;
	if (is_skipped(a, frame))
		return 0;
	/* A prepared program does not survive its daemon. */
	if (a->put.state != PUT_IDLE || a->journal.on)
		return VIOLATION;
	return prepared_start(a, frame->id, &msg, &err) < 0 ? agent_fail(a, frame->id, &err) : 0;
}

static int begin_prepared(struct agent *a, const struct frame *frame, const struct msg_run *msg)
{
	struct error err = {0};

	if (a->put.state != PUT_IDLE || !is_current(a, frame) || a->proc.state != PROC_PREPARED)
		return VIOLATION;
	return prepared_run(a, msg, &err) < 0 ? agent_fail(a, frame->id, &err) : 0;
}

static int on_run(struct agent *a, const struct frame *frame)
{
	struct msg_run msg;
	struct error err = {0};

	if (msg_run_decode(frame, &msg) < 0)
		return VIOLATION;
	if (is_skipped(a, frame))
		return 0;
	if (msg.runner == frame->id)
		return begin_prepared(a, frame, &msg);
	if (a->put.state != PUT_IDLE || is_taken(a, frame) ||
	    journal_begin(&a->journal, frame->id, msg.runner, false) < 0)
		return VIOLATION;
	if (proc_run(a, frame->id, &msg, &err) < 0)
		return agent_fail(a, frame->id, &err);
	return proc_run_started(a);
}

static int on_stdin(struct agent *a, const struct frame *frame)
{
	struct msg_stdin_data msg;
	struct input *in;

	if (msg_stdin_data_decode(frame, &msg) < 0)
		return VIOLATION;
	in = proc_input(a, frame->id);
	/* The program may have ended meanwhile. */
	if (!in)
		return 0;
	return in->ended ? VIOLATION : input_add(in, &msg.data);
}

static int on_stdin_end(struct agent *a, const struct frame *frame)
{
	struct msg_stdin_end msg;
	struct input *in;

	if (msg_stdin_end_decode(frame, &msg) < 0)
		return VIOLATION;
	in = proc_input(a, frame->id);
	if (in)
		input_end(in);
	return 0;
}

static int on_signal(struct agent *a, const struct frame *frame)
{
	struct msg_signal msg;
	struct resident *runner = resident_find(a, frame->id);
	const struct beside *beside = beside_find(a, frame->id);

	if (msg_signal_decode(frame, &msg) < 0 || msg.signo < 1 || msg.signo > SIGNAL_MAX)
		return VIOLATION;
	if (!runner && is_current(a, frame))
		runner = a->proc.runner;
	if (beside)
		beside_signal(a, beside, (int)msg.signo);
	else if (runner)
		resident_signal(a, runner, (int)msg.signo);
	else if (is_current(a, frame))
		proc_signal(a, (int)msg.signo);
	return 0;
}

static int on_beside(struct agent *a, const struct frame *frame)
{
	struct msg_beside msg;
	struct error err = {0};

	if (msg_beside_decode(frame, &msg) < 0 || (msg.rows == 0) != (msg.cols == 0))
		return VIOLATION;
	if (is_skipped(a, frame))
		return 0;
	if (a->put.state != PUT_IDLE || is_taken(a, frame) ||
	    journal_begin(&a->journal, frame->id, 0, false) < 0)
		return VIOLATION;
	if (msg.rows > 0)
		journal_skip_output(&a->journal, frame->id);
	return beside_start(a, frame->id, &msg, &err) < 0 ? agent_fail(a, frame->id, &err) : 0;
}

static int on_resize(struct agent *a, const struct frame *frame)
{
	struct msg_resize msg;
	struct beside *b = beside_find(a, frame->id);

	if (msg_resize_decode(frame, &msg) < 0 || msg.rows == 0 || msg.cols == 0)
		return VIOLATION;
	if (b)
		beside_resize(b, msg.rows, msg.cols);
	return 0;
}

static int on_output_grant(struct agent *a, const struct frame *frame)
{
	struct msg_output_grant msg;
	struct beside *b = beside_find(a, frame->id);

	if (msg_output_grant_decode(frame, &msg) < 0)
		return VIOLATION;
	return b ? beside_grant(b, msg.bytes) : 0;
}

static int on_label(struct agent *a, const struct frame *frame)
{
	struct msg_label msg;

	if (msg_label_decode(frame, &msg) < 0)
		return VIOLATION;
	return journal_label(&a->journal, frame->id, &msg.text);
}

static int on_ack(struct agent *a, const struct frame *frame)
{
	struct msg_ack msg;

	if (msg_ack_decode(frame, &msg) < 0)
		return VIOLATION;
	return journal_ack(&a->journal, frame->id);
}

static int on_bye(struct agent *a, const struct frame *frame)
{
	struct msg_bye msg;

	(void)a;
	return msg_bye_decode(frame, &msg) < 0 ? VIOLATION : 1;
}

enum rule_flag {
	BEFORE_SETUP = 1u << 0,
	ONCE = 1u << 1,   /* only before SETUP */
	OF_BOX = 1u << 2, /* of no execution: id 0 */
};

struct rule {
	int (*handle)(struct agent *a, const struct frame *frame);
	unsigned flags;
};

static const struct rule rules[MSG_COUNT] = {
	[MSG_SETUP] = {on_setup, BEFORE_SETUP | ONCE | OF_BOX},
	[MSG_PUT_BEGIN] = {on_put_begin, 0},
	[MSG_PUT_DATA] = {on_put_data, 0},
	[MSG_PUT_END] = {on_put_end, 0},
	[MSG_EXEC] = {on_exec, 0},
	[MSG_STDIN] = {on_stdin, 0},
	[MSG_STDIN_END] = {on_stdin_end, 0},
	[MSG_SIGNAL] = {on_signal, 0},
	[MSG_RUN] = {on_run, 0},
	[MSG_PREPARE] = {on_prepare, 0},
	[MSG_LABEL] = {on_label, 0},
	[MSG_ACK] = {on_ack, 0},
	[MSG_FILE_OPEN] = {files_open, 0},
	[MSG_FILE_DATA] = {files_data, 0},
	[MSG_FILE_END] = {files_end, 0},
	[MSG_FILE_GRANT] = {files_grant, 0},
	[MSG_FILE_CANCEL] = {files_cancel, 0},
	[MSG_PORT_OPEN] = {ports_open, 0},
	[MSG_PORT_SEND] = {ports_send, 0},
	[MSG_PORT_FINISH] = {ports_finish, 0},
	[MSG_PORT_GRANT] = {ports_grant, 0},
	[MSG_PORT_RESET] = {ports_reset, 0},
	[MSG_PORT_LIST] = {port_list, 0},
	[MSG_BESIDE] = {on_beside, 0},
	[MSG_RESIZE] = {on_resize, 0},
	[MSG_OUTPUT_GRANT] = {on_output_grant, 0},
	[MSG_BYE] = {on_bye, BEFORE_SETUP | OF_BOX},
};

enum dispatch_verdict dispatch_check(const struct frame *frame, bool is_set_up)
{
	const struct rule *rule = frame->type < MSG_COUNT ? &rules[frame->type] : NULL;

	if (!rule || !rule->handle)
		return DISPATCH_UNKNOWN;
	if (!is_set_up && !(rule->flags & BEFORE_SETUP))
		return DISPATCH_TOO_EARLY;
	if (is_set_up && (rule->flags & ONCE))
		return DISPATCH_REPEATED;
	if ((frame->id == 0) != ((rule->flags & OF_BOX) != 0))
		return DISPATCH_WRONG_ID;
	return DISPATCH_OK;
}

const char *dispatch_verdict_name(enum dispatch_verdict verdict)
{
	static const char *const texts[] = {
		[DISPATCH_OK] = "malformed",
		[DISPATCH_UNKNOWN] = "not a message for the agent",
		[DISPATCH_TOO_EARLY] = "before SETUP",
		[DISPATCH_REPEATED] = "repeated",
		[DISPATCH_WRONG_ID] = "wrong execution id",
	};

	return texts[verdict];
}

int dispatch_frame(struct agent *a, const struct frame *frame)
{
	if (dispatch_check(frame, a->is_set_up) != DISPATCH_OK)
		return VIOLATION;
	if (frame->id > a->journal.last_id)
		a->journal.last_id = frame->id;
	return rules[frame->type].handle(a, frame);
}
