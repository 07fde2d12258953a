/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "policy_fixture.h"

static void a_mode_that_was_not_asked_for_is_the_most_that_is_allowed(void **state)
{
	static const struct {
		const char *own, *chosen;
		int granted; /* -1: refused */
	} rows[] = {
		{"description: all", NULL, SESSION_WORKSPACE},
		{"sessions: {modes: [workspace]}", NULL, SESSION_WORKSPACE},
		{"sessions: {modes: [persistent]}", NULL, SESSION_WORKSPACE},
		{"sessions: {modes: [ephemeral, persistent]}", NULL, SESSION_WORKSPACE},
		{"sessions: {modes: [ephemeral]}", NULL, SESSION_EPHEMERAL},
		{"sessions: {modes: [persistent, ephemeral]}", "sessions: {modes: [ephemeral]}",
	         SESSION_EPHEMERAL},
		{"sessions: {modes: [persistent]}", "sessions: {modes: [ephemeral]}", -1},
		{"sessions: {modes: []}", NULL, -1},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		f->session.mode = SESSION_WORKSPACE;
		f->session.mode_soft = true;
		use(f, rows[i].own, rows[i].chosen);
		if (rows[i].granted < 0) {
			expect_refused(ask_session(f), ERR_DENIED, "mode", "'workspace'");
			continue;
		}
		expect_allowed(ask_session(f));
		assert_int_equal(f->result.decision.mode, rows[i].granted);
		/* A word of the request is meant. */
		f->session.mode_soft = false;
		if (rows[i].granted == SESSION_EPHEMERAL)
			expect_refused(ask_session(f), ERR_DENIED, "mode", "'workspace'");
		else
			expect_allowed(ask_session(f));
	}
}

static void sessions_have_modes_and_spans(void **state)
{
	struct fixture *f = *state;
	const struct policy_decision *d = &f->result.decision;

	f->session.mode = SESSION_PERSISTENT;
	use(f, "sessions: {modes: [ephemeral]}", NULL);
	expect_refused(ask_session(f), ERR_DENIED, "mode",
	               "policy own: sessions.modes: sessions of mode 'persistent' are not allowed; "
	               "allowed: ephemeral");
	f->session.mode = SESSION_EPHEMERAL;
	expect_allowed(ask_session(f));
	use(f, "sessions: {modes: []}", NULL);
	expect_refused(ask_session(f), ERR_DENIED, "mode", "allowed: nothing");
	expect_allowed(ask(f)); /* executions are not sessions */

	use(f,
	    "sessions: {idle_timeout: {default: 60s, max: 120s}, lifetime: {default: 100s, max: "
	    "200s, on_exceed: refuse}}",
	    NULL);
	expect_allowed(ask_session(f));
	assert_int_equal(d->idle_us, 60 * SEC);
	assert_int_equal(d->lifetime_us, 100 * SEC);
	f->session.idle_timeout_us = 110 * SEC;
	expect_allowed(ask_session(f));
	assert_int_equal(d->idle_us, 100 * SEC);
	expect_rule(&d->grants[POLICY_IDLE].rule, POLICY_BY_POLICY, "own",
	            "sessions.lifetime.default");
	f->session.lifetime_us = 150 * SEC;
	expect_allowed(ask_session(f));
	assert_int_equal(d->idle_us, 110 * SEC);
	expect_rule(&d->grants[POLICY_LIFETIME].rule, POLICY_BY_REQUEST, "", "lifetime");
	f->session.lifetime_us = 201 * SEC;
	expect_refused(ask_session(f), ERR_DENIED, "lifetime", "201 is above the maximum of 200");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_mode_that_was_not_asked_for_is_the_most_that_is_allowed, setup, teardown),
		cmocka_unit_test_setup_teardown(sessions_have_modes_and_spans, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
