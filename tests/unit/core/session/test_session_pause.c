/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "session_agent.h"

/* Which answers came, in order: "first " or "second:CODE ". */
static char answers[200];

static void answer(const char *name, const struct error *err)
{
	size_t used = strlen(answers);

	(void)snprintf(answers + used, sizeof(answers) - used, "%s%s%s ", name, err ? ":" : "",
	               err ? error_name(err->code) : "");
}

static void on_kept(void *ctx, const struct error *err)
{
	answer(ctx, err);
}

static void await(struct fixture *f, struct session *session, const char *name)
{
	assert_int_equal(session_when_kept(session, on_kept, (void *)name, &f->err), 0);
}

#define expect_answers(text)                                                                       \
	do {                                                                                       \
		assert_string_equal(answers, text);                                                \
		answers[0] = '\0';                                                                 \
	} while (0)

/* A box that the kernel has not frozen yet. */
static struct session *freezing(struct fixture *f)
{
	struct session *session = ready(f);

	fake_hold_freeze(f->driver, true);
	assert_int_equal(session_pause(session, &f->err), 0);
	return session;
}

static void a_pause_is_answered_when_the_box_is_frozen(void **state)
{
	struct fixture *f = *state;
	struct session *session = freezing(f);

	await(f, session, "first");
	await(f, session, "second");
	settle(f);
	expect_answers("");
	fake_frozen(box_of(f, session));
	expect_answers("first second ");
	assert_int_equal(session_when_kept(session, on_kept, NULL, &f->err), 1);
}

static void the_latest_of_pause_and_resume_is_awaited(void **state)
{
	struct fixture *f = *state;
	struct session *session = freezing(f);

	await(f, session, "pause");
	assert_int_equal(session_resume(session, &f->err), 0);
	await(f, session, "resume");
	assert_int_equal(session_pause(session, &f->err), 0);
	await(f, session, "again");
	settle(f);
	expect_answers("");
	fake_frozen(box_of(f, session));
	expect_answers("pause resume again ");
	assert_true(fake_is_frozen(box_of(f, session)));
}

static void a_box_that_is_lost_meanwhile_is_no_paused_one(void **state)
{
	struct fixture *f = *state;
	struct session *session = freezing(f);
	struct error lost = {0};

	await(f, session, "pause");
	(void)error_set(&lost, ERR_AGENT_LOST, 0, "gone");
	fake_lost(box_of(f, session), &lost);
	expect_answers("pause:CONFLICT ");
	expect_state(session, SESSION_FAILED);
}

static void a_session_that_ends_meanwhile_is_no_paused_one(void **state)
{
	struct fixture *f = *state;
	struct session *session = freezing(f);

	await(f, session, "pause");
	session_terminate(session, "enough");
	expect_answers("pause:CONFLICT ");
}

static void a_daemon_that_stops_answers_all(void **state)
{
	struct fixture *f = *state;
	struct session *session = freezing(f);

	await(f, session, "pause");
	session_service_free(TAKE_PTR(f->service));
	expect_answers("pause:UNAVAILABLE ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_pause_is_answered_when_the_box_is_frozen),
		TEST(the_latest_of_pause_and_resume_is_awaited),
		TEST(a_box_that_is_lost_meanwhile_is_no_paused_one),
		TEST(a_session_that_ends_meanwhile_is_no_paused_one),
		TEST(a_daemon_that_stops_answers_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
