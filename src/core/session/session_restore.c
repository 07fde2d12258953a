/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "core/request/run_request.h"
#include "core/run/run_record_internal.h"
#include "core/session/session_reattach.h"
#include "core/session/session_row.h"
#include "core/template/images.h"
#include "core/template/template_row.h"
#include "core/template/templates.h"
#include "db/db.h"
#include "driver/driver.h"

/*
 * Theory of operation. Once at startup, before the loop runs, restore what the store has as not
 * ended:
 *
 *   sessions    with all that was decided. One no longer allowed or possible fails with a reason.
 *   executions  into their sessions' queues, in order
 *   boxes       each session that keeps one reattaches to it. If it is gone the session fails and
 *               its runs have crashed. A box still being made, or whose agent ended with its daemon
 *               because it had no order yet, is remade, at once or later (session_remake_box).
 *
 * An ephemeral session's box does not survive: a run that may have begun in it is lost, because
 * nothing is run twice. One that certainly has not begun starts now.
 */

static void enter_tables(struct session_service *s, struct session *session)
{
	cleanup_free char *id = xstrdup(session->id);

	session_wake(session);
	session->account = run_service_tenant(s->config.runs, session->tenant);
	tenant_hold(session->account);
	session_owner_enter(session, id);
	(void)session_owner_take(session, NULL); /* accepted before the restart */
	list_append(&s->all, &session->node);
	s->count++;
}

/* The tenant's policy and, if different, the requested one. */
static int choose_policy(const struct session *session, struct policy_stack *ret_stack,
                         struct error *err)
{
	const struct run_service *runs = session->service->config.runs;
	const char *past = session->past_policy;

	if (run_service_choose(runs, session->account, NULL, ret_stack, err) < 0)
		return -1;
	if (!past || (ret_stack->own && str_equal(ret_stack->own->name, past)))
		return 0;
	return run_service_choose(runs, session->account, past, ret_stack, err);
}

static struct session_request request_of(const struct session *session)
{
	const struct box_limits *limits = &session->spec.limits;

	return (struct session_request){
		.tenant = session->tenant,
		.language = session->language,
		.mode = session->mode,
		.env = session->env,
		.network_allow = session->network_allow,
		.mcp = session->mcp,
		.idle_timeout_us = session->idle_us,
		.lifetime_us = session->lifetime_us,
		.memory_bytes = limits->memory_bytes,
		.disk_bytes = limits->workspace_bytes,
		.cpu_millicores = limits->cpu_millicores,
		.max_processes = limits->pids,
		/* Of a store that did not know engines: the default. */
		.engine = session->spec.engine[0] ? (char *)(uintptr_t)session->spec.engine : NULL,
		.template_id = session->past_template,
		/* It may have asked for less than the policy grants, now or then. */
		.network_asked = true,
		.network_most = true,
		.network = session->spec.network,
	};
}

/* Is @now what the session was made of? */
static bool is_unchanged(const struct session *session, const struct template *now)
{
	if (session->past_root && !str_equal(session->past_root, now->root))
		return false;
	return !session->past_spec || session->past_spec_ms == now->updated_ms;
}

/* It keeps the template of its creation. @request gets a reference. */
static int find_template(const struct session *session, struct session_request *request,
                         struct error *err)
{
	const struct image_record image = {.tenant = session->tenant,
	                                   .name = session->past_root ? session->past_root : "",
	                                   .bytes = session->past_image_bytes};
	struct templates_then then = {.image = &image, .updated_ms = session->past_spec_ms};
	struct template_spec spec = {0};
	const struct session_service *s = session->service;
	const char *id = session->past_template ? session->past_template : TEMPLATE_DEFAULT;
	const struct template *now =
		s->config.templates ? templates_find(s->config.templates, session->tenant, id)
				    : NULL;

