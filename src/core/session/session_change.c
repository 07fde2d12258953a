/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_beside.h"
#include "core/session/session_internal.h"

#include "base/alloc.h"
#include "base/str.h"
#include "core/policy/policy.h"
#include "core/session/session_audit.h"
#include "core/session/session_row.h"
#include <signal.h>

/*
 * Theory of operation. Changes to a live session. The box keeps limits and files. When policies
 * change, its network follows them: rules and ranges are replaced, and a network that is not
 * allowed any more is taken. An interface can be removed from a box. The network of the host
 * cannot, so that session ends. What was taken does not come back.
 */

void session_set_notes(struct session *session, const char *text)
{
	free(session->notes);
	session->notes = text ? xstrdup(text) : NULL;
	session_row_changed(session);
}

int session_set_env(struct session *session, char *const *env, struct error *err)
{
	if (session_is_over(session))
		return session_refuse(session, "changed", err);
	if (policy_check_env(session->service->rules, &session->stack, env, err) < 0)
		return -1;
	str_list_free(session->env);
	session->env = str_list_copy(env);
	if (session_drop_unused(session, err) < 0)
		return -1;
	session_row_changed(session);
	return 0;
}

/* Queued runs must not start when those before them are cancelled. */
static void cancel_all(struct session *session)
{
	struct error err = {0};
	struct run *run;

	session->pumping = true;
	LIST_FOREACH (run, &session->queue, struct run, queue_node)
		(void)!run_record_cancel(run->record, &err);
	if (session->current)
		(void)!run_record_cancel(session->current->record, &err);
	session_beside_cancel(session);
	session->pumping = false;
	session_pump(session);
}

/* With all they started. The current or next run reports the loss of variables, once. */
static int kill_runners(struct session *session, struct error *err)
{
	const struct run *run = session->current;
	struct session_runner *runner;

	LIST_FOREACH (runner, &session->runners, struct session_runner, node) {
		if (!runner->id)
			continue;
		if (box_signal(session->box, runner->id, SIGKILL, err) < 0)
			return -1;
		runner->reset_due = !runner->unused && (!run || run->runner != runner);
		runner->unused = false;
		runner->id = 0;
	}
	return 0;
}

int session_restart(struct session *session, struct error *err)
{
	if (!session_mode_has_box(session->mode))
		return error_set(err, ERR_CONFLICT, 0,
		                 "session %s is ephemeral: every execution of it starts anew",
		                 session->id);
	if (session_is_over(session) || session->state == SESSION_CREATING)
		return session_refuse(session, "restarted", err);
	/* If frozen inside a run, the end of the run thaws it. */
	if (session->state == SESSION_PAUSED && !session->current &&
	    session_resume(session, err) < 0)
		return -1;
	cancel_all(session);
	if (session_is_over(session))
		return session_refuse(session, "restarted", err);
	session_touch(session);
	return kill_runners(session, err);
}

void session_note_lost_network(struct session *session, enum box_network lost, const char *reason)
{
	struct session_info info;

	session_log(session, LOG_LEVEL_WARN, "loses network %s: %s", box_network_name(lost),
	            reason);
	session_info(session, &info);
	session_audit_network(session->service->config.audit, &info, box_network_name(lost),
	                      reason);
}

static void lose_network(struct session *session, const struct error *why)
{
	enum box_network lost = session->spec.network;

	session_note_lost_network(session, lost, why->msg);
	if (lost == BOX_NETWORK_HOST) {
		session->network_lost = xstrdup(why->msg);
		return;
	}
	session->spec.network = BOX_NETWORK_NONE;
	session->spec.ranges = 0;
	if (session->box)
		box_disconnect(session->box);
	session_row_changed(session);
}

/* Of a session with network bridge or host. */
static void renew_network(struct session *session, const struct policy_stack *stack, bool is_gone,
                          const struct error *gone)
{
	const struct session_service *s = session->service;
	struct box_spec *spec = &session->spec;
	struct error err = {0};
	uint16_t ranges = 0;

	if (is_gone || policy_check_network(s->rules, stack, spec->network, &ranges, &err) < 0) {
		lose_network(session, is_gone ? gone : &err);
		return;
	}
	if (spec->network != BOX_NETWORK_BRIDGE || ranges == spec->ranges)
		return;
	spec->ranges = ranges;
	if (session->box)
		box_set_ranges(session->box, ranges);
}

/* What the policies of the session grant now; nothing if they are gone. */
static void renew_rules(struct session *session, const struct policy_stack *stack, bool is_gone)
{
	const struct session_service *s = session->service;
	const struct policy_box box = {session->tenant, session->network_allow, session->secrets};
	struct box_spec *spec = &session->spec;

	if (spec->network == BOX_NETWORK_ALLOWLIST) {
		box_rules_unref(spec->rules);
		spec->rules = is_gone ? box_rules_new(NULL, 0)
		                      : policy_network_rules(s->rules, stack, &box);
		if (session->box)
			box_set_rules(session->box, spec->rules);
	}
	if (spec->tools) {
		box_rules_unref(spec->tools);
		spec->tools = is_gone ? box_rules_new(NULL, 0)
		                      : policy_mcp_tools(s->rules, stack, session->mcp);
		if (session->box)
			box_set_tools(session->box, spec->tools);
	}
}

/* Only a caller that then ends sessions without a network may have it taken. */
static void renew(struct session *session, bool may_take_network)
{
	const struct session_service *s = session->service;
	const struct policy *chosen = session->stack.chosen;
	const struct box_spec *spec = &session->spec;
	struct policy_stack stack = {.own = NULL};
	struct error err = {0};
	bool is_gone;

	if (session_is_over(session) || session->network_lost ||
	    (spec->network == BOX_NETWORK_NONE && !spec->tools))
		return;
	is_gone = run_service_choose(s->config.runs, session->account, chosen ? chosen->name : NULL,
	                             &stack, &err) < 0;
	if (may_take_network && spec->network > BOX_NETWORK_ALLOWLIST)
		renew_network(session, &stack, is_gone, &err);
	renew_rules(session, &stack, is_gone);
}

static struct session *find_without_network(const struct session_service *s)
{
	struct session *session;

	LIST_FOREACH (session, &s->all, struct session, node)
		if (session->network_lost && !session_is_over(session))
			return session;
	return NULL;
}

void session_service_policies_changed(struct session_service *s)
{
	struct session *session;

	LIST_FOREACH (session, &s->all, struct session, node)
		renew(session, true);
	/* An end may forget other sessions, so the list is not walked meanwhile. */
	while ((session = find_without_network(s)))
		session_terminate(session, session->network_lost);
}

void session_service_on_policies(void *ctx)
{
	session_service_policies_changed(ctx);
}

void session_service_secrets_changed(struct session_service *s, const char *tenant)
{
	struct session *session;

	LIST_FOREACH (session, &s->all, struct session, node)
		if (*session->secrets && str_equal(session->tenant, tenant))
			renew(session, false);
}
