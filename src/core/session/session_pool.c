/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "core/config/config.h"
#include "core/observe/metrics.h"
#include "core/pool/pool.h"
#include "core/session/session_beside.h"
#include "core/session/session_internal.h"
#include "core/session/session_pause.h"
#include "core/session/session_row.h"
#include <signal.h>

/*
 * Theory of operation. A persistent session can take a box from a pool, with its language's runner
 * or empty, and is ready at once.
 *
 * Such a box may have died unnoticed. Until something was done in it, it is replaced by a new one,
 * and a run that had not begun is handed to that. A runner that dies before its first run loses no
 * variables; one started before the session's environment changed is not used.
 */

static struct pools *pools_of(const struct session *session)
{
	return run_service_pools(session->service->config.runs);
}

static void add_runner(struct session *session, const struct runner *language)
{
	struct session_runner *runner = NEW(struct session_runner);

	runner->language = language;
	runner->id = POOL_EXEC_ID;
	runner->unused = true;
	session->last_id = POOL_EXEC_ID;
	list_append(&session->runners, &runner->node);
}

bool session_take_box(struct session *session, const struct policy_decision *decision)
{
	const struct box_events events = session_box_events(session);
	struct session_service *s = session->service;
	struct pool_hit hit;

	if (s->config.config->pools_session_floor == 0 ||
	    !pools_take(pools_of(session), decision, session->tenant, &hit))
		return false;
	session_owner_name_box(session, box_id(hit.box));
	session->box = hit.box;
	session->pool_key = hit.key;
	session->unproven = true;
	if (hit.resident)
		add_runner(session, decision->runner);
	box_give(session->box, &events, session->spec.request_id);
	metrics_observe(s->config.metrics, METRIC_WARM_START,
	                (double)(clock_us() - session->created_us) / 1e6);
	session_set_state(session, SESSION_READY);
	return true;
}

void session_prove(struct session *session)
{
	if (!session->unproven)
		return;
	session->unproven = false;
	if (session->service)
		pools_confirm(pools_of(session));
}

static void forget_runners(struct session *session)
{
	struct session_runner *runner;

	LIST_FOREACH (runner, &session->runners, struct session_runner, node) {
		runner->id = 0;
		runner->unused = false;
	}
}

static bool can_replace(const struct session *session)
{
	const struct run *run = session->current;

	return session->unproven && session->files_count == 0 &&
	       (session->state == SESSION_READY || session->state == SESSION_RUNNING) &&
	       (!run || run->state <= RUN_STARTING) && session_beside_may_move(session);
}

bool session_replace_box(struct session *session)
{
	const struct box_events events = session_box_events(session);
	struct session_service *s = session->service;
	struct error err = {0};
	bool made;

	if (!can_replace(session))
		return false;
	session->unproven = false;
	pools_discard(pools_of(session), session->pool_key, TAKE_PTR(session->box));
	forget_runners(session);
	if (session->settling)
		session_on_frozen(session); /* the next one is not frozen, as a resume asked */
	session_owner_name_box(session, NULL);
	session_row_changed(session);
	made = box_create(s->config.driver, &session->spec, &events, &session->box, &err) == 0;
	if (session->current)
		session->current->box = session->box;
	if (!made) {
		s->boxes--;
		session_owner_drop_box(session);
		session_fail(session, &err);
	} else {
		if (session->current && session->current->state == RUN_STARTING)
			run_hand_over(session->current);
		session_beside_move(session);
	}
	return true;
}

int session_drop_unused(struct session *session, struct error *err)
{
	struct session_runner *runner;

	LIST_FOREACH (runner, &session->runners, struct session_runner, node) {
		if (!runner->unused || !runner->id)
			continue;
		if (box_signal(session->box, runner->id, SIGKILL, err) < 0)
			return -1;
		runner->id = 0;
		runner->unused = false;
	}
	return 0;
}

void session_service_prepare(struct session_service *s)
{
	struct session_request request = {.mode = SESSION_PERSISTENT};
	struct policy_decision decision;
	struct policy_stack stack;
	struct error err = {0};

	/* Skip if template or policy reject it. */
	if (s->config.config->pools_session_floor == 0 ||
	    session_find_template(s, &request, &err) < 0 ||
	    run_service_choose(s->config.runs, run_service_tenant(s->config.runs, NULL), NULL,
	                       &stack, &err) < 0 ||
	    policy_decide_session(s->rules, &stack, &request, &decision, &err) < 0)
		return;
	pools_keep(run_service_pools(s->config.runs), &decision,
	           s->config.config->pools_session_floor);
	policy_decision_done(&decision);
}
