/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pool/pool.h"

#include <string.h>

#include "base/alloc.h"
#include "core/language/runners.h"
#include "core/observe/metrics.h"
#include "core/tenant/principal.h"
#include "core/tenant/scheduler.h"
#include "driver/fake.h"
#include "io/loop.h"
#include "unit.h"

struct fixture {
	struct loop *loop;
	struct driver *driver;
	struct scheduler scheduler;
	struct pools *pools;
	struct policy_decision decision;
	struct runner runner;
	bool drained;
};

static void on_drained(void *ctx)
{
	((struct fixture *)ctx)->drained = true;
}

static char *argv_[] = {(char *)"/bin/runner", (char *)"-", NULL};
static char *env_[] = {(char *)"A=1", NULL};
static char *other_env[] = {(char *)"A=2", NULL};

static struct pools *make_pools(struct fixture *f, size_t max)
{
	return pools_new(&(struct pools_config){.loop = f->loop,
	                                        .driver = f->driver,
	                                        .scheduler = &f->scheduler,
	                                        .max = max,
	                                        .memory_max = 1 << 30,
	                                        .age_us = 3600 * 1000 * 1000ULL,
	                                        .idle_us = 3600 * 1000 * 1000ULL,
	                                        .cores = 2,
	                                        .on_drained = on_drained,
	                                        .ctx = f});
}

static int setup(void **state)
{
	struct fixture *f = NEW(struct fixture);

	f->loop = loop_new();
	f->driver = fake_driver_new(f->loop);
	scheduler_init(&f->scheduler, &(struct scheduler_config){.running_max = 4,
	                                                         .building_max = 4,
	                                                         .waiting_max = 4,
	                                                         .boxes_max = 8});
	f->runner = (struct runner){.name = (char *)"python", .report = true};
	f->decision = (struct policy_decision){
		.spec = {.limits = {.memory_bytes = 64 << 20,
	                            .workspace_bytes = 16 << 20,
	                            .tmp_bytes = 16 << 20,
	                            .shm_bytes = 16 << 20,
	                            .workspace_inodes = 1000,
	                            .tmp_inodes = 1000,
	                            .pids = 16,
	                            .cpu_millicores = 1000,
	                            .nofile = 64}},
		.runner = &f->runner,
		.prepare_argv = argv_,
		.env = env_,
	};
	f->pools = make_pools(f, 4);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	pools_free(f->pools);
	for (int i = 0; i < 5; i++)
		loop_run_once(f->loop, false);
	driver_free(f->driver);
	loop_free(f->loop);
	free(f);
	return 0;
}

static void wait_for_boxes(struct fixture *f, size_t count)
{
	for (int i = 0; i < 200 && fake_box_count(f->driver) < count; i++)
		loop_run_once(f->loop, true);
	assert_int_equal(fake_box_count(f->driver), count);
}

static void wait_for_destroyed(struct fixture *f, size_t left)
{
	for (int i = 0; i < 200 && fake_box_count(f->driver) > left; i++)
		loop_run_once(f->loop, true);
	assert_int_equal(fake_box_count(f->driver), left);
}

static struct pools_totals totals(struct fixture *f)
{
	struct pools_totals t;

	pools_totals(f->pools, &t);
	return t;
}

static void fill(struct fixture *f)
{
	pools_keep(f->pools, &f->decision, 2);
	wait_for_boxes(f, 2);
	for (size_t i = 0; i < 2; i++)
		fake_prepared(fake_box_at(f->driver, i), POOL_EXEC_ID);
	assert_int_equal(totals(f).ready, 2);
}

static void end_box(struct fixture *f, const struct pool_hit *hit)
{
	pools_discard(f->pools, hit->key, hit->box);
	for (int i = 0; i < 5; i++)
		loop_run_once(f->loop, false);
}

