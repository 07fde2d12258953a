/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "session_agent.h"

static struct session *create_as(struct fixture *f, const char *tenant)
{
	f->request.tenant = tenant;
	return create(f);
}

static void same_id_of_two_tenants_is_two_sessions(void **state)
{
	struct fixture *f = *state;
	struct session *a, *b;

	f->request.id = (char *)"mine";
	a = create_as(f, "alice");
	b = create_as(f, "bob");
	assert_ptr_not_equal(a, b);
	assert_ptr_equal(session_find(f->service, "alice", "mine"), a);
	assert_ptr_equal(session_find(f->service, "bob", "mine"), b);
	assert_string_equal(info_of(a).tenant, "alice");
	assert_null(session_find(f->service, TENANT_DEFAULT, "mine"));
	assert_null(session_find(f->service, "alice/mine", ""));
	f->request.tenant = "alice";
	expect_refused(f, try_create(f), ERR_CONFLICT);
}

static void nothing_of_another_tenant_is_listed(void **state)
{
	struct fixture *f = *state;
	struct session *a = create_as(f, "alice"), *b = create_as(f, "bob");
	struct session *c = create_as(f, "alice");

	assert_int_equal(session_count(f->service, "alice"), 2);
	assert_ptr_equal(session_at(f->service, "alice", 0), c);
	assert_ptr_equal(session_at(f->service, "alice", 1), a);
	assert_null(session_at(f->service, "alice", 2));
	assert_int_equal(session_count(f->service, "bob"), 1);
	assert_ptr_equal(session_at(f->service, "bob", 0), b);
	assert_int_equal(session_count(f->service, "carol"), 0);
	assert_null(session_at(f->service, "carol", 0));
}

static void executions_are_found_by_their_tenant_only(void **state)
{
	struct fixture *f = *state;
	struct session *a, *b;
	const char *id;
	struct run_record *e;

	f->request.id = (char *)"mine";
	f->request.mode = SESSION_EPHEMERAL;
	a = create_as(f, "alice");
	b = create_as(f, "bob");
	e = execute(f, a);
	id = record_of(e).id;
	assert_ptr_equal(run_records_find(f->executions, "alice", id), e);
	assert_null(run_records_find(f->executions, "bob", id));
	assert_int_equal(run_records_count_of(f->executions, "alice", "mine"), 1);
	assert_int_equal(run_records_count_of(f->executions, "bob", "mine"), 0);
	assert_null(run_records_of(f->executions, "bob", "mine", 0));
	session_delete(b);
	assert_ptr_equal(run_records_find(f->executions, "alice", id), e);
	assert_ptr_equal(session_find(f->service, "alice", "mine"), a);
}

static void agent_of_another_tenant_is_another_agent(void **state)
{
	struct fixture *f = *state;
	struct session *a;

	f->request.agent_id = (char *)"helper";
	f->request.tenant = "alice";
	a = ready(f);
	f->request.tenant = "bob";
	assert_ptr_not_equal(again(f, false), a);
	f->request.tenant = "alice";
	assert_ptr_equal(again(f, true), a);
}

/* Four ended sessions are kept: two per tenant if there are two. */
static void a_tenant_with_many_ended_sessions_loses_its_own(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 2; i++)
		session_terminate(create_as(f, "alice"), "over");
	settle(f);
	for (int i = 0; i < 10; i++) {
		session_terminate(create_as(f, "bob"), "over");
		settle(f);
	}
	assert_int_equal(session_count(f->service, "alice"), 2);
	assert_int_equal(session_count(f->service, "bob"), 2);
}

/* More tenants than kept sessions: a tenant without a share can still end one. */
static void a_zero_share_does_not_drop_the_session_that_just_ended(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		session_terminate(create_as(f, names[i]), "over");
		settle(f);
		assert_int_equal(session_count(f->service, names[i]), 1);
	}
	assert_int_equal(session_count(f->service, "a"), 0);
	assert_int_equal(session_count(f->service, "c"), 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(same_id_of_two_tenants_is_two_sessions),
		TEST(nothing_of_another_tenant_is_listed),
		TEST(executions_are_found_by_their_tenant_only),
		TEST(agent_of_another_tenant_is_another_agent),
		TEST(a_tenant_with_many_ended_sessions_loses_its_own),
		TEST(a_zero_share_does_not_drop_the_session_that_just_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
