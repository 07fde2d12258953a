/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "engine/plan.h"
#include "engine/request.h"

#define CONTROLLERS                                                                                \
	(LAYER_BIT(LAYER_CGROUP_MEMORY) | LAYER_BIT(LAYER_CGROUP_PIDS) |                           \
	 LAYER_BIT(LAYER_CGROUP_CPU) | LAYER_BIT(LAYER_CGROUP_IO))

static const struct plan_facts hybrid = {
	.cgroup = ENGINE_CGROUP_HYBRID,
	.cgroup_layers = CONTROLLERS,
	.has_v1 = true,
	.has_time_ns = true,
	.has_images = true,
	.has_bridge = true,
	.ids = ENGINE_IDS_RANGE,
};

static const struct plan_facts bare = {
	.cgroup = ENGINE_CGROUP_NONE,
	.ids = ENGINE_IDS_SINGLE,
};

static struct plan make(const struct plan_facts *facts, uint32_t flags)
{
	struct engine_limits limits = request_limits_default();
	struct error err = {0};
	struct plan plan;

	assert_int_equal(plan_make(facts, &limits, flags, &plan, &err), 0);
	return plan;
}

/* Index in the plan, or -1. */
static int place(const struct plan *plan, enum plan_step step)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->steps[i] == step)
			return (int)i;
	return -1;
}

/* In no native box. */
static const enum plan_step of_runtimes[] = {STEP_DESCRIBE, STEP_ENCLOSE, STEP_LAUNCH};

static bool is_of_runtimes(int step)
{
	for (size_t i = 0; i < ARRAY_SIZE(of_runtimes); i++)
		if ((int)of_runtimes[i] == step)
			return true;
	return false;
}

static void a_host_with_everything_does_every_step_once(void **state)
{
	struct plan plan =
		make(&hybrid, ENGINE_FLAG_IMAGE | ENGINE_FLAG_INJECT | ENGINE_FLAG_EGRESS |
	                              ENGINE_FLAG_GATEWAY | ENGINE_FLAG_PACKAGES |
	                              ENGINE_FLAG_BRIDGE | ENGINE_FLAG_KEEP);

	(void)state;
	assert_int_equal(plan.count, STEP_COUNT - (int)ARRAY_SIZE(of_runtimes));
	for (int step = 0; step < STEP_COUNT; step++)
		assert_true(place(&plan, (enum plan_step)step) >= 0 || is_of_runtimes(step));
}

/* Each pair is required by the threat model. */
static void steps_come_in_the_required_order(void **state)
{
	static const enum plan_step pairs[][2] = {
		{STEP_RESERVE, STEP_CGROUP_MAKE},
		{STEP_CGROUP_MAKE, STEP_CGROUP_LIMIT},
		{STEP_CGROUP_LIMIT, STEP_CLONE},
		{STEP_CHANNELS, STEP_CLONE},
		{STEP_GATEWAY, STEP_CLONE},
		{STEP_WRITABLE, STEP_LISTEN},
		{STEP_ROOT, STEP_TERMINALS},
		{STEP_TERMINALS, STEP_PIVOT},
		{STEP_LISTEN, STEP_CAPS},
		{STEP_CLONE, STEP_DEATHSIG},
		{STEP_DEATHSIG, STEP_WAIT},
		{STEP_CGROUP_JOIN, STEP_WAIT},
		{STEP_CGROUP_JOIN, STEP_CGROUP_VERIFY},
		{STEP_CGROUP_VERIFY, STEP_WAIT},
		{STEP_IDMAP, STEP_RELEASE},
		{STEP_OOM_SCORE, STEP_RELEASE},
		{STEP_RELEASE, STEP_BECOME},
		{STEP_CGROUP_JOIN, STEP_CGROUP_NS},
		{STEP_NESTING, STEP_PIVOT},
		{STEP_TIME_NS, STEP_PIVOT},
		{STEP_ROOT, STEP_WRITABLE},
		{STEP_ROOT, STEP_PROC},
		{STEP_PROC, STEP_MASKS},
		{STEP_MASKS, STEP_PIVOT},
		{STEP_PIVOT, STEP_DESCRIPTORS},
		{STEP_PIVOT, STEP_CAPS},
		{STEP_NET, STEP_CLONE},
		{STEP_NET, STEP_BRIDGE},
		{STEP_BRIDGE, STEP_CLONE},
		{STEP_ROOT, STEP_RESOLVER},
		{STEP_RESOLVER, STEP_PIVOT},
		{STEP_DESCRIPTORS, STEP_EXEC},
		{STEP_CAPS, STEP_EXEC},
	};
	struct plan plan =
		make(&hybrid, ENGINE_FLAG_GATEWAY | ENGINE_FLAG_BRIDGE | ENGINE_FLAG_KEEP);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		assert_true(place(&plan, pairs[i][0]) < place(&plan, pairs[i][1]));
}

