/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/run/run_record.h"
#include "io/loop.h"

struct fixture {
	struct loop *loop;
	struct run_records *all;
	struct error err;
};

/* What a watcher received: "1start 2out(ab) 3end ". */
struct heard {
	char text[4096];
	uint64_t last;
	bool ended;
	int calls;
	struct run_watch *watch;
	struct run_watch *victim;      /* unwatched in the first call */
	bool leave;                    /* in the first call */
	struct run_records *forget_in; /* in the first call, session "s" */
	struct run_record *output_to;  /* in the first call */
};

static void hear(void *ctx, struct run_record *e, const struct run_event *event)
{
	static const char *const names[] = {"start", "out", "err", "end"};
	struct heard *h = ctx;
	size_t n = strlen(h->text);

	assert_true(h->last == 0 || event->number == h->last + 1);
	h->last = event->number;
	h->ended = event->kind == RUN_EVENT_END;
	(void)snprintf(h->text + n, sizeof(h->text) - n, "%llu%s",
	               (unsigned long long)event->number, names[event->kind]);
	n = strlen(h->text);
	if (event->kind == RUN_EVENT_STDOUT || event->kind == RUN_EVENT_STDERR)
		(void)snprintf(h->text + n, sizeof(h->text) - n, "(%.*s)", (int)event->len,
		               event->data);
	n = strlen(h->text);
	(void)snprintf(h->text + n, sizeof(h->text) - n, " ");
	if (h->calls++ > 0)
		return;
	if (h->victim)
		run_unwatch(h->victim);
	if (h->leave)
		run_unwatch(h->watch);
	if (h->forget_in)
		run_records_forget(h->forget_in, TENANT_DEFAULT, "s");
	if (h->output_to)
		run_record_add_output(e, OUTPUT_STDOUT, "later", 5);
}

static void watch(struct run_record *e, uint64_t after, struct heard *h)
{
	h->watch = run_watch(e, after, hear, h);
}

static int setup_with(void **state, size_t count, size_t bytes)
{
	struct fixture *f = NEW(struct fixture);

	f->loop = loop_new();
	f->all = run_records_new(f->loop, count, bytes);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, 3, 1 << 20);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	run_records_free(f->all);
	loop_free(f->loop);
	free(f);
	return 0;
}

static void settle(struct fixture *f)
{
	for (int i = 0; i < 5; i++)
		loop_run_once(f->loop, false);
}

static struct run_record *add(struct fixture *f, const char *session)
{
	const struct run_record_new what = {
		.session_id = session, .language = "demo", .code = "x\0y", .code_len = 3};

	return run_records_add(f->all, &what);
}

static void say(struct run_record *e, const char *text)
{
	run_record_add_output(e, OUTPUT_STDOUT, text, strlen(text));
}

static void say_err(struct run_record *e, const char *text)
{
	run_record_add_output(e, OUTPUT_STDERR, text, strlen(text));
}

static void end(struct run_record *e)
{
	struct outcome outcome = {.status = OUTCOME_SUCCESS, .exited = true};

	run_record_ended(e, &outcome, false);
}

static struct run_record_info info_of(const struct run_record *e)
{
	struct run_record_info info;

	run_record_info(e, &info);
	return info;
}