	if (!now || is_unchanged(session, now)) {
		if (session_find_template(s, request, err) < 0)
			return -1;
		(void)template_ref(request->template);
		return 0;
	}
	if (session->past_spec) {
		template_row_read_spec(session->past_spec, &spec);
		then.spec = &spec;
	}
	request->template = templates_past(s->config.templates, now, &then);
	template_spec_done(&spec);
	if (!request->template->problem)
		return 0;
	(void)error_set(err, ERR_UNAVAILABLE, 0, "template '%s' as it was: %.160s", id,
	                request->template->problem);
	template_unref(TAKE_PTR(request->template));
	return -1;
}

/* A box cannot change networks: bridge can be removed, host ends the session. */
static void check_network(struct session *session, const struct policy_stack *stack)
{
	enum box_network network = session->spec.network;
	struct error err = {0};
	uint16_t ranges = 0;

	if (session_mode_has_box(session->mode) && network > BOX_NETWORK_ALLOWLIST &&
	    policy_check_network(session->service->rules, stack, network, &ranges, &err) < 0)
		session->network_lost = xstrdup(err.msg);
}

/* From its row and the present policies. */
static int decide_again(struct session *session, struct error *err)
{
	struct session_service *s = session->service;
	cleanup_free char **secrets =
		policy_known_secrets(s->rules, session->tenant, session->secrets);
	struct session_request request = request_of(session);
	struct box_spec spec = session->spec;
	struct policy_decision decision;
	struct policy_stack stack;

	request.secrets = secrets;
	if (find_template(session, &request, err) < 0)
		return -1;
	if (choose_policy(session, &stack, err) < 0) {
		template_unref(request.template);
		return -1;
	}
	check_network(session, &stack);
	if (session->network_lost)
		request.network = BOX_NETWORK_NONE;
	if (policy_decide_session(s->rules, &stack, &request, &decision, err) < 0) {
		template_unref(request.template);
		return -1;
	}
	box_rules_unref(session->spec.rules);
	box_rules_unref(session->spec.tools);
	session->spec = decision.spec;
	(void)box_rules_ref(session->spec.rules);
	(void)box_rules_ref(session->spec.tools);
	memcpy(session->spec.id, spec.id, sizeof(spec.id));
	(void)!str_copy(session->spec.tenant, sizeof(session->spec.tenant), session->tenant);
	session->spec.limits = spec.limits;
	session->spec.keep = session_mode_has_box(session->mode);
	session->stack = decision.stack;
	policy_stack_ref(&session->stack);
	policy_decision_done(&decision);
	if (session->network_lost) {
		session_note_lost_network(session, spec.network, session->network_lost);
		session_row_changed(session);
	}
	session->template = request.template; /* taken */
	session->image = image_ref(session->template ? session->template->image : NULL);
	session->packages = image_ref(session->template ? session->template->packages : NULL);
	if (session->template)
		templates_use(s->config.templates, session->template);
	free(TAKE_PTR(session->past_template));
	free(TAKE_PTR(session->past_policy));
	free(TAKE_PTR(session->past_spec));
	return 0;
}

static void restore_session(struct session_service *s, struct session *session)
{
	enum box_network network = session->spec.network;
	struct error err = {0};

	enter_tables(s, session);
	if (decide_again(session, &err) < 0) {
		log_warn("session=%s cannot go on: %s", session->id, err.msg);
		session_fail(session, &err);
	} else if (session->network_lost && network == BOX_NETWORK_HOST) {
		session_terminate(session, session->network_lost);
	}
	free(TAKE_PTR(session->network_lost));
}

static void restore_execution(struct session_service *s, const struct db_rows *rows, size_t row)
{
	const char *text = NULL;
	struct run_record *record = run_row_read_live(s->config.executions, rows, row, &text);
	struct run_request request = {0};
	struct outcome outcome = {0};
	struct run_record_info info;
	struct session *session;
	struct error err = {0};

	run_record_info(record, &info);
	session = session_find(s, info.tenant, info.session_id);
	if (!session || session_is_over(session) ||
	    run_request_from_json(text, &request, &err) < 0 ||
	    session_queue_restore(session, record, &request, &err) < 0) {
		if (err.code != ERR_NONE)
			log_warn("execution=%s cannot go on: %s", info.id, err.msg);
		outcome_judge(&(struct outcome_evidence){.lost = true}, &outcome);
		run_record_ended(record, &outcome, false);
	}
	run_request_done(&request);
}

