/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "core/session/session_files.h"
#include "session_agent.h"

/*
 * Operations on the files of a session, down to the box: requests are recorded here, and the test
 * answers. The linker replaces the functions of the link (--wrap).
 */

#define OPS_MAX 16

static struct asked {
	struct box *box;
	struct box_file_request request;
	char path[64];
	struct box_file_events events;
	size_t written, granted;
	bool ended, cancelled;
} asked[OPS_MAX];
static size_t asked_count;
static bool refuse_next;

int __wrap_box_file_open(struct box *box, const struct box_file_request *request,
                         const struct box_file_events *events, struct box_file **ret_file,
                         struct error *err);
size_t __wrap_box_file_write(struct box_file *file, const char *data, size_t len);
void __wrap_box_file_end(struct box_file *file);
void __wrap_box_file_grant(struct box_file *file, size_t bytes);
void __wrap_box_file_cancel(struct box_file *file);

static struct asked *asked_of(struct box_file *file)
{
	return (struct asked *)file;
}

int __wrap_box_file_open(struct box *box, const struct box_file_request *request,
                         const struct box_file_events *events, struct box_file **ret_file,
                         struct error *err)
{
	struct asked *a = &asked[asked_count];

	if (refuse_next) {
		refuse_next = false;
		return error_set(err, ERR_BUSY, 0, "no more");
	}
	assert_true(asked_count++ < OPS_MAX);
	*a = (struct asked){.box = box, .request = *request, .events = *events};
	assert_int_equal(str_copy(a->path, sizeof(a->path), request->path), 0);
	*ret_file = (struct box_file *)a;
	return 0;
}

size_t __wrap_box_file_write(struct box_file *file, const char *data, size_t len)
{
	(void)data;
	asked_of(file)->written += len;
	return len;
}

void __wrap_box_file_end(struct box_file *file)
{
	asked_of(file)->ended = true;
}

void __wrap_box_file_grant(struct box_file *file, size_t bytes)
{
	asked_of(file)->granted += bytes;
}

void __wrap_box_file_cancel(struct box_file *file)
{
	assert_false(asked_of(file)->cancelled);
	asked_of(file)->cancelled = true;
}

/* Callbacks of the caller. */
static struct {
	int entries, data, rooms, done, failed;
	struct error err;
} callbacks;

static void on_entry(void *ctx, const struct box_file_entry *entry)
{
	(void)ctx;
	(void)entry;
	callbacks.entries++;
}

static void on_data(void *ctx, const char *data, size_t len)
{
	(void)ctx;
	(void)data;
	(void)len;
	callbacks.data++;
}

static void on_room(void *ctx)
{
	(void)ctx;
	callbacks.rooms++;
}

static void on_done(void *ctx, const struct box_file_summary *summary)
{
	(void)ctx;
	(void)summary;
	callbacks.done++;
}

static void on_failed(void *ctx, const struct error *err)
{
	(void)ctx;
	callbacks.failed++;
	callbacks.err = *err;
}

static int setup_files(void **state)
{
	asked_count = 0;
	refuse_next = false;
	memset(&callbacks, 0, sizeof(callbacks));
	return setup(state);
}

static int try_open(struct fixture *f, struct session *session, enum box_file_op op,
                    struct file_op **ret_op)
{
	const struct box_file_events events = {f, on_entry, on_data, on_room, on_done, on_failed};
	char path[] = "dir/f";
	const struct box_file_request request = {.op = op, .path = path};
	int r;

	error_clear(&f->err);
	r = file_open(session, &request, &events, ret_op, &f->err);
	memset(path, 'x', sizeof(path) - 1); /* the caller may reuse it */
	return r;
}

static struct file_op *opened(struct fixture *f, struct session *session, enum box_file_op op)
{
	struct file_op *opened_op = NULL;

	if (try_open(f, session, op, &opened_op) < 0)
		fail_msg("%s", f->err.msg);
	return opened_op;
}

static void an_operation_goes_to_the_box_and_its_result_returns(void **state)
{
	struct fixture *f = *state;
	struct session *s = ready(f);
	struct file_op *op = opened(f, s, BOX_FILE_WRITE);
	const struct asked *a = &asked[0];

	assert_ptr_equal(a->box, box_of(f, s));
	assert_string_equal(a->path, "dir/f");
	assert_string_equal(a->request.to, "");
	assert_int_equal(file_write(op, "abc", 3), 3);
	file_grant(op, 7);
	file_end(op);
	assert_int_equal(a->written, 3);
	assert_int_equal(a->granted, 7);
	assert_true(a->ended);
	a->events.on_room(a->events.ctx);
	a->events.on_entry(a->events.ctx, &(struct box_file_entry){.path = ""});
	a->events.on_data(a->events.ctx, "x", 1);
	a->events.on_done(a->events.ctx, &(struct box_file_summary){0});
	assert_int_equal(callbacks.rooms + callbacks.entries + callbacks.data + callbacks.done, 4);
	assert_int_equal(callbacks.failed, 0);
	assert_false(a->cancelled);
}

static void a_box_failure_is_reported_once(void **state)
{
	struct fixture *f = *state;
	struct session *s = ready(f);
	struct error why = {0};

	(void)opened(f, s, BOX_FILE_READ);
	(void)error_set(&why, ERR_FILE_NOT_FOUND, 0, "no such file");
	asked[0].events.on_failed(asked[0].events.ctx, &why);
	assert_int_equal(callbacks.failed, 1);
	assert_int_equal(callbacks.err.code, ERR_FILE_NOT_FOUND);
	session_terminate(s, "enough");
	assert_int_equal(callbacks.failed, 1);
}

