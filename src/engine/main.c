/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/log.h"
#include "base/sanitized.h"
#include "engine/arguments.h"
#include "engine/probe.h"
#include "engine/request.h"
#include "engine/startup.h"

/*
 * millibox-engine: the only privileged program. Three modes: serve a daemon (the default), print
 * the plan of a box, print what the host can do.
 */

#if SANITIZED
/*
 * The leak check at exit uses ptrace and hangs if another process traces the engine. The engine has
 * no environment in which to disable it.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

/* For a host with every feature: the output must not depend on the host. */
static int mode_plan(const struct arguments *args)
{
	const struct plan_facts facts = {
		.cgroup = ENGINE_CGROUP_V2,
		.cgroup_layers = LAYER_BIT(LAYER_CGROUP_MEMORY) | LAYER_BIT(LAYER_CGROUP_PIDS) |
	                         LAYER_BIT(LAYER_CGROUP_CPU) | LAYER_BIT(LAYER_CGROUP_IO),
		.has_time_ns = true,
		.has_images = true,
		.has_bridge = true,
		.host_network = args->flags & ENGINE_FLAG_HOST_NETWORK,
		.ids = ENGINE_IDS_RANGE,
	};
	struct error err = {0};
	struct plan plan;
	char what[256];

	if (request_limits_check(&args->limits, &err) < 0 ||
	    plan_make(&facts, &args->limits, args->flags, &plan, &err) < 0) {
		(void)fprintf(stderr, "millibox-engine: %s %s\n", err.field, err.msg);
		return 1;
	}
	for (size_t i = 0; i < plan.count; i++) {
		plan_step_what(&plan, plan.steps[i], what, sizeof(what));
		(void)printf("%zu\t%s\t%s\t%s\n", i + 1, plan_step_name(plan.steps[i]), what,
		             plan_step_why(plan.steps[i]));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct arguments_program program = {
		.name = "millibox-engine",
		.modes = "[--serve | --plan | --probe] ",
		.intro = "The privileged helper of milliboxd, which starts it.",
	};
	struct arguments args;
	int r = arguments_parse(&program, argc, argv, &args);

	log_setup("millibox-engine", (enum log_level)args.log_level,
	          (enum log_format)args.log_format);
	if (r >= 0)
		return r;
	if (args.mode == MODE_PLAN)
		return mode_plan(&args);
	if (args.mode == MODE_PROBE)
		return probe_print(&args.options);
	if (!arguments_can_serve(&args))
		return arguments_usage(&program, stderr);
	return startup_serve(&args.options);
}
