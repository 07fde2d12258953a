/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>

#include "core/session/session_row.h"
#include "store_fixture.h"

static struct session *make(struct rig *rig)
{
	static char a[] = "A=b", empty[] = "EMPTY=";
	static char *env[] = {a, empty, NULL};

	rig->f->request = (struct session_request){.tenant = "acme",
	                                           .key_id = "key-1",
	                                           .request_id = "req-1",
	                                           .id = (char *)"mine",
	                                           .agent_id = (char *)"agent",
	                                           .language = (char *)"demo",
	                                           .mode = SESSION_PERSISTENT,
	                                           .env = env,
	                                           .idle_timeout_us = 60 * USEC_PER_SEC,
	                                           .lifetime_us = 600 * USEC_PER_SEC};
	return create(rig->f);
}

/* As a later daemon reads it. */
static struct session *load(struct rig *rig, struct session_service *service)
{
	int before = rig->callbacks;
	struct error err = {0};

	assert_non_null(session_row_load(service, "acme", "mine", rig_on_done, rig, &err));
	rig_wait(rig, before + 1);
	return session_find(service, "acme", "mine");
}

static struct session_service *another(struct rig *rig)
{
	struct fixture *f = rig->f;

	return session_service_new(&(struct session_service_config){.config = f->config,
	                                                            .driver = f->driver,
	                                                            .runners = f->runners,
	                                                            .loop = f->loop,
	                                                            .runs = f->runs,
	                                                            .executions = f->executions,
	                                                            .store = rig->store});
}

static void expect_same_history(const struct session *a, const struct session *b)
{
	struct session_step one[SESSION_HISTORY_MAX], two[SESSION_HISTORY_MAX];
	size_t count = session_history(a, one);

	assert_int_equal(session_history(b, two), count);
	assert_true(count > 1);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(one[i].state, two[i].state);
		assert_int_equal(one[i].at_ms, two[i].at_ms);
	}
}

static void every_field_comes_back(void **state)
{
	struct rig *rig = *state;
	struct session *session = make(rig), *past;
	struct session_service *other = another(rig);
	struct session_info a, b;

	session_set_dependencies(session, "{\"requested_dependencies\":[]}");
	session_terminate(session, "for a test");
	settle(rig->f);
	rig_flush(rig);
	past = load(rig, other);
	assert_non_null(past);
	a = info_of(session);
	b = info_of(past);
	assert_string_equal(a.tenant, b.tenant);
	assert_string_equal(a.id, b.id);
	assert_string_equal(a.language, b.language);
	assert_string_equal(a.agent_id, b.agent_id);
	assert_string_equal(a.container_id, b.container_id);
	assert_string_equal(a.engine, b.engine);
	assert_string_equal(a.reason, b.reason);
	assert_string_equal(a.request_id, b.request_id);
	assert_string_equal(b.request_id, "req-1");
	assert_string_equal(a.key_id, b.key_id);
	assert_string_equal(a.dependencies, b.dependencies);
	assert_int_equal(a.state, b.state);
	assert_int_equal(a.mode, b.mode);
	assert_int_equal(a.network, b.network);
	assert_memory_equal(&a.limits, &b.limits, sizeof(a.limits));
	assert_int_equal(a.idle_timeout_us, b.idle_timeout_us);
	assert_int_equal(a.lifetime_us, b.lifetime_us);
	assert_int_equal(a.created_ms, b.created_ms);
	assert_int_equal(a.updated_ms, b.updated_ms);
	assert_int_equal(a.last_activity_ms, b.last_activity_ms);
	assert_int_equal(a.ended_ms, b.ended_ms);
	assert_int_equal(a.executions, b.executions);
	assert_null(a.env[0]); /* ended sessions keep none, here as there */
	assert_null(b.env[0]);
	expect_same_history(session, past);
	session_service_free(other);
}

static void waiters_are_answered_when_it_is_on_disk(void **state)
{
	struct rig *rig = *state;
	struct session *session = make(rig);
	struct error err = {0};

	assert_int_equal(session_when_kept(session, rig_on_done, rig, &err), 0);
	assert_int_equal(rig->callbacks, 0);
	rig_wait(rig, 1);
	assert_false(error_is_set(&rig->last));
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM sessions"), 1);
	/* Nothing has changed since: nothing to wait for. */
	assert_int_equal(session_when_kept(session, rig_on_done, rig, &err), 1);
	/* A later write includes an earlier one: both are answered. */
	session_set_dependencies(session, "1");
	assert_int_equal(session_when_kept(session, rig_on_done, rig, &err), 0);
	session_set_dependencies(session, "2");
	assert_int_equal(session_when_kept(session, rig_on_done, rig, &err), 0);
	rig_wait(rig, 3);
	assert_int_equal(
		rig_number(rig, "SELECT dependencies FROM sessions WHERE dependencies = 2"),
		0); /* a text; -1: no row */
}

