/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "core/run/run_record_internal.h"
#include "core/session/memory_guard.h"
#include "core/session/session_internal.h"
#include "core/tenant/tenant.h"
#include "session_agent.h"

#define LOW (1000 * MIB)

static uint64_t available;

static uint64_t measure(void)
{
	return available;
}

struct guarded {
	struct fixture *f;
	struct memory_guard *guard;
};

static int set_up(void **state)
{
	struct guarded *t = NEW(struct guarded);
	struct fixture *f;

	assert_int_equal(setup(state), 0);
	f = t->f = *state;
	session_service_free(f->service);
	run_service_free(f->runs);
	f->tenants = tenants_new(f->config);
	for (int i = 0; i < 2; i++) {
		const struct tenant_settings settings = {.name = i ? "modest" : "greedy"};

		assert_non_null(tenants_add(f->tenants, &settings, &f->err));
	}
	make_services(f, 0);
	t->guard = memory_guard_new(&(struct memory_guard_config){
		.loop = f->loop, .sessions = f->service, .low_bytes = LOW, .measure = measure});
	available = 0;
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	struct guarded *t = *state;
	struct tenants *tenants = t->f->tenants;

	memory_guard_free(t->guard);
	end_fixture(t->f, NULL);
	tenants_free(tenants);
	free(t);
	return 0;
}

static void use(struct box *box, uint64_t mib, uint64_t cache_mib)
{
	struct box_counters c;

	memset(&c, 0xff, sizeof(c));
	c.memory_bytes = mib * MIB;
	c.cache_bytes = cache_mib * MIB;
	fake_set_counters(box, &c);
}

static struct session *session_of(struct guarded *t, const char *tenant, uint64_t mib)
{
	struct session *session;

	t->f->request.tenant = tenant;
	session = ready(t->f);
	use(box_of(t->f, session), mib, 0);
	return session;
}

static void check(struct guarded *t, uint64_t available_mib)
{
	available = available_mib * MIB;
	memory_guard_check(t->guard);
	settle(t->f);
}

static void largest_box_of_the_tenant_over_its_share_is_ended(void **state)
{
	struct guarded *t = *state;
	struct session *first = session_of(t, "greedy", 200);
	struct session *large = session_of(t, "greedy", 300);
	struct session *other = session_of(t, "modest", 250);

	check(t, 1000);
	expect_state(large, SESSION_READY); /* not short */
	check(t, 900);
	expect_state(large, SESSION_FAILED);
	assert_string_equal(info_of(large).reason, OUTCOME_HOST_MEMORY_REASON);
	expect_state(first, SESSION_READY);
	expect_state(other, SESSION_READY);
	/* Now the other tenant uses more. */
	check(t, 900);
	expect_state(other, SESSION_FAILED);
	expect_state(first, SESSION_READY);
}

static void tenant_within_its_share_loses_nothing(void **state)
{
	struct guarded *t = *state;
	struct session *a = session_of(t, "greedy", 64), *b = session_of(t, "modest", 60);

	for (int i = 0; i < 3; i++)
		check(t, 0); /* something else uses the memory */
	expect_state(a, SESSION_READY);
	expect_state(b, SESSION_READY);
}

static void pages_of_files_do_not_count(void **state)
{
	struct guarded *t = *state;
	struct session *reader = session_of(t, "greedy", 0), *b = session_of(t, "modest", 200);

	use(box_of(t->f, reader), 900, 850);
	check(t, 0);
	expect_state(reader, SESSION_READY);
	expect_state(b, SESSION_FAILED);
}

static void unknown_memory_ends_nothing(void **state)
{
	struct guarded *t = *state;
	struct session *session = session_of(t, "greedy", 0);
	struct box_counters unknown;

	memset(&unknown, 0xff, sizeof(unknown));
	fake_set_counters(box_of(t->f, session), &unknown);
	check(t, 0);
	expect_state(session, SESSION_READY);
}

static void expect_ended_for_memory(const struct run_record *e)
{
	expect_status(e, OUTCOME_FAILED);
	assert_int_equal(e->outcome.limit, OUTCOME_LIMIT_HOST_MEMORY);
	assert_int_equal(e->outcome.signal, SIGKILL);
	assert_string_equal(e->outcome.denials[0].what, "host_memory");
}

static void what_runs_in_the_box_reports_why_it_ended(void **state)
{
	struct guarded *t = *state;
	struct session *session = session_of(t, "greedy", 0);
	struct run_record *e = execute(t->f, session);
	struct box *box = box_of(t->f, session);

	(void)begin(box);
	use(box, 500, 0);
	check(t, 0);
	expect_state(session, SESSION_FAILED);
	expect_ended_for_memory(e);
}

static void execution_in_its_own_box_is_ended_too(void **state)
{
	struct guarded *t = *state;
	struct session *session;
	struct run_record *e;
	struct box *box;

	t->f->request.tenant = "greedy";
	t->f->request.mode = SESSION_EPHEMERAL;
	session = create(t->f);
	assert_non_null(session);
	e = execute(t->f, session);
	box = fake_box_at(t->f->driver, 0);
	assert_non_null(box);
	fake_ready(box);
	(void)begin(box);
	use(box, 500, 0);
	check(t, 0);
	expect_ended_for_memory(e);
	expect_state(session, SESSION_READY); /* the next run gets another box */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(largest_box_of_the_tenant_over_its_share_is_ended),
		TEST(tenant_within_its_share_loses_nothing),
		TEST(pages_of_files_do_not_count),
		TEST(unknown_memory_ends_nothing),
		TEST(what_runs_in_the_box_reports_why_it_ended),
		TEST(execution_in_its_own_box_is_ended_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
