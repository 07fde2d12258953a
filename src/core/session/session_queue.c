/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/language/runners.h"
#include "core/request/run_request.h"
#include "core/run/run_record_internal.h"
#include "core/run/run_row.h"
#include "core/session/session_beside.h"
#include "core/session/session_build.h"
#include "core/session/session_internal.h"
#include "core/session/session_pause.h"
#include "core/session/session_reattach.h"

/*
 * Theory of operation. A session has a queue of runs, one of which is current. A persistent
 * session's run goes into the session's box; so does an ephemeral one's if a file operation has
 * made a box. Otherwise an ephemeral session's run gets a fresh box. session_pump starts the next
 * one; on_ended calls it again.
 *
 * Bytes of queued runs are bounded, in total and per tenant. So is input that programs have not
 * read, as of their latest input.
 */

static int check_room(const struct session *session, size_t bytes, struct error *err)
{
	const struct tenant *t = session->account;

	if (session->service->queued_bytes + bytes <= SESSION_QUEUED_BYTES_MAX &&
	    (!t || t->queued_bytes + bytes <= SESSION_QUEUED_BYTES_OF_TENANT))
		return 0;
	return error_later(
		err, ERR_BUSY, ERROR_SOON_US,
		"executions hold too many bytes of code, input and files: wait until some have "
		"ended or have read their input");
}

static void add_bytes(struct run *run, size_t bytes)
{
	struct session *session = run->owner;

	run->bytes += bytes;
	session->service->queued_bytes += bytes;
	if (session->account)
		session->account->queued_bytes += bytes;
}

static void drop_bytes(struct run *run, size_t bytes)
{
	struct session *session = run->owner;

	run->bytes -= bytes;
	session->service->queued_bytes -= bytes;
	if (session->account)
		session->account->queued_bytes -= bytes;
}

static void count_unread(struct run *run, size_t bytes)
{
	drop_bytes(run, run->unread_bytes);
	run->unread_bytes = bytes;
	add_bytes(run, bytes);
}

void session_queue_detach(struct run *run)
{
	struct session *session = run->owner;

	if (run->beside) {
		session_beside_remove(run);
	} else if (session->current == run) {
		session->current = NULL;
	} else {
		list_remove(&run->queue_node);
		session->queued--;
	}
	drop_bytes(run, run->bytes);
	session->service->runs--;
	run->owner = NULL;
}

static void on_ended(struct run *run)
{
	struct session *session = run->owner;
	bool spent =
		session->mode == SESSION_EPHEMERAL && run->place == &session_place && run->id != 0;
	bool beside = run->beside;

	session_queue_detach(run);
	session_touch(session);
	if (spent)
		session_box_spent(session);
	if (session->resuming && !beside)
		session_resumed(session); /* nothing needs a place */
	session_pump(session);
	if (session->service->draining)
		session_service_check_drained(session->service);
}

static void end_queued(struct run *run, bool lost, const struct error *failure)
{
	if (failure) {
		run_fail(run, failure);
		return;
	}
	if (run->state != RUN_GATHERING) { /* else the program had ended */
		run->evidence.lost = lost;
		run->evidence.cancelled |= !lost;
		/* The variables were in the box; queued runs had none. */
		run->reset = lost && run->runner;
	}
	run->answer_later = true; /* its box may go now */
	run_conclude(run);
}

void session_queue_end(struct session *session, bool lost, const struct error *failure)
{
	cleanup_str_list char **beside = session_beside_ids(session);
	struct run *run;

	if (session->current)
		end_queued(session->current, lost, failure);
	LIST_FOREACH (run, &session->queue, struct run, queue_node)
		end_queued(run, lost, failure);
	for (char **id = beside; *id; id++)
		if ((run = session_beside_labelled(session, *id)))
			end_queued(run, lost, failure);
}

static void on_turn(void *ctx)
{
	struct run *run = ctx;
	struct session *session = run->owner;

	if (session->resuming)
		session_resumed(session);
	else
		run_launch(run);
}

static void on_begun(void *ctx, struct run_record *e attr_unused, const struct error *err)
{
	struct run *run = ctx;
	struct session *session = run->owner;

	run->held = false;
	if (err)
		run_fail(run, err);
	session_pump(session);
}

