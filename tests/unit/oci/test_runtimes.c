/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "base/str.h"
#include "engine/plan.h"
#include "engine/request.h"
#include "oci/runtimes.h"

static const char *const names[] = {"bwrap", "runc", "crun", "runsc"};

static bool has_word(const char *const *argv, const char *wanted)
{
	for (; *argv; argv++)
		if (str_equal(*argv, wanted))
			return true;
	return false;
}

static void every_row_is_complete(void **state)
{
	char text[128];

	(void)state;
	runtime_names(text, sizeof(text));
	assert_string_equal(text, "bwrap, runc, crun, runsc");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct runtime_row *row = runtime_find(names[i]);
		const struct runtime *r = &row->runtime;

		assert_non_null(row);
		assert_int_equal(row->paths[0][0], '/');
		assert_true(row->package && row->says && row->describe);
		assert_true(r->open && r->build && r->check);
		assert_true(r->describe && r->enclose && r->launch);
		assert_true(r->pids_running <= r->pids_starting);
		/* None of them is made by a runtime. */
		assert_int_equal(r->features & (ENGINE_CAN_ZYGOTE | ENGINE_CAN_BRIDGE), 0);
	}
	assert_ptr_equal(runtime_find("gvisor"), runtime_find("runsc"));
	assert_null(runtime_find("native"));
	assert_null(runtime_find(""));
}

static void only_gvisor_stands_between_programs_and_the_kernel(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(runtime_find(names[i])->runtime.grade,
		                 str_equal(names[i], "runsc") ? ENGINE_GRADE_GVISOR
		                                              : ENGINE_GRADE_NAMESPACE);
}

static void commands_name_only_places_of_the_enclosure(void **state)
{
	const char *argv[RUNTIME_WORDS_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		runtime_command(runtime_find(names[i]), ENGINE_FLAGS_ALL, argv);
		assert_string_equal(argv[0], names[i]);
		for (size_t n = 1; argv[n]; n++)
			if (argv[n][0] == '/')
				assert_true(str_has_prefix(argv[n], "/run/") ||
				            str_equal(argv[n], SPEC_AGENT_PATH));
	}
}

static void words_depend_on_the_box(void **state)
{
	const char *argv[RUNTIME_WORDS_MAX];

	(void)state;
	runtime_command(runtime_find("bwrap"), 0, argv);
	assert_false(has_word(argv, "keep"));
	runtime_command(runtime_find("bwrap"), ENGINE_FLAG_KEEP, argv);
	assert_true(has_word(argv, "keep"));
	runtime_command(runtime_find("runsc"), 0, argv);
	assert_true(has_word(argv, "--network=none") && !has_word(argv, "--network=host"));
	runtime_command(runtime_find("runsc"), ENGINE_FLAG_EGRESS, argv);
	assert_true(has_word(argv, "--network=host") && !has_word(argv, "--network=none"));
}

/* The plan of a box of the runtime, or why there is none. */
static int plan_of(const char *name, uint32_t flags, struct plan *ret_plan, struct error *err)
{
	const struct runtime *r = &runtime_find(name)->runtime;
	const struct plan_facts facts = {
		.cgroup = ENGINE_CGROUP_V2,
		.has_images = true,
		.has_runtime = true,
		.nests = r->nests,
		.features = r->features,
	};
	struct engine_limits limits = request_limits_default();

	return plan_make(&facts, &limits, flags, ret_plan, err);
}

static void a_box_ends_with_the_runtime_instead_of_the_agent(void **state)
{
	struct error err = {0};
	struct plan plan;
	bool has_proc = false;

	(void)state;
	assert_int_equal(plan_of("runc", 0, &plan, &err), 0);
	assert_int_equal(plan.steps[plan.count - 1], STEP_LAUNCH);
	for (size_t i = 0; i < plan.count; i++)
		has_proc = has_proc || plan.steps[i] == STEP_PROC || plan.steps[i] == STEP_EXEC ||
		           plan.steps[i] == STEP_CAPS;
	assert_false(has_proc);
}

static void what_a_runtime_lacks_is_refused(void **state)
{
	static const struct {
		const char *name;
		uint32_t flag;
		bool works;
	} rows[] = {
		{"runc", ENGINE_FLAG_GATEWAY, true},       {"runc", ENGINE_FLAG_KEEP, true},
		{"runsc", ENGINE_FLAG_GATEWAY, false},     {"runsc", ENGINE_FLAG_KEEP, false},
		{"runsc", ENGINE_FLAG_EGRESS, true},       {"bwrap", ENGINE_FLAG_BRIDGE, false},
		{"crun", ENGINE_FLAG_HOST_NETWORK, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err = {0};
		struct plan plan;

		assert_int_equal(plan_of(rows[i].name, rows[i].flag, &plan, &err),
		                 rows[i].works ? 0 : -1);
		if (!rows[i].works)
			assert_int_equal(err.code, ERR_UNAVAILABLE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_complete),
		cmocka_unit_test(only_gvisor_stands_between_programs_and_the_kernel),
		cmocka_unit_test(commands_name_only_places_of_the_enclosure),
		cmocka_unit_test(words_depend_on_the_box),
		cmocka_unit_test(a_box_ends_with_the_runtime_instead_of_the_agent),
		cmocka_unit_test(what_a_runtime_lacks_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