static void a_record_has_its_whole_life(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");
	struct outcome outcome = {
		.status = OUTCOME_FAILED, .exit_code = 3, .report = BUF_INIT(100)};
	struct run_record_info info = info_of(e);

	assert_int_equal(info.state, RUN_RECORD_PENDING);
	assert_true(str_has_prefix(info.id, "exec_2"));
	assert_int_equal(strlen(info.id), strlen("exec_20261115_ab12cd34"));
	assert_string_equal(info.session_id, "s");
	assert_string_equal(info.language, "demo");
	assert_int_equal(info.code_len, 3);
	assert_memory_equal(info.code, "x\0y", 4);
	assert_true(info.created_ms > 0 && info.started_ms == 0 && info.completed_ms == 0);
	assert_null(info.outcome);
	assert_null(info.failure);
	assert_ptr_equal(run_records_find(f->all, TENANT_DEFAULT, info.id), e);
	run_record_started(e);
	run_record_started(e); /* once is enough */
	assert_int_equal(info_of(e).state, RUN_RECORD_RUNNING);
	say(e, "hello ");
	say_err(e, "oh");
	say(e, "world");
	assert_int_equal(buf_add_str(&outcome.report, "{}"), 0);
	run_record_ended(e, &outcome, true);
	assert_null(outcome.report.data); /* taken */
	info = info_of(e);
	assert_int_equal(info.state, RUN_RECORD_ENDED);
	assert_true(info.started_ms > 0 && info.completed_ms >= info.started_ms);
	assert_true(info.session_reset);
	assert_int_equal(info.outcome->exit_code, 3);
	assert_string_equal(info.outcome->execution_id, info.id);
	assert_string_equal(info.outcome->out.data, "hello world");
	assert_string_equal(info.outcome->err.data, "oh");
	assert_string_equal(info.outcome->report.data, "{}");
	/* An ended record does not change. */
	say(e, "late");
	end(e);
	run_record_failed(e, &f->err);
	assert_int_equal(info_of(e).outcome->exit_code, 3);
	assert_string_equal(info_of(e).outcome->out.data, "hello world");
}

static void a_failure_is_reported_as_such(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");
	struct heard h = {0};

	say(e, "x");
	(void)error_set(&f->err, ERR_BOX_FAILED, 0, "no box");
	run_record_failed(e, &f->err);
	assert_null(info_of(e).outcome);
	assert_int_equal(info_of(e).failure->code, ERR_BOX_FAILED);
	watch(e, 0, &h);
	settle(f);
	assert_string_equal(h.text, "1out(x) 2end ");
}

static void a_watcher_gets_everything_from_the_loop_only(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");
	struct heard h = {0};

	watch(e, 0, &h);
	run_record_started(e);
	say(e, "a");
	assert_int_equal(h.calls, 0);
	settle(f);
	assert_string_equal(h.text, "1start 2out(a) ");
	say(e, "b");
	say_err(e, "c");
	end(e);
	assert_int_equal(h.calls, 2);
	settle(f);
	assert_string_equal(h.text, "1start 2out(a) 3out(b) 4err(c) 5end ");
}

static void pieces_are_joined_until_a_watcher_saw_them(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");
	struct heard first = {0}, second = {0}, third = {0};

	run_record_started(e);
	say(e, "a");
	say(e, "b");
	say_err(e, "x");
	say(e, "c");
	say(e, "d");
	watch(e, 0, &first);
	settle(f);
	assert_string_equal(first.text, "1start 2out(ab) 3err(x) 4out(cd) ");
	say(e, "e"); /* 4 was delivered and stays as it was */
	say(e, "f");
	settle(f);
	assert_string_equal(first.text, "1start 2out(ab) 3err(x) 4out(cd) 5out(ef) ");
	watch(e, 4, &second);
	end(e);
	settle(f);
	assert_string_equal(second.text, "5out(ef) 6end ");
	watch(e, 2, &third); /* after the end, from the middle */
	settle(f);
	assert_string_equal(third.text, "3err(x) 4out(cd) 5out(ef) 6end ");
}

static void a_future_event_number_gets_later_events_and_the_end(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");
	struct heard early = {0}, late = {0};

	run_record_started(e);
	watch(e, 1000, &early);
	settle(f);
	assert_int_equal(early.calls, 0);
	say(e, "a");
	end(e);
	watch(e, UINT64_MAX, &late);
	settle(f);
	assert_string_equal(early.text, "2out(a) 3end ");
	assert_string_equal(late.text, "3end ");
}