/* A fresh box does not survive a crash: persist the begin first, or the next daemon could run it
 * twice. Return: false: it failed, or on_begun follows. */
static bool persist_begin(struct run *run)
{
	struct error err = {0};
	int r = run_record_begin(run->record, on_begun, run, &err);

	run->held = r > 0;
	if (r < 0)
		run_fail(run, &err);
	return r == 0;
}

static bool names_same(const char *a, const char *b)
{
	size_t len = strcspn(a, "=");

	return len == strcspn(b, "=") && memcmp(a, b, len) == 0;
}

static bool is_named(char *const *env, const char *variable)
{
	for (; env && *env; env++)
		if (names_same(*env, variable))
			return true;
	return false;
}

/* The session's variables, overridden by the run's. Borrowed strings. */
static char **merge_env(char *const *session, char *const *own)
{
	size_t most = str_list_count(session) + (own ? str_list_count(own) : 0);
	char **env = xcalloc(most + 1, sizeof(*env));
	size_t n = 0;

	for (; *session; session++)
		if (!is_named(own, *session))
			env[n++] = *session;
	for (; own && *own; own++)
		env[n++] = *own;
	return env;
}

/* With the session's present environment. */
static int decide_fresh(struct run *run, struct error *err)
{
	const struct session *session = run->owner;
	cleanup_free char **env = merge_env(session->env, run->request->env);
	/* One that was deleted is not missed. */
	cleanup_free char **secrets =
		policy_known_secrets(session->service->rules, session->tenant, session->secrets);
	struct exec_source code = run_code(run, NULL);
	struct run_request request = *run->request;
	struct policy_decision decision;

	request.code = (char *)code.code;
	request.code_len = code.len;
	request.env = env;
	request.tenant = session->tenant;
	request.secrets = secrets;
	request.in_session = false;
	if (policy_decide(session->service->rules, &session->stack, &request, &decision, err) < 0)
		return -1;
	policy_decision_done(&run->decision);
	run->decision = decision;
	return 0;
}

static void start_current(struct run *run)
{
	const struct session *session = run->owner;
	struct error err = {0};
	int waits = -1;

	if (session_mode_has_box(session->mode) || (session->box && !session->box_leaving)) {
		run->place = &session_place;
		run->box = session->box;
		run->entry.work = SCHEDULER_INSIDE;
		waits = run_enter(run, &err);
	} else if (decide_fresh(run, &err) == 0 && run_box_prepare(run, &err) == 0) {
		waits = run_enter(run, &err);
	}
	if (waits < 0)
		run_fail(run, &err);
	else if (waits == 0)
		run_launch(run);
}

/* NULL: none may start. */
static struct run *next_run(const struct session *session)
{
	struct run *run;

	if (session->current || session->reattaching || session->service->leaving ||
	    (session->state != SESSION_READY && session->state != SESSION_RUNNING))
		return NULL;
	/* File operations wait for the next box. */
	if ((session->box_leaving && session->files_count > 0) || session_awaits_box(session))
		return NULL;
	/* Bounds what the box remembers for the next daemon. */
	if (session->unacked >= BOX_UNACKED_MAX)
		return NULL;
	run = LIST_FIRST(&session->queue, struct run, queue_node);
	if (!run || run->held)
		return NULL;
	/* A run that is in the box gets its events now, whatever else is there. */
	return session->unknown_runs == 0 || run->reattached ? run : NULL;
}

void session_pump(struct session *session)
{
	struct run *run;

	if (session->pumping)
		return;
	session->pumping = true;
	while ((run = next_run(session))) {
		if (session->mode == SESSION_EPHEMERAL && !persist_begin(run))
			continue;
		list_remove(&run->queue_node);
		session->queued--;
		session->current = run;
		if (session->state == SESSION_READY)
			session_set_state(session, SESSION_RUNNING);
		if (run->reattached)
			session_reattach_run(run);
		else
			start_current(run);
	}
	session_beside_pump(session);
	session->pumping = false;
	if (!session->current && session->state == SESSION_RUNNING)
		session_set_state(session, SESSION_READY);
}

void session_queue_put_back(struct session *session)
{
	struct run *run = TAKE_PTR(session->current);

	run_queue(run);
	session->queued++;
	/* Before the first; before the head if the list is empty. */
	list_append(session->queue.next, &run->queue_node);
}