static void a_member_is_prepared_and_handed_out_once(void **state)
{
	struct fixture *f = *state;
	struct pool_hit hit;

	fill(f);
	assert_string_equal(fake_exec_of(fake_box_at(f->driver, 0), POOL_EXEC_ID)->argv[0],
	                    "/bin/runner");
	assert_true(pools_take(f->pools, &f->decision, TENANT_DEFAULT, &hit));
	assert_true(hit.prepared);
	assert_int_equal(totals(f).ready, 1);
	assert_int_equal(totals(f).hits, 1);
	end_box(f, &hit);
}

static void another_shape_is_a_miss(void **state)
{
	struct fixture *f = *state;
	struct policy_decision d = f->decision;
	struct pool_hit hit;

	fill(f);
	d.env = other_env;
	assert_false(pools_take(f->pools, &d, TENANT_DEFAULT, &hit));
	d = f->decision;
	d.spec.limits.memory_bytes *= 2;
	assert_false(pools_take(f->pools, &d, TENANT_DEFAULT, &hit));
	d = f->decision;
	d.spec.limits.nofile++; /* not part of the hash */
	assert_false(pools_take(f->pools, &d, TENANT_DEFAULT, &hit));
	d = f->decision;
	d.spec.network = BOX_NETWORK_HOST;
	assert_false(pools_take(f->pools, &d, TENANT_DEFAULT, &hit));
	d = f->decision;
	d.spec.keep = true;
	assert_false(pools_take(f->pools, &d, TENANT_DEFAULT, &hit));
	assert_int_equal(totals(f).ready, 2);
}

static void one_that_is_lost_is_not_handed_out(void **state)
{
	struct fixture *f = *state;
	struct box *first, *second;
	struct error gone = {0};
	struct error ended = {0};
	struct pool_hit hit;

	fill(f);
	first = fake_box_at(f->driver, 0);
	second = fake_box_at(f->driver, 1);
	(void)error_set(&gone, ERR_AGENT_LOST, 0, "gone");
	fake_lost(first, &gone);
	(void)error_set(&ended, ERR_BOX_FAILED, 0, "the runner ended");
	fake_exec_failed(second, POOL_EXEC_ID, &ended);
	assert_int_equal(totals(f).ready, 0);
	assert_false(pools_take(f->pools, &f->decision, TENANT_DEFAULT, &hit));
}

static void while_a_run_could_begin_one_is_made_at_a_time(void **state)
{
	struct fixture *f = *state;

	struct scheduler_entry entries[6] = {0};
	struct error err = {0};

	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		entries[i].work = SCHEDULER_FRESH;
		assert_true(scheduler_enter(&f->scheduler, &entries[i], 0, &err) >= 0);
	}
	assert_true(scheduler_is_congested(&f->scheduler));
	f->scheduler.counts[SCHEDULER_RUNNING] = 0; /* the cores are not the reason */
	pools_keep(f->pools, &f->decision, 2);
	for (int i = 0; i < 5; i++)
		loop_run_once(f->loop, true);
	assert_int_equal(fake_box_count(f->driver), 1);
	fake_prepared(fake_box_at(f->driver, 0), POOL_EXEC_ID);
	wait_for_boxes(f, 2);
}

/* Sessions that wait get their boxes first; boxes for executions are made meanwhile. */
static void while_sessions_wait_no_boxes_are_made_for_sessions(void **state)
{
	struct fixture *f = *state;
	struct policy_decision resident = f->decision;
	struct scheduler_entry entries[6] = {0};
	struct error err = {0};

	resident.resident = true;
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		entries[i].work = SCHEDULER_OPEN;
		entries[i].patient = true;
		assert_true(scheduler_enter(&f->scheduler, &entries[i], 0, &err) >= 0);
	}
	assert_true(scheduler_delays_boxes(&f->scheduler));
	pools_keep(f->pools, &resident, 1);
	pools_keep(f->pools, &f->decision, 1);
	for (int i = 0; i < 5; i++)
		loop_run_once(f->loop, true);
	assert_int_equal(fake_box_count(f->driver), 1);
	fake_prepared(fake_box_at(f->driver, 0), POOL_EXEC_ID);
	assert_int_equal(totals(f).ready, 1);
	for (size_t i = ARRAY_SIZE(entries); i-- > 0;)
		scheduler_out(&f->scheduler, &entries[i], 0);
	wait_for_boxes(f, 2);
}