static void phases_follow_each_other_and_exec_is_last(void **state)
{
	const struct plan_facts *const all[] = {&hybrid, &bare};

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(all); n++) {
		struct plan plan = make(all[n], 0);

		for (size_t i = 1; i < plan.count; i++)
			assert_true(plan_phase(plan.steps[i - 1]) <= plan_phase(plan.steps[i]));
		assert_int_equal(plan.steps[plan.count - 1], STEP_EXEC);
		assert_int_equal(plan_phase(STEP_WAIT), PLAN_JOIN);
		assert_int_equal(plan_phase(STEP_RELEASE), PLAN_PREPARE);
	}
}

static void missing_host_features_are_neither_planned_nor_claimed(void **state)
{
	struct plan plan = make(&bare, 0);

	(void)state;
	assert_int_equal(place(&plan, STEP_CGROUP_MAKE), -1);
	assert_int_equal(place(&plan, STEP_CGROUP_LIMIT), -1);
	assert_int_equal(place(&plan, STEP_CGROUP_JOIN), -1);
	assert_int_equal(place(&plan, STEP_CGROUP_VERIFY), -1);
	assert_int_equal(place(&plan, STEP_TIME_NS), -1);
	assert_int_equal(plan.layers & CONTROLLERS, 0);
	assert_int_equal(plan.layers & LAYER_BIT(LAYER_TIME), 0);
	assert_int_equal(plan.layers & LAYER_BIT(LAYER_UID_RANGE), 0);
	/* Layers that do not depend on the host are always present. */
	assert_true(plan.layers & LAYER_BIT(LAYER_USER));
	assert_true(plan.layers & LAYER_BIT(LAYER_MNT));
	assert_true(plan.layers & LAYER_BIT(LAYER_CGROUP_NS));
}

static void a_full_host_and_the_agent_give_every_layer(void **state)
{
	struct plan plan = make(&hybrid, 0);

	(void)state;
	assert_int_equal(plan.layers & plan_agent_layers(1), 0);
	assert_int_equal(plan.layers | plan_agent_layers(1), LAYERS_ALL);
	assert_int_equal(plan.layers | plan_agent_layers(0),
	                 LAYERS_ALL & ~LAYER_BIT(LAYER_LANDLOCK));
}

