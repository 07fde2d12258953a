/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "core/run/run_internal.h"
#include "core/tenant/tenant.h"
#include "session_agent.h"

/* Sessions with tenants: "alice" has small quotas, "default" has none. */

static int setup_tenants(void **state)
{
	struct fixture *f;
	struct tenant_settings alice = {
		.name = "alice",
		.quotas = {[QUOTA_SESSIONS] = 2,
	                   [QUOTA_EXECUTIONS] = 1,
	                   [QUOTA_QUEUED] = 2,
	                   [QUOTA_MEMORY] = 200 << 20,
	                   [QUOTA_REQUESTS] = 5,
	                   [QUOTA_BURST] = 2},
	};

	if (setup(state) < 0)
		return -1;
	f = *state;
	session_service_free(f->service);
	run_service_free(f->runs);
	f->tenants = tenants_new(f->config);
	if (!tenants_add(f->tenants, &alice, &f->err))
		return -1;
	make_services(f, 0);
	f->request.tenant = "alice";
	f->request.memory_bytes = 64 << 20;
	f->request.disk_bytes = 4 << 20;
	return 0;
}

static struct tenant *alice(const struct fixture *f)
{
	return tenants_find(f->tenants, "alice");
}

/* Everything taken was returned. */
static int teardown_tenants(void **state)
{
	struct fixture *f = *state;
	struct tenants *tenants = f->tenants;
	const struct tenant *t = alice(f);

	session_service_drain(f->service, on_drained, f);
	settle(f);
	assert_int_equal(t->sessions, 0);
	assert_int_equal(t->queued, 0);
	assert_int_equal(t->queue.memory_bytes, 0);
	assert_int_equal(t->held_bytes, 0);
	assert_int_equal(t->queue.counts[SCHEDULER_RUNNING], 0);
	assert_int_equal(t->queue.counts[SCHEDULER_WAITING], 0);
	(void)teardown(state);
	assert_int_equal(t->holds, 0);
	tenants_free(tenants);
	return 0;
}

#define expect_quota(f, call, field_)                                                              \
	do {                                                                                       \
		error_clear(&(f)->err);                                                            \
		assert_int_equal(call, -1);                                                        \
		assert_string_equal(error_name((f)->err.code), "QUOTA");                           \
		assert_string_equal((f)->err.field, field_);                                       \
		error_clear(&(f)->err);                                                            \
	} while (0)

static void sessions_are_counted_while_they_live(void **state)
{
	struct fixture *f = *state;
	struct error lost = {.code = ERR_AGENT_LOST, .msg = "gone"};
	struct session *a = create(f), *b = create(f);

	expect_quota(f, try_create(f), "quota.sessions");
	assert_int_equal(session_count(f->service, "alice"), 2);
	f->request.tenant = TENANT_DEFAULT; /* has none */
	(void)create(f);
	f->request.tenant = "alice";
	session_terminate(a, "over");
	settle(f);
	(void)create(f);
	expect_quota(f, try_create(f), "quota.sessions");
	fake_lost(box_of(f, b), &lost);
	settle(f);
	(void)create(f);
}

static void memory_is_that_of_the_boxes(void **state)
{
	struct fixture *f = *state;
	struct session *session;

	f->request.memory_bytes = 150 << 20;
	session = create(f);
	expect_quota(f, try_create(f), "quota.memory");
	assert_int_equal(alice(f)->sessions, 1);
	assert_int_equal(alice(f)->queue.memory_bytes, 150 << 20);
	f->request.mode = SESSION_EPHEMERAL; /* has no box of its own */
	assert_int_equal(try_create(f), 0);
	f->request.mode = SESSION_PERSISTENT;
	session_delete(session);
	settle(f);
	assert_int_equal(alice(f)->queue.memory_bytes, 0);
	(void)create(f);
}