static void while_all_cores_are_busy_one_is_made_at_a_time(void **state)
{
	struct fixture *f = *state;

	f->scheduler.counts[SCHEDULER_RUNNING] = 2;
	pools_keep(f->pools, &f->decision, 2);
	for (int i = 0; i < 5; i++)
		loop_run_once(f->loop, true);
	assert_int_equal(fake_box_count(f->driver), 1);
	fake_prepared(fake_box_at(f->driver, 0), POOL_EXEC_ID);
	wait_for_boxes(f, 2);
}

static void half_a_pool_waits_for_what_runs(void **state)
{
	struct fixture *f = *state;
	struct pool_hit hits[2];

	fill(f);
	f->scheduler.counts[SCHEDULER_RUNNING] = 1;
	assert_true(pools_take(f->pools, &f->decision, TENANT_DEFAULT, &hits[0]));
	for (int i = 0; i < 3; i++)
		loop_run_once(f->loop, true);
	/* The running one, and the remaining one. */
	assert_int_equal(fake_box_count(f->driver), 2);
	/* With an empty pool, refill however many run. */
	assert_true(pools_take(f->pools, &f->decision, TENANT_DEFAULT, &hits[1]));
	wait_for_boxes(f, 4);
	end_box(f, &hits[0]);
	end_box(f, &hits[1]);
}

static void half_a_pool_is_filled_when_nothing_runs(void **state)
{
	struct fixture *f = *state;
	struct pool_hit hit;

	fill(f);
	f->scheduler.counts[SCHEDULER_RUNNING] = 1;
	assert_true(pools_take(f->pools, &f->decision, TENANT_DEFAULT, &hit));
	for (int i = 0; i < 3; i++)
		loop_run_once(f->loop, true);
	f->scheduler.counts[SCHEDULER_RUNNING] = 0;
	wait_for_boxes(f, 3);
	end_box(f, &hit);
}

static void refilling_does_not_wait_for_long_runs(void **state)
{
	struct fixture *f = *state;
	struct pool_hit hit;

	fill(f);
	f->scheduler.counts[SCHEDULER_RUNNING] = 1;
	assert_true(pools_take(f->pools, &f->decision, TENANT_DEFAULT, &hit));
	wait_for_boxes(f, 3);
	end_box(f, &hit);
}

static size_t making(struct fixture *f, size_t index)
{
	struct pool_info info;

	assert_true(pools_at(f->pools, index, &info));
	return info.making;
}

/* A pool that lacks half waits for one that lacks all; equal ones take turns. */
static void the_emptiest_pool_is_filled_first(void **state)
{
	struct fixture *f = *state;
	struct policy_decision other = f->decision;

	other.env = other_env;
	pools_keep(f->pools, &f->decision, 2);
	pools_keep(f->pools, &other, 2);
	wait_for_boxes(f, 2);
	assert_int_equal(making(f, 0), 1);
	assert_int_equal(making(f, 1), 1);
}

static void a_pool_that_others_have_left_no_room_is_filled_first(void **state)
{
	struct fixture *f = *state;
	struct policy_decision other = f->decision;
	struct pool_info info;
	size_t i = 0;

	fill(f); /* two of four places */
	other.env = other_env;
	pools_keep(f->pools, &f->decision, 4);
	pools_keep(f->pools, &other, 1);
	wait_for_boxes(f, 4);
	while (pools_at(f->pools, i, &info) && info.floor != 1)
		i++;
	assert_int_equal(info.making, 1);
}

