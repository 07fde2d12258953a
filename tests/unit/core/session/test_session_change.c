/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/file.h"
#include "core/policy/policies.h"
#include "core/session/session_internal.h"
#include "session_agent.h"
#include <fcntl.h>

/* What an owner changes of a live session. */

static void notes_are_kept_as_they_are(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);

	assert_null(info_of(session).notes);
	session_set_notes(session, "{\"name\":\"a\"}");
	assert_string_equal(info_of(session).notes, "{\"name\":\"a\"}");
	session_set_notes(session, NULL);
	assert_null(info_of(session).notes);
}

static void environment_is_replaced_or_refused_whole(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	char *good[] = {(char *)"A=1", (char *)"B=2", NULL};
	char *bad[] = {(char *)"C=3", (char *)"=", NULL};

	assert_int_equal(session_set_env(session, good, &f->err), 0);
	assert_string_equal(info_of(session).env[1], "B=2");
	assert_null(info_of(session).env[2]);
	expect_refused(f, session_set_env(session, bad, &f->err), ERR_INVALID);
	assert_string_equal(info_of(session).env[0], "A=1");
	session_terminate(session, "test");
	expect_refused(f, session_set_env(session, good, &f->err), ERR_CONFLICT);
}

static void restart_of_an_idle_session_costs_its_variables(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e;
	uint32_t old;

	(void)run(f, session);
	old = runner_of(box, fake_exec_last(box)->id);
	assert_int_equal(session_restart(session, &f->err), 0);
	assert_int_equal(fake_exec_of(box, old)->signo, SIGKILL);
	/* Before the agent reports its death. */
	e = execute(f, session);
	assert_int_not_equal(runner_of(box, fake_exec_last(box)->id), old);
	done(box, begin(box), 0);
	expect_status(e, OUTCOME_SUCCESS);
	assert_true(record_of(e).session_reset);
	assert_false(record_of(run(f, session)).session_reset);
}

static void restart_cancels_what_runs_and_what_waits(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *first = execute(f, session), *second = execute(f, session), *third;
	uint32_t id = begin(box);

	assert_int_equal(session_restart(session, &f->err), 0);
	expect_status(second, OUTCOME_CANCELLED);
	third = execute(f, session);
	assert_int_equal(fake_exec_last(box)->id, id);
	die(box, id, true, SIGKILL);
	expect_status(first, OUTCOME_CANCELLED);
	assert_true(record_of(first).session_reset);
	done(box, begin(box), 0);
	expect_status(third, OUTCOME_SUCCESS);
	assert_false(record_of(third).session_reset);
	expect_state(session, SESSION_READY);
}

static void restart_wakes_a_paused_session(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct box *box = box_of(f, session);
	struct run_record *e;

	assert_int_equal(session_pause(session, &f->err), 0);
	assert_int_equal(session_restart(session, &f->err), 0);
	assert_false(fake_is_frozen(box));
	expect_state(session, SESSION_READY);
	e = execute(f, session);
	(void)begin(box);
	assert_int_equal(session_pause(session, &f->err), 0);
	assert_int_equal(session_restart(session, &f->err), 0);
	assert_false(fake_is_frozen(box));
	die(box, fake_exec_last(box)->id, true, SIGKILL);
	expect_status(e, OUTCOME_CANCELLED);
	expect_state(session, SESSION_READY);
}

static void restart_is_refused_where_there_is_nothing_to_restart(void **state)
{
	struct fixture *f = *state;
	struct session *session = create(f);

	expect_refused(f, session_restart(session, &f->err), ERR_CONFLICT);
	session_terminate(session, "test");
	expect_refused(f, session_restart(session, &f->err), ERR_CONFLICT);
	f->request.mode = SESSION_EPHEMERAL;
	expect_refused(f, session_restart(create(f), &f->err), ERR_CONFLICT);
}

static void put_policy(const char *path, const char *text)
{
	(void)unlink(path);
	assert_int_equal(file_create_at(AT_FDCWD, path, 0644, text, strlen(text)), 0);
}

/* @policies NULL: settings alone decide. */
static void serve_with(struct fixture *f, const struct policies *policies)
{
	session_service_free(f->service);
	run_service_free(f->runs);
	settle(f);
	f->policies = policies;
	make_services(f, 0);
}

/* Other secrets change rules. The network is for a change of policies, which also ends the session.
 */
static void other_secrets_take_no_network(void **state)
{
	char dir[] = "/tmp/millibox-change-XXXXXX";
	const struct policies_config config = {.dir = dir, .fallback = "default"};
	struct fixture *f = *state;
	struct policies *policies;
	cleanup_free char *path = NULL;
	struct session *session;

	assert_non_null(mkdtemp(dir));
	path = xasprintf("%s/default.yaml", dir);
	put_policy(path, "name: default\nnetwork: {mode: host}\n");
	policies = policies_load(&config, &f->err);
	assert_non_null(policies);
	f->driver->caps.networks = BOX_NETWORK_BIT(BOX_NETWORK_HOST);
	serve_with(f, policies);
	session = ready(f);
	assert_int_equal(info_of(session).network, BOX_NETWORK_HOST);
	str_list_free(session->secrets);
	session->secrets = str_list_copy((char *const[]){(char *)"token", NULL});
	put_policy(path, "name: default\n");
	assert_int_equal(policies_reload(policies, &f->err), 0);
	session_service_secrets_changed(f->service, session->tenant);
	assert_null(session->network_lost);
	expect_state(session, SESSION_READY);
	session_service_policies_changed(f->service);
	expect_state(session, SESSION_TERMINATED);
	assert_non_null(strstr(info_of(session).reason, "policy default: network.mode: "));
	serve_with(f, NULL);
	policies_free(policies);
	assert_int_equal(unlink(path) + rmdir(dir), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(notes_are_kept_as_they_are),
		TEST(environment_is_replaced_or_refused_whole),
		TEST(restart_of_an_idle_session_costs_its_variables),
		TEST(restart_cancels_what_runs_and_what_waits),
		TEST(restart_wakes_a_paused_session),
		TEST(restart_is_refused_where_there_is_nothing_to_restart),
		TEST(other_secrets_take_no_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