static void box_that_cannot_be_made_takes_nothing(void **state)
{
	struct fixture *f = *state;
	struct error refusal = {.code = ERR_BOX_FAILED, .msg = "no"};

	fake_refuse_next(f->driver, &refusal);
	assert_int_equal(try_create(f), -1);
	error_clear(&f->err);
	assert_int_equal(alice(f)->sessions, 0);
	assert_int_equal(alice(f)->held_bytes, 0);
	assert_int_equal(alice(f)->holds, 0);
}

static void waiting_executions_are_counted_until_they_begin(void **state)
{
	struct fixture *f = *state;
	struct session *session = ready(f);
	struct run_record *first = execute(f, session);

	assert_non_null(first);
	assert_int_equal(alice(f)->queued, 0);
	assert_int_equal(try_execute(f, session), 0);
	assert_int_equal(try_execute(f, session), 0);
	expect_quota(f, try_execute(f, session), "quota.queued");
	assert_int_equal(run_records_count_of(f->executions, "alice", info_of(session).id), 3);
	assert_int_equal(
		run_record_cancel(run_records_of(f->executions, "alice", info_of(session).id, 0),
	                          &f->err),
		0);
	assert_int_equal(alice(f)->queued, 1);
	assert_int_equal(try_execute(f, session), 0);
}

static void running_executions_of_a_tenant_are_bounded(void **state)
{
	struct fixture *f = *state; /* there are two places */
	struct session *a = ready(f), *b = ready(f), *c;

	assert_int_equal(try_execute(f, a), 0);
	assert_int_equal(try_execute(f, b), 0);
	assert_int_equal(alice(f)->queue.counts[SCHEDULER_RUNNING], 1);
	assert_int_equal(alice(f)->queue.counts[SCHEDULER_WAITING], 1);
	f->request.tenant = TENANT_DEFAULT;
	c = ready(f);
	assert_int_equal(try_execute(f, c), 0);
	assert_int_equal(running(f), 2);
	session_terminate(a, "over");
	assert_int_equal(alice(f)->queue.counts[SCHEDULER_RUNNING], 1);
	assert_int_equal(alice(f)->queue.counts[SCHEDULER_WAITING], 0);
}

static void requests_come_from_a_bucket(void **state)
{
	struct fixture *f = *state;
	uint64_t wait = 0, now = 50 * USEC_PER_SEC;
	struct tenant *t = alice(f);

	assert_int_equal(tenant_take_request(t, now, &wait, &f->err), 0);
	assert_int_equal(tenant_take_request(t, now, &wait, &f->err), 0);
	expect_quota(f, tenant_take_request(t, now, &wait, &f->err), "quota.requests_per_second");
	assert_int_equal(wait, USEC_PER_SEC / 5);
	assert_int_equal(tenant_take_request(t, now + wait, &wait, &f->err), 0);
	t = tenants_find(f->tenants, TENANT_DEFAULT);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(tenant_take_request(t, now, &wait, &f->err), 0);
}

static void a_larger_quota_admits_waiting_runs(void **state)
{
	struct fixture *f = *state;
	struct session *a = ready(f), *b = ready(f);
	struct tenant_settings more = {.quotas = {[QUOTA_EXECUTIONS] = 2, [QUOTA_SESSIONS] = 2}};

	assert_int_equal(try_execute(f, a), 0);
	assert_int_equal(try_execute(f, b), 0);
	assert_int_equal(running(f), 1);
	tenants_set(f->tenants, alice(f), &more, &f->runs->scheduler);
	assert_int_equal(running(f), 2);
}

static void unset_quotas_come_from_the_settings(void **state)
{
	struct fixture *f = *state;
	struct tenant_settings s = {.name = "bob", .policy = "strict"};
	struct tenant *t;

	for (int i = 0; i < QUOTA_COUNT; i++)
		s.quotas[i] = QUOTA_UNSET;
	t = tenants_add(f->tenants, &s, &f->err);
	assert_non_null(t);
	assert_int_equal(t->limits[QUOTA_SESSIONS], f->config->quota_sessions);
	assert_int_equal(t->limits[QUOTA_MEMORY], f->config->quota_memory_bytes);
	assert_string_equal(t->policy, "strict");
	t = tenants_find(f->tenants, TENANT_DEFAULT);
	for (int i = 0; i < QUOTA_BURST; i++)
		assert_int_equal(t->limits[i], 0);
	assert_int_equal(tenants_count(f->tenants), 3);
	assert_ptr_equal(tenants_at(f->tenants, 0), t);
	assert_null(tenants_at(f->tenants, 3));
	assert_ptr_equal(tenants_next(f->tenants, t), tenants_at(f->tenants, 1));
	assert_null(tenants_next(f->tenants, tenants_at(f->tenants, 2)));
}