static void an_idle_pool_shrinks_to_its_floor(void **state)
{
	struct fixture *f = *state;
	struct pool_info info;

	fill(f);
	pools_keep(f->pools, &f->decision, 1);
	wait_for_destroyed(f, 1);
	assert_true(pools_at(f->pools, 0, &info));
	assert_int_equal(info.ready, 1);
	assert_int_equal(info.target, 1);
}

static void a_box_that_cannot_be_made_is_not_tried_without_end(void **state)
{
	struct fixture *f = *state;
	struct pool_info info;
	struct error err = {0};

	(void)error_set(&err, ERR_UNAVAILABLE, 0, "no");
	fake_refuse_next(f->driver, &err);
	pools_keep(f->pools, &f->decision, 2);
	loop_run_once(f->loop, false);
	assert_true(pools_at(f->pools, 0, &info));
	assert_int_equal(info.failures, 1);
	assert_int_equal(info.making, 0);
	wait_for_boxes(f, 2); /* a little later */
}

static void a_flush_ends_all_and_drops_the_floor(void **state)
{
	struct fixture *f = *state;
	struct pool_info info;

	fill(f);
	pools_flush(f->pools);
	assert_int_equal(totals(f).ready, 0);
	assert_true(pools_at(f->pools, 0, &info));
	assert_int_equal(info.floor, 0);
	for (int i = 0; i < 5; i++)
		loop_run_once(f->loop, false);
	assert_int_equal(fake_box_count(f->driver), 0);
}

static void a_drain_ends_with_the_last_box(void **state)
{
	struct fixture *f = *state;
	struct pool_hit hit;

	fill(f);
	pools_drain(f->pools);
	assert_false(f->drained);
	assert_int_equal(pools_count(f->pools), 2);
	for (int i = 0; i < 5; i++)
		loop_run_once(f->loop, false);
	assert_true(f->drained);
	assert_int_equal(pools_count(f->pools), 0);
	assert_false(pools_take(f->pools, &f->decision, TENANT_DEFAULT, &hit));
}

static void a_shape_must_be_requested_twice(void **state)
{
	struct fixture *f = *state;
	struct pool_info info;
	struct pool_hit hit;

	assert_false(pools_take(f->pools, &f->decision, TENANT_DEFAULT, &hit));
	assert_false(pools_at(f->pools, 0, &info));
	assert_false(pools_take(f->pools, &f->decision, TENANT_DEFAULT, &hit));
	assert_true(pools_at(f->pools, 0, &info));
	assert_int_equal(info.misses, 1);
	assert_int_equal(info.floor, 0);
}

static void one_tenant_does_not_take_all_places(void **state)
{
	struct fixture *f = *state;
	struct pool_info info;
	struct pool_hit hit;
	size_t count = 0;

	for (uint32_t i = 0; i < 100; i++) {
		struct policy_decision d = f->decision;

		d.spec.limits.pids = 100 + i;
		assert_false(pools_take(f->pools, &d, "greedy", &hit));
		assert_false(pools_take(f->pools, &d, "greedy", &hit));
	}
	while (pools_at(f->pools, count, &info))
		count++;
	assert_true(count > 0 && count <= 8);
	assert_false(pools_take(f->pools, &f->decision, "modest", &hit));
	assert_false(pools_take(f->pools, &f->decision, "modest", &hit));
	assert_true(pools_at(f->pools, count, &info));
}

static void request(struct fixture *f, const char *tenant, size_t count)
{
	struct pool_hit hit;

	for (size_t i = 0; i < count; i++)
		assert_false(pools_take(f->pools, &f->decision, tenant, &hit));
}

static void run_timers(struct fixture *f)
{
	for (int i = 0; i < 3; i++)
		loop_run_once(f->loop, true);
}