static void long_output_comes_in_events_of_bounded_size(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");
	const size_t len = 200000;
	cleanup_free char *text = xmalloc(len);
	struct heard h = {0};

	memset(text, 'x', len);
	run_record_started(e);
	run_record_add_output(e, OUTPUT_STDOUT, text, len);
	end(e);
	assert_int_equal(info_of(e).outcome->out.len, len);
	watch(e, 0, &h);
	settle(f);
	assert_int_equal(h.last, 1 + 4 + 1); /* 65536 * 3 < 200000 */
}

static uint64_t count_events(void *ctx, struct run_record *e)
{
	struct fixture *f = ctx;
	struct heard h = {0};

	watch(e, 0, &h);
	settle(f);
	return h.last;
}

/* One byte at a time on both streams in turn: events must not cost more than the output. */
static void chatter_does_not_make_events_without_end(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");

	run_record_started(e);
	for (int i = 0; i < 20000; i++) {
		say(e, "o");
		say_err(e, "e");
	}
	end(e);
	assert_int_equal(info_of(e).outcome->out.len, 20000);
	assert_int_equal(info_of(e).outcome->err.len, 20000);
	assert_true(count_events(f, e) <= 4096 + 8);
}

static void chatter_to_a_watcher_is_paced(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");
	struct heard h = {0};
	uint64_t deadline;

	run_record_started(e);
	watch(e, 0, &h);
	for (int i = 0; i < 8000; i++) {
		say(e, "o");
		loop_run_once(f->loop, false);
	}
	assert_true(h.last >= 4095);
	end(e);
	deadline = clock_us() + 5 * USEC_PER_SEC;
	while (!h.ended && clock_us() < deadline)
		loop_run_once(f->loop, false);
	assert_true(h.ended);
	assert_true(h.last < 6000);
	assert_int_equal(info_of(e).outcome->out.len, 8000);
}

static void watchers_may_leave_at_any_time(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");
	struct heard leaver = {.leave = true}, killer = {0}, victim = {0}, other = {0};

	run_record_started(e);
	say(e, "a");
	watch(e, 0, &leaver);
	watch(e, 0, &killer);
	watch(e, 0, &victim);
	watch(e, 0, &other);
	killer.victim = victim.watch;
	settle(f);
	assert_string_equal(leaver.text, "1start ");
	assert_string_equal(killer.text, "1start 2out(a) ");
	assert_string_equal(victim.text, "");
	assert_string_equal(other.text, "1start 2out(a) ");
	say(e, "b");
	run_unwatch(other.watch); /* during delivery */
	end(e);
	settle(f);
	assert_string_equal(killer.text, "1start 2out(a) 3out(b) 4end ");
	assert_string_equal(other.text, "1start 2out(a) ");
}

static void output_inside_a_callback_is_deferred(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");
	struct heard h = {.output_to = e};

	run_record_started(e);
	watch(e, 0, &h);
	settle(f);
	assert_string_equal(h.text, "1start 2out(later) ");
}

static void oldest_ended_are_forgotten_by_count(void **state)
{
	struct fixture *f = *state; /* three */
	struct run_record *pending = add(f, "s");
	char *ids[5];

	for (int i = 0; i < 5; i++) {
		struct run_record *e = add(f, i % 2 ? "odd" : "even");

		ids[i] = xstrdup(info_of(e).id);
		end(e);
	}
	assert_null(run_records_find(f->all, TENANT_DEFAULT, ids[0]));
	assert_null(run_records_find(f->all, TENANT_DEFAULT, ids[1]));
	for (int i = 2; i < 5; i++)
		assert_non_null(run_records_find(f->all, TENANT_DEFAULT, ids[i]));
	assert_int_equal(run_records_count_of(f->all, TENANT_DEFAULT, "even"), 2);
	assert_int_equal(run_records_count_of(f->all, TENANT_DEFAULT, "odd"), 1);
	assert_string_equal(info_of(run_records_of(f->all, TENANT_DEFAULT, "even", 0)).id, ids[4]);
	assert_string_equal(info_of(run_records_of(f->all, TENANT_DEFAULT, "even", 1)).id, ids[2]);
	assert_null(run_records_of(f->all, TENANT_DEFAULT, "even", 2));
	assert_null(run_records_of(f->all, TENANT_DEFAULT, "nobody", 0));
	assert_ptr_equal(run_records_of(f->all, TENANT_DEFAULT, "s", 0),
	                 pending); /* not ended: stays */
	for (int i = 0; i < 5; i++)
		free(ids[i]);
}