static void waiters_get_the_reason_of_a_failure(void **state)
{
	struct rig *rig = *state;
	struct session *session = make(rig);
	struct error err = {0};
	int before;

	rig_break(rig, true);
	session_set_dependencies(session, "1");
	before = rig->callbacks;
	assert_int_equal(session_when_kept(session, rig_on_done, rig, &err), 0);
	rig_wait(rig, before + 1);
	assert_int_equal(rig->last.code, ERR_STORAGE);
	assert_true(store_is_failing(rig->store));
	/* It is retried. */
	rig_break(rig, false);
	rig_flush(rig);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM sessions WHERE dependencies = '1'"),
	                 1);
}

static void waiters_of_a_deleted_session_are_answered(void **state)
{
	struct rig *rig = *state;
	struct session *session = make(rig);
	struct error err = {0};

	assert_int_equal(session_when_kept(session, rig_on_done, rig, &err), 0);
	session_delete(session);
	rig_wait(rig, 1);
	assert_false(error_is_set(&rig->last));
}

static void a_deleted_one_goes_when_that_is_on_the_disk(void **state)
{
	struct rig *rig = *state;
	struct session *session = make(rig);
	struct error err = {0};

	/* Never written before: a write in progress must not bring it back. */
	assert_int_equal(session_delete_kept(session, rig_on_done, rig, &err), 0);
	assert_int_equal(session_delete_kept(session, rig_on_done, rig, &err), 0); /* two waiters */
	assert_non_null(session_find(rig->f->service, "acme", "mine"));
	rig_wait(rig, 2);
	assert_null(session_find(rig->f->service, "acme", "mine"));
	rig_flush(rig);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM sessions WHERE deleted = 1"), 1);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM sessions WHERE deleted = 0"), 0);
	assert_null(load(rig, rig->f->service));
}

static void a_failed_delete_changes_nothing(void **state)
{
	struct rig *rig = *state;
	struct session *session = make(rig);
	struct error err = {0};
	int before;

	rig_break(rig, true);
	before = rig->callbacks;
	assert_int_equal(session_delete_kept(session, rig_on_done, rig, &err), 0);
	rig_wait(rig, before + 1);
	assert_int_equal(rig->last.code, ERR_STORAGE);
	assert_ptr_equal(session_find(rig->f->service, "acme", "mine"), session);
	expect_state(session, SESSION_CREATING);
	rig_break(rig, false);
}

static void waiters_are_answered_at_the_end(void **state)
{
	struct rig *rig = *state;
	struct session *session = make(rig);
	struct error err = {0};

	assert_int_equal(session_when_kept(session, rig_on_done, rig, &err), 0);
	session_service_free(TAKE_PTR(rig->f->service));
	store_close(TAKE_PTR(rig->store));
	assert_int_equal(rig->callbacks, 1);
	assert_int_equal(rig->last.code, ERR_UNAVAILABLE);
	assert_int_equal(rig->last.sys, ECANCELED);
	run_records_set_store(rig->f->executions, NULL);
}

/* Of a template, with the other columns. */
static struct session *make_of_template(struct rig *rig)
{
	struct session *session = make(rig);

	rig_flush(rig);
	rig_sql(rig, "UPDATE sessions SET spec = json_set(spec, '$.made_of', '{}',"
	             " '$.made_of_ms', 1)");
	assert_int_equal(rig_number(rig, "SELECT length(env) FROM sessions"), 11);
	return session;
}

static void expect_made_of(struct rig *rig, int64_t count)
{
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM sessions WHERE length(env) > 0 AND"
	                                 " json_extract(spec, '$.made_of') IS NOT NULL"),
	                 count);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM sessions WHERE length(env) > 0 OR"
	                                 " json_extract(spec, '$.made_of') IS NOT NULL OR"
	                                 " json_extract(spec, '$.made_of_ms') IS NOT NULL"),
	                 count);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM sessions WHERE"
	                                 " json_extract(spec, '$.memory') > 0"),
	                 1);
}

static void template_data_is_cleared_when_a_session_ends(void **state)
{
	struct rig *rig = *state;
	struct session *session = make_of_template(rig);

	session_set_dependencies(session, "1");
	rig_flush(rig);
	expect_made_of(rig, 1); /* it is live */
	session_terminate(session, "for a test");
	settle(rig->f);
	rig_flush(rig);
	expect_made_of(rig, 0);
}

static void template_data_is_cleared_when_a_session_is_deleted(void **state)
{
	struct rig *rig = *state;
	struct session *session = make_of_template(rig);
	struct error err = {0};
	int before = rig->callbacks;

	assert_int_equal(session_delete_kept(session, rig_on_done, rig, &err), 0);
	rig_wait(rig, before + 1);
	rig_flush(rig);
	expect_made_of(rig, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(every_field_comes_back),
		RIG_TEST(waiters_are_answered_when_it_is_on_disk),
		RIG_TEST(waiters_get_the_reason_of_a_failure),
		RIG_TEST(waiters_of_a_deleted_session_are_answered),
		RIG_TEST(a_deleted_one_goes_when_that_is_on_the_disk),
		RIG_TEST(a_failed_delete_changes_nothing),
		RIG_TEST(waiters_are_answered_at_the_end),
		RIG_TEST(template_data_is_cleared_when_a_session_ends),
		RIG_TEST(template_data_is_cleared_when_a_session_is_deleted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