static void slow_boxes_of_one_tenant_do_not_delay_another(void **state)
{
	struct fixture *f = *state;

	pools_free(f->pools);
	f->pools = make_pools(f, 64);
	f->scheduler.counts[SCHEDULER_RUNNING] = 2; /* all cores are busy: one at a time */
	request(f, "greedy", 8);
	run_timers(f);
	assert_int_equal(fake_box_count(f->driver), 1);
	request(f, "modest", 8);
	wait_for_boxes(f, 12);
	request(f, "modest", 2);
	run_timers(f);
	assert_int_equal(fake_box_count(f->driver), 12); /* six of each */
	request(f, "third", 2);
	wait_for_boxes(f, 13); /* one more for a tenant that has none */
}

/* The default tenant has one of four, so the greedy one is over its share at two. */
static void last_members_are_for_tenants_below_their_share(void **state)
{
	struct fixture *f = *state;
	size_t made = 0;

	pools_keep(f->pools, &f->decision, 1);
	request(f, "greedy", 20);
	while (made < 3) {
		loop_run_once(f->loop, true);
		for (; made < fake_box_count(f->driver); made++)
			fake_prepared(fake_box_at(f->driver, made), POOL_EXEC_ID);
	}
	run_timers(f);
	assert_int_equal(fake_box_count(f->driver), 3);
	request(f, "modest", 2);
	wait_for_boxes(f, 4);
}

static void shapes_that_a_tenant_caused_go_with_its_templates(void **state)
{
	struct fixture *f = *state;
	struct policy_decision d = f->decision;
	struct pool_info info;
	struct pool_hit hit;

	fill(f);
	d.env = other_env;
	assert_false(pools_take(f->pools, &d, TENANT_DEFAULT, &hit));
	assert_false(pools_take(f->pools, &d, TENANT_DEFAULT, &hit));
	assert_true(pools_at(f->pools, 1, &info));
	pools_forget(f->pools, "another");
	assert_true(pools_at(f->pools, 1, &info));
	pools_forget(f->pools, TENANT_DEFAULT);
	assert_false(pools_at(f->pools, 1, &info));
	assert_int_equal(totals(f).ready, 2); /* the floor belongs to no tenant */
}

static void pools_serve_one_tenant(void **state)
{
	struct fixture *f = *state;
	struct pool_hit hit;

	fill(f);
	assert_false(pools_take(f->pools, &f->decision, "another", &hit));
	assert_int_equal(totals(f).ready, 2);
	assert_true(pools_take(f->pools, &f->decision, TENANT_DEFAULT, &hit));
	end_box(f, &hit);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_member_is_prepared_and_handed_out_once),
		TEST(another_shape_is_a_miss),
		TEST(one_that_is_lost_is_not_handed_out),
		TEST(while_a_run_could_begin_one_is_made_at_a_time),
		TEST(while_sessions_wait_no_boxes_are_made_for_sessions),
		TEST(while_all_cores_are_busy_one_is_made_at_a_time),
		TEST(half_a_pool_waits_for_what_runs),
		TEST(half_a_pool_is_filled_when_nothing_runs),
		TEST(refilling_does_not_wait_for_long_runs),
		TEST(the_emptiest_pool_is_filled_first),
		TEST(a_pool_that_others_have_left_no_room_is_filled_first),
		TEST(an_idle_pool_shrinks_to_its_floor),
		TEST(a_box_that_cannot_be_made_is_not_tried_without_end),
		TEST(a_flush_ends_all_and_drops_the_floor),
		TEST(a_drain_ends_with_the_last_box),
		TEST(a_shape_must_be_requested_twice),
		TEST(one_tenant_does_not_take_all_places),
		TEST(slow_boxes_of_one_tenant_do_not_delay_another),
		TEST(last_members_are_for_tenants_below_their_share),
		TEST(shapes_that_a_tenant_caused_go_with_its_templates),
		TEST(pools_serve_one_tenant),
	};

	return cmocka_run_group_tests_name("core/pool", tests, NULL, NULL);
}