static int setup_small(void **state)
{
	return setup_with(state, 1000, 100000);
}

/* An ended run. */
static void add_of(struct fixture *f, const char *tenant, char ret_id[40])
{
	const struct run_record_new what = {.tenant = tenant,
	                                    .session_id = "s",
	                                    .language = "demo",
	                                    .code = "x",
	                                    .code_len = 1};
	struct run_record *e = run_records_add(f->all, &what);
	struct outcome outcome = {0};
	struct run_record_info info;

	run_record_ended(e, &outcome, false);
	run_record_info(e, &info);
	(void)snprintf(ret_id, 40, "%s", info.id);
}

/* Three are kept; one tenant has two of them before the other ends a hundred. */
static void a_flooding_tenant_loses_its_own_records(void **state)
{
	struct fixture *f = *state;
	char first[40], second[40], other[40];

	add_of(f, "small", first);
	for (int i = 0; i < 100; i++)
		add_of(f, "flood", other);
	assert_non_null(run_records_find(f->all, "small", first));
	assert_int_equal(run_records_count_of(f->all, "flood", "s"), 2);
	/* Within its share a tenant gets room from the largest one. */
	for (int i = 0; i < 3; i++)
		add_of(f, "third", other);
	add_of(f, "small", second);
	assert_non_null(run_records_find(f->all, "small", second));
	assert_int_equal(run_records_count_of(f->all, "small", "s"), 1);
	assert_int_equal(run_records_count_of(f->all, "flood", "s"), 1);
	assert_int_equal(run_records_count_of(f->all, "third", "s"), 1);
}

static void oldest_ended_are_forgotten_by_bytes(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *text = xmalloc(60000);

	memset(text, 'x', 60000);
	for (int i = 0; i < 3; i++) {
		struct run_record *e = add(f, "s");

		run_record_add_output(e, OUTPUT_STDERR, text, 60000);
		end(e);
		/* The newest is kept, whatever its size. */
		assert_ptr_equal(run_records_of(f->all, TENANT_DEFAULT, "s", 0), e);
		assert_int_equal(run_records_count_of(f->all, TENANT_DEFAULT, "s"), 1);
	}
}

static void forgetting_notifies_watchers(void **state)
{
	struct fixture *f = *state;
	struct run_record *running = add(f, "s");
	struct run_record *ended = add(f, "s");
	struct run_record *other = add(f, "other");
	cleanup_free char *id = xstrdup(info_of(running).id);
	struct heard a = {0}, b = {0};

	run_record_started(running);
	say(running, "x");
	end(ended);
	watch(running, 0, &a);
	watch(ended, 0, &b);
	run_records_forget(f->all, TENANT_DEFAULT, "s");
	assert_null(run_records_find(f->all, TENANT_DEFAULT, id));
	assert_int_equal(run_records_count_of(f->all, TENANT_DEFAULT, "s"), 0);
	assert_int_equal(run_records_count_of(f->all, TENANT_DEFAULT, "other"), 1);
	settle(f);
	assert_string_equal(a.text, "1start 2out(x) 3end ");
	assert_string_equal(b.text, "1end ");
	run_records_forget(f->all, TENANT_DEFAULT, "s"); /* nothing is left */
	assert_int_equal(info_of(other).state, RUN_RECORD_PENDING);
}

