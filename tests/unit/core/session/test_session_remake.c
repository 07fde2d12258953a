/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "restore_fixture.h"

/* Boxes of an earlier daemon that were still being built when it was killed. */

static void lose(struct box *box)
{
	struct error why = {0};

	(void)error_set(&why, ERR_AGENT_LOST, 0, "ended with its daemon");
	fake_lost(box, &why);
}

/* Its box was kept, but the agent had received nothing and ended with its daemon. */
static void session_whose_new_box_is_dead_gets_another(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct session *mine;
	struct run_record *e;
	struct box *box;

	past_session(rig, "mine", "b1", "creating", "python");
	past_execution(rig, "exec_1", "mine", false, "{}");
	write_rows(rig, &DB_SQL("UPDATE executions SET begun = 1"));
	fake_keep(f->driver, "b1", false);
	restore(rig);
	mine = session(rig, "mine");
	e = execute(f, mine); /* this daemon's */
	lose(box_of(f, mine));
	settle(f);
	expect_state(mine, SESSION_CREATING);
	expect_status(record(rig, "exec_1"), OUTCOME_CRASHED); /* unknown */
	assert_int_equal(fake_box_count(f->driver), 1);
	box = box_of(f, mine);
	assert_string_not_equal(box_id(box), "b1");
	fake_ready(box);
	done(box, begin(box), 0);
	expect_status(e, OUTCOME_SUCCESS);
	/* A box that was ready is lost like any other. */
	lose(box);
	expect_state(mine, SESSION_FAILED);
}

static void session_that_gets_no_other_box_fails(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;
	struct error why = {0};

	past_session(rig, "mine", "b1", "creating", "python");
	fake_keep(f->driver, "b1", false);
	restore(rig);
	(void)error_set(&why, ERR_BUSY, 0, "no more boxes");
	fake_refuse_next(f->driver, &why);
	lose(box_of(f, session(rig, "mine")));
	settle(f);
	expect_state(session(rig, "mine"), SESSION_FAILED);
	assert_int_equal(fake_box_count(f->driver), 0);
}

static void session_that_ends_meanwhile_gets_no_other_box(void **state)
{
	struct rig *rig = *state;
	struct fixture *f = rig->f;

	past_session(rig, "mine", "b1", "creating", "python");
	fake_keep(f->driver, "b1", false);
	restore(rig);
	lose(box_of(f, session(rig, "mine")));
	session_terminate(session(rig, "mine"), "no longer wanted");
	settle(f);
	assert_int_equal(fake_box_count(f->driver), 0);
}

/* A box lost after it was ready may have had files in it. */
static void session_whose_old_box_is_dead_has_failed(void **state)
{
	struct rig *rig = *state;

	past_session(rig, "mine", "b1", "ready", "python");
	fake_keep(rig->f->driver, "b1", false);
	restore(rig);
	lose(box_of(rig->f, session(rig, "mine")));
	expect_state(session(rig, "mine"), SESSION_FAILED);
}

/* The build timeout starts with the daemon that builds the box. */
static void a_new_box_has_its_full_time_in_an_old_session(void **state)
{
	struct rig *rig = *state;

	past_session(rig, "mine", "b1", "creating", "python");
	write_rows(rig, &DB_SQL("UPDATE sessions SET created_ms = created_ms - 300000"));
	restore(rig);
	settle(rig->f);
	expect_state(session(rig, "mine"), SESSION_CREATING);
	fake_ready(box_of(rig->f, session(rig, "mine")));
	expect_state(session(rig, "mine"), SESSION_READY);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_rig, teardown_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(session_whose_new_box_is_dead_gets_another),
		TEST(session_that_gets_no_other_box_fails),
		TEST(session_that_ends_meanwhile_gets_no_other_box),
		TEST(session_whose_old_box_is_dead_has_failed),
		TEST(a_new_box_has_its_full_time_in_an_old_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
