/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message of the daemon to the privileged program, and the texts of the kernel it reads at start.
 * What is accepted is accepted again, names one directory, and makes a plan that ends in exec.
 */
#include <string.h>

#include "engine/cgroup.h"
#include "engine/plan.h"
#include "engine/request.h"
#include "fuzz.h"

static void check_accepted(const struct engine_request *req)
{
	const struct plan_facts facts = {
		.cgroup = ENGINE_CGROUP_HYBRID,
		.cgroup_layers = LAYERS_ALL,
		.has_v1 = true,
		.has_time_ns = true,
		.has_images = true,
		.has_bridge = true,
		.host_network = req->flags & ENGINE_FLAG_HOST_NETWORK,
	};
	struct error err = {0};
	struct plan plan;
	char what[256];

	require(memchr(req->box_id, '\0', sizeof(req->box_id)));
	require(!strpbrk(req->box_id, "/."));
	require(req->seq != 0 && ((req->op > ENGINE_OP_NONE && req->op <= ENGINE_FREEZE) ||
	                          req->op == ENGINE_ADOPT || req->op == ENGINE_END ||
	                          req->op == ENGINE_CLAIM || req->op == ENGINE_REACH));
	if (req->op != ENGINE_CREATE)
		return;
	require(req->box_id[0] != '\0');
	require(plan_make(&facts, &req->limits, req->flags, &plan, &err) == 0);
	/* Some steps are only for some boxes. */
	require(plan.count <= STEP_COUNT);
	require(plan.count > 0 && plan.steps[plan.count - 1] == STEP_EXEC);
	for (size_t i = 0; i < plan.count; i++)
		plan_step_what(&plan, plan.steps[i], what, sizeof(what));
}

static void check_request(const uint8_t *data, size_t size)
{
	struct engine_request req, again;
	struct error err = {0};
	int r = request_check(data, size, &req, &err);

	require((r == 0) == !error_is_set(&err));
	if (r < 0) {
		require(!strpbrk(req.box_id, "/."));
		return;
	}
	require(memcmp(&req, data, sizeof(req)) == 0);
	require(request_check(&req, sizeof(req), &again, &err) == 0);
	check_accepted(&req);
}

/* What is accepted becomes a path below the runners and words of a command. */
static void check_zygote(const uint8_t *data, size_t size)
{
	struct engine_zygote req = {0};
	struct error err = {0};

	if (request_check_zygote(data, size, &req, &err) < 0) {
		require(error_is_set(&err));
		return;
	}
	require(memchr(req.command, 0, sizeof(req.command)) && req.command[0] != '.' &&
	        !strstr(req.command, "/."));
	require(memchr(req.modules, 0, sizeof(req.modules)) && !strpbrk(req.modules, "/=;\n"));
	require(req.zygote >= 1 && req.zygote <= ENGINE_ZYGOTES_MAX);
}

static void check_layout(const uint8_t *data, size_t size)
{
	struct cgroup_layout layout;
	char text[4096];
	uint32_t seen = 0;

	fuzz_text(data, size, text, sizeof(text));
	cgroup_layout_parse(text, text, &layout);
	require(layout.count <= CGROUP_KIND_COUNT);
	for (size_t i = 0; i < layout.count; i++) {
		require(layout.mounts[i].kinds != 0 && !(layout.mounts[i].kinds & seen));
		seen |= layout.mounts[i].kinds;
		require(strlen(layout.mounts[i].point) < CGROUP_PATH_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_request(data, size);
	check_zygote(data, size);
	check_layout(data, size);
	return 0;
}