static void on_cancel(void *ctx)
{
	struct run *run = ctx;

	if (run->state != RUN_GATHERING) /* else the program had ended */
		run_abort(run);
}

/* A program that reads nothing must not fill the daemon's memory. */
static int take_input(struct run *run, const void *data, size_t len, bool end, struct error *err)
{
	size_t unread = run_unread(run);

	count_unread(run, unread);
	if (len > 0 && unread > 0 && unread + len > SESSION_UNREAD_MAX)
		return error_later(
			err, ERR_BUSY, ERROR_SOON_US,
			"the program has not read %zu bytes of its input: send more when it has, "
			"at most %u bytes ahead",
			unread, SESSION_UNREAD_MAX);
	if (check_room(run->owner, len, err) < 0)
		return -1;
	count_unread(run, unread + len);
	if (run->repeatable)
		add_bytes(run, len); /* the request has it, too */
	return run_stdin(run, data, len, end, err);
}

/* Early input is kept, and counts like the request's. */
static int add_input(struct run *run, const void *data, size_t len, bool end, struct error *err)
{
	if (run->state >= RUN_RUNNING)
		return take_input(run, data, len, end, err);
	if (check_room(run->owner, len, err) < 0 || run_stdin(run, data, len, end, err) < 0)
		return -1;
	add_bytes(run, len);
	return 0;
}

#define END_OF_INPUT "\x04" /* ^D, typed at a terminal */

static int on_input(void *ctx, const void *data, size_t len, bool end, struct error *err)
{
	struct run *run = ctx;

	if (!run->terminal || !end)
		return add_input(run, data, len, end, err);
	if (len > 0 && add_input(run, data, len, false, err) < 0)
		return -1;
	if (add_input(run, END_OF_INPUT, 1, false, err) == 0)
		return 0;
	err->retry_s = 0; /* a repetition would send the rest twice */
	return -1;
}

static int check_state(const struct session *session, const struct run_request *request,
                       struct error *err)
{
	const struct session_service *s = session->service;

	if (s->draining)
		return error_stopping(err);
	if (session_is_over(session))
		return error_set(err, ERR_CONFLICT, 0, "session %s is %s and cannot run programs",
		                 session->id, session_state_name(session->state));
	if (request->background)
		return session_beside_check(session, request, err);
	if (session->queued >= s->config.config->session_queue)
		return error_later(err, ERR_BUSY, ERROR_SOON_US,
		                   "%zu executions of session %s are waiting", session->queued,
		                   session->id);
	return 0;
}

/* The session's limits and, by default, its language. Borrowed. */
static struct run_request effective_request(const struct session *session,
                                            const struct run_request *request)
{
	const struct box_limits *limits = &session->spec.limits;
	struct run_request r = *request;

	if (!r.language)
		r.language = session->language;
	r.memory_bytes = limits->memory_bytes;
	r.disk_bytes = limits->workspace_bytes;
	r.cpu_millicores = limits->cpu_millicores;
	r.max_processes = limits->pids;
	r.engine = session->spec.engine[0] ? (char *)(uintptr_t)session->spec.engine : NULL;
	r.network_asked = true;
	r.network = session->spec.network;
	r.network_allow = session->network_allow;
	r.mcp = session->mcp;
	r.template = session->template;
	r.in_session = true;
	if (r.background)
		r.left_us = session_beside_left(session);
	return r;
}

static size_t bytes_of(const struct run_request *request)
{
	size_t bytes = request->code_len + request->stdin_len +
	               (request->ask ? strlen(request->ask) : 0) +
	               (request->name_ask ? strlen(request->name_ask) : 0);

	for (size_t i = 0; i < request->files_count; i++)
		bytes += request->files[i].len;
	return bytes;
}