/* Neither of two engines makes boxes of the other's kind. */
static void the_network_of_the_host_is_for_all_boxes_of_an_engine_or_none(void **state)
{
	const struct engine_limits limits = request_limits_default();
	struct plan_facts facts = hybrid;
	struct plan plan, usual = make(&hybrid, 0);
	struct error err = {0};

	(void)state;
	facts.has_bridge = false;
	facts.host_network = true;
	plan = make(&facts, ENGINE_FLAG_HOST_NETWORK);
	assert_int_equal(place(&plan, STEP_NET), -1);
	assert_true(place(&plan, STEP_RESOLVER) >= 0);
	assert_int_equal(plan.count, usual.count);
	assert_int_equal(plan.layers, usual.layers & ~LAYER_BIT(LAYER_NET));

	assert_int_equal(plan_make(&facts, &limits, 0, &plan, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	error_clear(&err);
	assert_int_equal(plan_make(&hybrid, &limits, ENGINE_FLAG_HOST_NETWORK, &plan, &err), -1);
	assert_non_null(strstr(err.msg, "host_network.enabled"));
}

static void only_usable_controllers_count(void **state)
{
	struct plan_facts facts = hybrid;
	struct plan plan;

	(void)state;
	facts.cgroup_layers = LAYER_BIT(LAYER_CGROUP_PIDS);
	plan = make(&facts, 0);
	assert_int_equal(plan.layers & CONTROLLERS, LAYER_BIT(LAYER_CGROUP_PIDS));
}

static void a_required_controller_that_is_missing_refuses_the_box(void **state)
{
	static const enum wire_layer controllers[] = {LAYER_CGROUP_MEMORY, LAYER_CGROUP_PIDS,
	                                              LAYER_CGROUP_CPU};
	struct engine_limits limits = request_limits_default();
	struct plan plan;

	(void)state;
	(void)make(&hybrid, ENGINE_FLAG_REQUIRE_CGROUP);
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++) {
		struct plan_facts facts = hybrid;
		struct error err = {0};

		facts.cgroup_layers &= ~LAYER_BIT(controllers[i]);
		assert_int_equal(
			plan_make(&facts, &limits, ENGINE_FLAG_REQUIRE_CGROUP, &plan, &err), -1);
		assert_int_equal(err.code, ERR_UNAVAILABLE);
	}
}

/* Names and texts are tab-separated columns of --plan. */
static void every_step_has_a_name_a_doing_and_a_reason(void **state)
{
	struct plan plan = make(&hybrid, 0);
	char what[256];

	(void)state;
	for (int i = 0; i < STEP_COUNT; i++) {
		enum plan_step step = (enum plan_step)i;

		plan_step_what(&plan, step, what, sizeof(what));
		assert_true(strlen(plan_step_name(step)) > 0);
		assert_true(strlen(what) > 0 && strlen(what) < sizeof(what) - 1);
		assert_true(strlen(plan_step_why(step)) > 0);
		assert_null(strpbrk(plan_step_name(step), "\t\n "));
		assert_null(strpbrk(what, "\t\n"));
		assert_null(strpbrk(plan_step_why(step), "\t\n"));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(plan_step_name(step),
			                        plan_step_name((enum plan_step)j));
	}
}

static void the_description_names_the_limits(void **state)
{
	struct plan plan = make(&hybrid, 0);
	char what[256];

	(void)state;
	plan.limits.memory_bytes = 64ULL << 20;
	plan.limits.cpu_millicores = 500;
	plan.limits.pids = 33;
	plan_step_what(&plan, STEP_CGROUP_LIMIT, what, sizeof(what));
	assert_non_null(strstr(what, "memory 64Mi"));
	assert_non_null(strstr(what, "33 processes"));
	assert_non_null(strstr(what, "0.5 CPU"));
	assert_null(strstr(what, "missing"));
	plan_step_what(&plan, STEP_WRITABLE, what, sizeof(what));
	assert_non_null(strstr(what, "noexec"));
	plan.flags = ENGINE_FLAG_EXEC_TMP;
	plan_step_what(&plan, STEP_WRITABLE, what, sizeof(what));
	assert_null(strstr(what, "noexec"));
	plan.facts = bare;
	plan_step_what(&plan, STEP_CGROUP_LIMIT, what, sizeof(what));
	assert_non_null(strstr(what, "missing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_with_everything_does_every_step_once),
		cmocka_unit_test(steps_come_in_the_required_order),
		cmocka_unit_test(phases_follow_each_other_and_exec_is_last),
		cmocka_unit_test(missing_host_features_are_neither_planned_nor_claimed),
		cmocka_unit_test(a_full_host_and_the_agent_give_every_layer),
		cmocka_unit_test(the_network_of_the_host_is_for_all_boxes_of_an_engine_or_none),
		cmocka_unit_test(only_usable_controllers_count),
		cmocka_unit_test(a_required_controller_that_is_missing_refuses_the_box),
		cmocka_unit_test(every_step_has_a_name_a_doing_and_a_reason),
		cmocka_unit_test(the_description_names_the_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
