/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/runtime.h"
#include "engine/zygote.h"

/*
 * Theory of operation. The plan gives the steps and their order; this file runs them. The engine
 * runs PREPARE, the child JOIN and BUILD. The child has a copy of the engine's memory and must not
 * allocate or log: it ends in exec, or with a struct error on the status socket. That socket is
 * close-on-exec: EOF without a message means that the agent runs.
 */

static int step_reserve(struct build *b, struct error *err attr_unused)
{
	assert(b->slot < BOXES_MAX);
	return 0;
}

static int step_describe(struct build *b, struct error *err)
{
	return b->host->runtime->describe(b, err);
}

static int step_enclose(struct build *b, struct error *err)
{
	return b->host->runtime->enclose(b, err);
}

static int step_launch(struct build *b, struct error *err)
{
	return b->host->runtime->launch(b, err);
}

static const step_fn step_fns[STEP_COUNT] = {
	[STEP_RESERVE] = step_reserve,
	[STEP_CGROUP_MAKE] = step_cgroup_make,
	[STEP_CGROUP_LIMIT] = step_cgroup_limit,
	[STEP_CHANNELS] = step_channels,
	[STEP_NET] = step_net,
	[STEP_EGRESS] = step_egress,
	[STEP_BRIDGE] = step_bridge,
	[STEP_GATEWAY] = step_gateway,
	[STEP_LAYERS] = step_layers,
	[STEP_PACKAGES] = step_packages,
	[STEP_CLONE] = step_clone,
	[STEP_INJECT] = step_inject,
	[STEP_DEATHSIG] = step_deathsig,
	[STEP_CGROUP_JOIN] = step_cgroup_join,
	[STEP_WAIT] = step_wait,
	[STEP_CGROUP_VERIFY] = step_cgroup_verify,
	[STEP_IDMAP] = step_idmap,
	[STEP_OOM_SCORE] = step_oom_score,
	[STEP_RELEASE] = step_release,
	[STEP_BECOME] = step_become,
	[STEP_SESSION] = step_session,
	[STEP_CGROUP_NS] = step_cgroup_ns,
	[STEP_TIME_NS] = step_time_ns,
	[STEP_NESTING] = step_nesting,
	[STEP_HOSTNAME] = step_hostname,
	[STEP_ROOT] = step_root,
	[STEP_WRITABLE] = step_writable,
	[STEP_RESOLVER] = step_resolver,
	[STEP_TERMINALS] = step_terminals,
	[STEP_LISTEN] = step_listen,
	[STEP_PROC] = step_proc,
	[STEP_MASKS] = step_masks,
	[STEP_PIVOT] = step_pivot,
	[STEP_RLIMITS] = step_rlimits,
	[STEP_DESCRIPTORS] = step_descriptors,
	[STEP_CAPS] = step_caps,
	[STEP_EXEC] = step_exec,
	[STEP_DESCRIBE] = step_describe,
	[STEP_ENCLOSE] = step_enclose,
	[STEP_LAUNCH] = step_launch,
};

int apply_phase(struct build *b, enum plan_phase phase, struct error *err)
{
	for (size_t i = 0; i < b->plan.count; i++) {
		enum plan_step step = b->plan.steps[i];

		if (plan_phase(step) == phase && step_fns[step](b, err) < 0)
			return error_wrap(err, "step %s", plan_step_name(step));
	}
	return 0;
}

void apply_child(struct build *b)
{
	struct error err = {0};

	/* These return only on failure. The send fails only if the engine is gone. */
	if (apply_phase(b, PLAN_JOIN, &err) < 0 || apply_phase(b, PLAN_BUILD, &err) < 0)
		(void)send(b->sync_box, &err, sizeof(err), MSG_NOSIGNAL);
	_exit(1);
}

void build_init(struct build *b, const struct host *host, struct netns_pool *nets,
                struct cgroup_pool *cgroup_pool)
{
	*b = (struct build){
		.host = host,
		.nets = nets,
		.cgroup_pool = cgroup_pool,
		.net = -1,
		.network = -1,
		.refusals = -1,
		.gateway = -1,
		.description = -1,
		.agent_host = -1,
		.agent_box = -1,
		.sync_host = -1,
		.sync_box = -1,
		.reattach_host = -1,
		.reattach_box = -1,
		.inject_box = -1,
		.inject_child = -1,
		.pidfd = -1,
	};
	groups_init(&b->groups);
}

void build_close(struct build *b)
{
	int *const fds[] = {&b->agent_host, &b->agent_box,    &b->sync_host,     &b->sync_box,
	                    &b->pidfd,      &b->net,          &b->reattach_host, &b->reattach_box,
	                    &b->inject_box, &b->inject_child, &b->network,       &b->gateway,
	                    &b->refusals,   &b->description};

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		*fds[i] = fd_close(*fds[i]);
	groups_close(&b->groups);
}