static void forgetting_in_a_callback_is_safe(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");
	struct heard h = {.forget_in = f->all}, left = {0};

	run_record_started(e);
	watch(e, 0, &h);
	watch(e, 0, &left);
	settle(f);
	assert_string_equal(h.text, "1start 2end ");
	assert_string_equal(left.text, "1start 2end ");
	assert_int_equal(run_records_count_of(f->all, TENANT_DEFAULT, "s"), 0);
}

static void last_watcher_of_the_forgotten_may_leave(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");
	struct heard h = {0};

	watch(e, 0, &h);
	run_records_forget(f->all, TENANT_DEFAULT, "s");
	run_unwatch(h.watch); /* frees the record during delivery */
	settle(f);
	assert_int_equal(h.calls, 0);
}

static void watched_ones_can_be_freed_with_all(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");
	struct run_record *gone = add(f, "t");
	struct heard h = {0}, g = {0};

	watch(e, 0, &h);
	watch(gone, 0, &g);
	run_record_started(e);
	run_records_forget(f->all, TENANT_DEFAULT, "t");
	run_records_free(TAKE_PTR(f->all));
	settle(f);
	assert_int_equal(h.calls + g.calls, 0);
}

struct control {
	int cancels;
	char input[16];
	bool ended;
};

static void on_cancel(void *ctx)
{
	struct control *c = ctx;

	c->cancels++;
}

static int on_input(void *ctx, const void *data, size_t len, bool end_of_it, struct error *err)
{
	struct control *c = ctx;

	if (len > 10)
		return error_set(err, ERR_TOO_LARGE, 0, "too much");
	memcpy(c->input, data, len);
	c->ended = end_of_it;
	return 0;
}

static void control_ends_with_the_execution(void **state)
{
	struct fixture *f = *state;
	struct run_record *e = add(f, "s");
	struct control c = {0};

	run_record_set_control(e, on_cancel, NULL, &c);
	assert_int_equal(run_record_stdin(e, "x", 1, false, &f->err), -1);
	assert_int_equal(f->err.code, ERR_CONFLICT);
	error_clear(&f->err);
	run_record_set_control(e, on_cancel, on_input, &c);
	assert_int_equal(run_record_stdin(e, "x", 1, true, &f->err), 0);
	assert_string_equal(c.input, "x");
	assert_true(c.ended);
	assert_int_equal(run_record_stdin(e, "xxxxxxxxxxxx", 12, true, &f->err), -1);
	assert_int_equal(f->err.code, ERR_TOO_LARGE);
	error_clear(&f->err);
	assert_int_equal(run_record_cancel(e, &f->err), 0);
	assert_int_equal(c.cancels, 1);
	end(e);
	assert_int_equal(run_record_cancel(e, &f->err), -1);
	assert_int_equal(f->err.code, ERR_CONFLICT);
	error_clear(&f->err);
	assert_int_equal(run_record_stdin(e, "x", 1, false, &f->err), -1);
	assert_int_equal(f->err.code, ERR_CONFLICT);
	assert_int_equal(c.cancels, 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_has_its_whole_life),
		TEST(a_failure_is_reported_as_such),
		TEST(a_watcher_gets_everything_from_the_loop_only),
		TEST(pieces_are_joined_until_a_watcher_saw_them),
		TEST(a_future_event_number_gets_later_events_and_the_end),
		TEST(long_output_comes_in_events_of_bounded_size),
		TEST(chatter_does_not_make_events_without_end),
		TEST(chatter_to_a_watcher_is_paced),
		TEST(watchers_may_leave_at_any_time),
		TEST(output_inside_a_callback_is_deferred),
		TEST(oldest_ended_are_forgotten_by_count),
		TEST(a_flooding_tenant_loses_its_own_records),
		cmocka_unit_test_setup_teardown(oldest_ended_are_forgotten_by_bytes, setup_small,
	                                        teardown),
		TEST(forgetting_notifies_watchers),
		TEST(forgetting_in_a_callback_is_safe),
		TEST(last_watcher_of_the_forgotten_may_leave),
		TEST(watched_ones_can_be_freed_with_all),
		TEST(control_ends_with_the_execution),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