static void lose_begun_of(struct list *runs)
{
	struct run *run;

	LIST_FOREACH (run, runs, struct run, queue_node) {
		const struct run_record *record = run->record;

		/* Queued by this daemon: it was in no box. */
		if (!run->restored || (record->state != RUN_RECORD_RUNNING && !record->begun))
			continue;
		run->evidence.lost = true;
		run_conclude(run);
	}
}

/* The box is gone, with the runs that may have begun in it. */
static void lose_begun(struct session *session)
{
	session->pumping = true; /* the lists are being walked */
	lose_begun_of(&session->queue);
	lose_begun_of(&session->beside);
	session->pumping = false;
}

static void open_ephemeral(struct session *session)
{
	lose_begun(session);
	if (session->state != SESSION_READY)
		session_set_state(session, SESSION_READY);
	session_arm(session);
	session_pump(session);
}

/* The old box was never known to be ready, so it held nothing; but a run may have begun in it. */
static int open_anew(struct session *session, struct error *err)
{
	lose_begun(session);
	/* A new id: the engine may still report the end of the old one. */
	session_owner_name_box(session, NULL);
	session_row_changed(session);
	return session_open(session->service, session, NULL, err);
}

bool session_remake_box(struct session *session)
{
	if (!session_is_new(session))
		return false;
	session->reattaching = false;
	session->box_leaving = true;
	box_destroy(session->box);
	return true;
}

void session_remade(struct session *session)
{
	struct error err = {0};

	session->making_us = clock_us();
	if (open_anew(session, &err) < 0) {
		session_owner_drop_box(session);
		session->box_leaving = false;
		session_fail(session, &err);
		return;
	}
	session_files_go_on(session);
}

static void open_kept(struct session *session)
{
	struct error err = {0};
	int r = session_reattach(session, &err);

	if (r < 0 && session->state == SESSION_CREATING && err.code == ERR_NOT_FOUND) {
		error_clear(&err);
		r = open_anew(session, &err);
	}
	if (r == 0) {
		session_arm(session);
		return;
	}
	log_warn("session=%s has lost its box: %s", session->id, err.msg);
	session_fail(session, &err);
}

struct session_saved {
	struct db_rows *sessions, *executions; /* owned */
};

void session_saved_free(struct session_saved *past)
{
	if (!past)
		return;
	db_rows_free(past->sessions);
	db_rows_free(past->executions);
	free(past);
}

int session_saved_read(struct store *store, struct session_saved **ret_past, struct error *err)
{
	struct session_saved *past = NEW(struct session_saved);

	if (session_row_live(store, &past->sessions, err) < 0 ||
	    run_row_live(store, &past->executions, err) < 0) {
		session_saved_free(past);
		return -1;
	}
	*ret_past = past;
	return 0;
}

void session_service_restore(struct session_service *s, const struct session_saved *past)
{
	const struct db_rows *sessions = past->sessions, *executions = past->executions;
	struct session *session;

	for (size_t i = 0; i < db_rows_count(sessions); i++)
		restore_session(s, session_row_read(s, sessions, i));
	for (size_t i = 0; i < db_rows_count(executions); i++)
		restore_execution(s, executions, i);
	LIST_FOREACH (session, &s->all, struct session, node) {
		if (session_is_over(session))
			continue;
		if (session_mode_has_box(session->mode))
			open_kept(session);
		else
			open_ephemeral(session);
	}
	if (db_rows_count(sessions) > 0)
		log_info("sessions of an earlier daemon: %zu, still alive: %zu",
		         db_rows_count(sessions), s->count - s->ended_count);
	driver_settle(s->config.driver);
}