static struct run_record *add_record(struct session *session, const struct run_request *request,
                                     const struct policy_decision *decision)
{
	const struct store *store = session->service->config.store;
	/* Whether the begin is written separately. A run whose acceptance was not promised is never
	 * restarted; one that begins once written is written as begun. A box that outlives the
	 * daemon remembers it. */
	bool waits = session->mode == SESSION_EPHEMERAL && request->durable &&
	             (session->current || session->queued > 0);
	const struct run_record_new what = {.tenant = session->tenant,
	                                    .session_id = session->id,
	                                    .request_id = request->request_id,
	                                    .key_id = request->key_id,
	                                    .language = decision->runner->name,
	                                    .code = request->code,
	                                    .code_len = request->code_len,
	                                    .exact = session->spec.keep,
	                                    .waits = waits,
	                                    .timeout_us = decision->timeout_us,
	                                    .receipt = request->receipt,
	                                    .session_ms = session->created_ms,
	                                    .request = store ? run_request_to_json(request) : NULL};

	return run_records_add(session->service->config.executions, &what);
}

static struct run *enqueue(struct session *session, struct run_record *record,
                           struct run_request *request, struct policy_decision *decision)
{
	struct run *run = run_new(session->service->config.runs, record, decision);
	size_t bytes = bytes_of(request);

	record->receipt = request->receipt; /* also one of an earlier daemon */
	run->owner = session;
	run->on_ended = on_ended;
	run->place = session_mode_has_box(session->mode) ? &session_place : &run_place_fresh;
	run->tenant = session->account;
	tenant_hold(run->tenant);
	run->queued = true;
	run->entry.on_turn = on_turn;
	run->entry.queue = session->account ? &session->account->queue : NULL;
	run->entry.patient = true; /* one per session, and sessions are bounded */
	/* The record has the code. */
	request->code = NULL;
	request->code_len = 0;
	run->request = run_request_copy(request);
	run->request_owned = true;
	record->control = &session_run_control;
	if (request->background) {
		session_beside_add(session, run);
	} else {
		list_append(&session->queue, &run->queue_node);
		session->queued++;
	}
	session->service->runs++;
	add_bytes(run, bytes);
	run_record_set_control(record, on_cancel, request->stdin_open ? on_input : NULL, run);
	return run;
}

int session_queue_restore(struct session *session, struct run_record *record,
                          const struct run_request *request, struct error *err)
{
	struct run_request r = effective_request(session, request);
	struct policy_decision decision;

	r.code = record->code;
	r.code_len = record->code_len;
	if (r.background)
		r.timeout_us = 0; /* it was decided, and a policy may refuse it by now */
	if (policy_decide(session->service->rules, &session->stack, &r, &decision, err) < 0)
		return -1;
	if (r.background)
		decision.timeout_us = record->timeout_us;
	/* Accepted before the restart. */
	(void)!tenant_take_queued(session->account, session->service->scheduler, NULL);
	enqueue(session, record, &r, &decision)->restored = true;
	return 0;
}

/* The record could not be persisted: undo the acceptance. */
static void withdraw(struct run *run, const struct error *err)
{
	struct session *session = run->owner;
	struct run_record *record = run->record;

	session_queue_detach(run);
	session->executions--;
	run_drop(run);
	run_record_withdraw(record, err);
	session_pump(session);
	session_service_check_drained(session->service);
}

static void on_stored(void *ctx, struct run_record *e attr_unused, const struct error *err)
{
	struct run *run = ctx;

	run->held = false;
	if (err)
		withdraw(run, err);
	else
		session_pump(run->owner);
}

int session_execute(struct session *session, const struct run_request *request,
                    struct run_record **ret_execution, struct error *err)
{
	struct session_service *s = session->service;
	struct run_request r = effective_request(session, request);
	struct policy_decision decision;
	struct run_record *record;
	struct run *run;

	if (check_state(session, &r, err) < 0 ||
	    policy_decide(s->rules, &session->stack, &r, &decision, err) < 0)
		return -1;
	if (check_room(session, bytes_of(&r), err) < 0 ||
	    tenant_take_queued(session->account, s->scheduler, err) < 0) {
		policy_decision_done(&decision);
		return -1;
	}
	record = add_record(session, &r, &decision);
	run = enqueue(session, record, &r, &decision);
	session->executions++;
	session_touch(session);
	if (request->durable && s->config.store) {
		if (run_row_write_now(record, err) < 0) {
			withdraw(run, err);
			if (err->code == ERR_BUSY)
				(void)error_retry(err, ERROR_SOON_US);
			return -1;
		}
		run->held = true;
		run_record_hold(record, on_stored, run);
	}
	*ret_execution = record;
	session_pump(session);
	return 0;
}