static void six_at_a_time(void **state)
{
	struct fixture *f = *state;
	struct session *s = ready(f);
	struct file_op *ops[FILES_PER_SESSION], *more = NULL;

	for (int i = 0; i < FILES_PER_SESSION; i++)
		ops[i] = opened(f, s, BOX_FILE_STAT);
	expect_refused(f, try_open(f, s, BOX_FILE_STAT, &more), ERR_BUSY);
	file_cancel(ops[3]);
	assert_true(asked[3].cancelled);
	(void)opened(f, s, BOX_FILE_STAT);
	assert_int_equal(callbacks.failed + callbacks.done,
	                 0); /* a cancelled caller gets no callback */
}

static void refused_operation_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct session *s = ready(f);
	struct file_op *op = NULL;

	refuse_next = true;
	expect_refused(f, try_open(f, s, BOX_FILE_STAT, &op), ERR_BUSY);
	assert_int_equal(callbacks.failed, 0);
	for (int i = 0; i < FILES_PER_SESSION; i++)
		(void)opened(f, s, BOX_FILE_STAT);
}

static void paused_and_ended_sessions_have_no_files(void **state)
{
	struct fixture *f = *state;
	struct session *s = ready(f);
	struct file_op *op = NULL;

	assert_int_equal(session_pause(s, &f->err), 0);
	expect_refused(f, try_open(f, s, BOX_FILE_STAT, &op), ERR_CONFLICT);
	assert_int_equal(session_resume(s, &f->err), 0);
	(void)opened(f, s, BOX_FILE_STAT);
	session_terminate(s, "enough");
	assert_int_equal(callbacks.failed, 1);
	assert_int_equal(callbacks.err.code, ERR_CONFLICT);
	assert_true(asked[0].cancelled);
	expect_refused(f, try_open(f, s, BOX_FILE_STAT, &op), ERR_CONFLICT);
}

static void ephemeral_session_gets_a_box_for_its_files(void **state)
{
	struct fixture *f = *state;
	struct session *s;
	struct run_record *e;

	f->request.mode = SESSION_EPHEMERAL;
	s = create(f);
	assert_int_equal(fake_box_count(f->driver), 0);
	(void)opened(f, s, BOX_FILE_WRITE);
	(void)opened(f, s, BOX_FILE_WRITE);
	assert_int_equal(fake_box_count(f->driver), 1);
	asked[0].events.on_done(asked[0].events.ctx, &(struct box_file_summary){0});
	fake_ready(box_at(f, 0));
	/* The next execution runs in it, and ends it with its operations. */
	e = execute(f, s);
	assert_int_equal(fake_box_count(f->driver), 1);
	done(box_at(f, 0), begin(box_at(f, 0)), 0);
	expect_status(e, OUTCOME_SUCCESS);
	assert_int_equal(callbacks.failed, 1);
	assert_true(asked[1].cancelled);
}

/* While the old box goes down a new operation waits; then it gets a new box. */
static void an_operation_waits_for_the_box(void **state)
{
	struct fixture *f = *state;
	struct file_op *op, *gone;
	struct session *s;

	f->request.mode = SESSION_EPHEMERAL;
	s = create(f);
	(void)opened(f, s, BOX_FILE_STAT);
	fake_ready(box_at(f, 0));
	fake_hold_gone(f->driver, true);
	(void)execute(f, s);
	done(box_at(f, 0), begin(box_at(f, 0)), 0);
	settle(f);
	assert_int_equal(asked_count, 1);
	op = opened(f, s, BOX_FILE_WRITE);
	gone = opened(f, s, BOX_FILE_READ);
	assert_int_equal(asked_count, 1);
	assert_int_equal(file_write(op, "abc", 3), 0);
	file_grant(op, 5);
	file_cancel(gone);
	fake_hold_gone(f->driver, false);
	fake_gone(box_at(f, 0));
	settle(f);
	assert_int_equal(asked_count, 2);
	assert_int_equal(asked[1].request.op, BOX_FILE_WRITE);
	assert_int_equal(callbacks.rooms, 1);
	assert_int_equal(file_write(op, "abc", 3), 3);
	file_cancel(op);
}

/* One that ended while it waited ends when it starts, without on_room. */
static void an_operation_ended_early_stays_ended(void **state)
{
	struct fixture *f = *state;
	struct file_op *op;
	struct session *s;

	f->request.mode = SESSION_EPHEMERAL;
	s = create(f);
	(void)opened(f, s, BOX_FILE_STAT);
	fake_ready(box_at(f, 0));
	fake_hold_gone(f->driver, true);
	(void)execute(f, s);
	done(box_at(f, 0), begin(box_at(f, 0)), 0);
	settle(f);
	op = opened(f, s, BOX_FILE_WRITE);
	file_end(op);
	fake_hold_gone(f->driver, false);
	fake_gone(box_at(f, 0));
	settle(f);
	assert_int_equal(asked_count, 2);
	assert_true(asked[1].ended);
	assert_int_equal(callbacks.rooms, 0);
	asked[1].events.on_done(asked[1].events.ctx, &(struct box_file_summary){0});
	assert_int_equal(callbacks.done, 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_files, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_operation_goes_to_the_box_and_its_result_returns),
		TEST(a_box_failure_is_reported_once),
		TEST(six_at_a_time),
		TEST(refused_operation_leaves_nothing),
		TEST(paused_and_ended_sessions_have_no_files),
		TEST(ephemeral_session_gets_a_box_for_its_files),
		TEST(an_operation_waits_for_the_box),
		TEST(an_operation_ended_early_stays_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