static void a_burst_follows_the_rate_unless_it_is_given(void **state)
{
	static const struct {
		uint64_t rate, burst, expected;
	} list[] = {
		{5, QUOTA_UNSET, 10}, {5, 0, 10}, {5, 7, 7}, {QUOTA_UNSET, QUOTA_UNSET, 400},
		{QUOTA_UNSET, 7, 7}, {600000, QUOTA_UNSET, 1000000},
	};
	struct fixture *f = *state;
	struct tenant_settings s = {.name = "bob"};
	struct tenant *t;

	for (int i = 0; i < QUOTA_COUNT; i++)
		s.quotas[i] = QUOTA_UNSET;
	t = tenants_add(f->tenants, &s, &f->err);
	assert_int_equal(f->config->quota_requests, 200);
	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		s.quotas[QUOTA_REQUESTS] = list[i].rate;
		s.quotas[QUOTA_BURST] = list[i].burst;
		tenants_set(f->tenants, t, &s, NULL);
		assert_int_equal(t->limits[QUOTA_BURST], list[i].expected);
	}
	/* The burst of the settings is for their rate. */
	((struct config *)(uintptr_t)f->config)->quota_burst = 50;
	s.quotas[QUOTA_REQUESTS] = s.quotas[QUOTA_BURST] = QUOTA_UNSET;
	tenants_set(f->tenants, t, &s, NULL);
	assert_int_equal(t->limits[QUOTA_BURST], 50);
	s.quotas[QUOTA_REQUESTS] = 5;
	tenants_set(f->tenants, t, &s, NULL);
	assert_int_equal(t->limits[QUOTA_BURST], 10);
}

static void a_tenant_in_use_is_not_deleted(void **state)
{
	struct fixture *f = *state;
	struct tenant_settings s = {.name = "alice"};
	struct session *session = create(f);

	expect_refused(f, tenants_remove(f->tenants, alice(f), &f->err), ERR_CONFLICT);
	session_terminate(session, "over");
	settle(f);
	expect_refused(f, tenants_remove(f->tenants, alice(f), &f->err), ERR_CONFLICT);
	session_delete(session);
	settle(f);
	assert_int_equal(tenants_remove(f->tenants, alice(f), &f->err), 0);
	assert_null(alice(f));
	expect_refused(
		f, tenants_remove(f->tenants, tenants_find(f->tenants, TENANT_DEFAULT), &f->err),
		ERR_CONFLICT);
	assert_non_null(tenants_add(f->tenants, &s, &f->err));
	assert_null(tenants_add(f->tenants, &s, &f->err));
	assert_int_equal(f->err.code, ERR_CONFLICT);
	error_clear(&f->err);
	s.name = "no/name";
	assert_null(tenants_add(f->tenants, &s, &f->err));
	assert_int_equal(f->err.code, ERR_INVALID);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_tenants, teardown_tenants)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sessions_are_counted_while_they_live),
		TEST(memory_is_that_of_the_boxes),
		TEST(box_that_cannot_be_made_takes_nothing),
		TEST(waiting_executions_are_counted_until_they_begin),
		TEST(running_executions_of_a_tenant_are_bounded),
		TEST(requests_come_from_a_bucket),
		TEST(a_larger_quota_admits_waiting_runs),
		TEST(unset_quotas_come_from_the_settings),
		TEST(a_burst_follows_the_rate_unless_it_is_given),
		TEST(a_tenant_in_use_is_not_deleted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
