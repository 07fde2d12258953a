/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_internal.h"

#include "base/alloc.h"
#include "base/str.h"
#include "core/policy/policy.h"
#include "core/session/session_row.h"
#include <signal.h>

/* Theory of operation. Changes to a live session. The box keeps limits, network and files. */

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
	if (session->mode != SESSION_PERSISTENT)
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

/* Return: what the policies of the session grant now; nothing if they are gone. */
static struct box_rules *rules_now(const struct session *session)
{
	const struct session_service *s = session->service;
	const struct policy *chosen = session->stack.chosen;
	struct policy_stack stack = {.own = NULL};
	struct error err = {0};

	if (run_service_choose(s->config.runs, session->account, chosen ? chosen->name : NULL,
	                       &stack, &err) < 0)
		return box_rules_new(NULL, 0);
	return policy_network_rules(s->rules, &stack);
}

void session_service_policies_changed(struct session_service *s)
{
	struct session *session;

	LIST_FOREACH (session, &s->all, struct session, node) {
		struct box_spec *spec = &session->spec;

		if (spec->network != BOX_NETWORK_ALLOWLIST || session_is_over(session))
			continue;
		box_rules_unref(spec->rules);
		spec->rules = rules_now(session);
		if (session->box)
			box_set_rules(session->box, spec->rules);
	}
}
