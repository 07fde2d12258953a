/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/run_record.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "core/request/run_request.h"
#include "core/run/run_record_internal.h"
#include "core/run/run_row.h"

/*
 * Theory of operation. Sessions bound pending and running records; the table bounds ended ones, in
 * the order in which they ended. A forgotten record leaves all tables at once; if watched, it is
 * freed once its watchers have END.
 *
 * Over the bounds, a tenant above an equal share loses its oldest: first the tenant whose run just
 * ended, then the largest. A tenant within its share loses nothing. The largest is cached while it
 * is over its share, so searches are rare.
 */

#define SUFFIX_LEN 8

#define KEY_LEN (TENANT_NAME_MAX + 1 + 64 + 1)

static struct run_record_owner *owner_of(const struct run_records *all, const char *tenant,
                                         const char *session_id)
{
	char key[KEY_LEN];

	/* No name contains a slash. A name too long gives the empty key, which is never used. */
	(void)!str_format(key, sizeof(key), "%s/%s", tenant, session_id);
	return map_get(all->owners, key);
}

/* As the newest record of its session. */
static void enter_owner(struct run_record *e)
{
	struct run_record_owner *owner = owner_of(e->all, e->tenant, e->session_id);

	if (!owner) {
		owner = NEW(struct run_record_owner);
		owner->key = xasprintf("%s/%s", e->tenant, e->session_id);
		list_init(&owner->executions);
		(void)!map_put(e->all->owners, owner->key, owner); /* looked up above */
	}
	list_append(&owner->executions, &e->node);
	owner->count++;
	e->owner = owner;
}

void run_record_free(struct run_record *e)
{
	struct error gone = {0};
	struct run_watch *w;

	if (e->all) {
		(void)error_set(&gone, ERR_EXECUTION_NOT_FOUND, 0, "the session was deleted");
		e->hold = NULL;
		run_record_was_stored(e, &gone); /* a caller may still wait for it */
		run_record_settle(e);
		run_record_stop_delivery(e);
		run_row_gone(e);
	}
	LIST_FOREACH (w, &e->watches, struct run_watch, node) {
		list_remove(&w->node);
		free(w);
	}
	list_remove(&e->ended_node);
	list_remove(&e->share_node);
	for (size_t i = 0; i < OUTPUT_COUNT; i++)
		buf_done(&e->output[i]);
	outcome_done(&e->outcome);
	free(e->pieces);
	free(e->session_id);
	free(e->request_id);
	free(e->key_id);
	free(e->language);
	free(e->cuts);
	free(e->code);
	free(e->request);
	free(e);
}

static void leave_share(struct run_record *e)
{
	struct run_records *all = e->all;
	struct run_record_share *share = TAKE_PTR(e->share);

	list_remove(&e->share_node);
	share->bytes -= e->bytes;
	if (--share->count > 0)
		return;
	if (all->largest == share)
		all->largest = NULL;
	(void)map_remove(all->shares, share->tenant);
	all->shares_count--;
	free(share);
}

/* Frees it if unwatched. */
static void forget_record(struct run_record *e)
{
	struct run_records *all = e->all; // NOLINT: one that was freed has left all lists
	struct run_record_owner *owner = TAKE_PTR(e->owner);

	list_remove(&e->node);
	(void)map_remove(all->by_id, e->id);
	if (--owner->count == 0) {
		(void)map_remove(all->owners, owner->key);
		free(owner->key);
		free(owner);
	}
	list_remove(&e->ended_node);
	all->ended_count--;
	all->ended_bytes -= e->bytes;
	leave_share(e);
	if (list_is_empty(&e->watches) && !e->delivering && !run_row_flush(e))
		run_record_free(e);
	else
		list_append(&all->forgotten, &e->ended_node);
}

static bool is_over_share(const struct run_records *all, const struct run_record_share *share)
{
	if (all->ended_count > all->max_count)
		return share->count > all->max_count / all->shares_count;
	return share->bytes > all->max_bytes / all->shares_count;
}

static struct run_record_share *find_largest(const struct run_records *all)
{
	bool by_count = all->ended_count > all->max_count;
	struct run_record_share *share, *most = NULL;
	size_t pos = 0;

	while ((share = map_next(all->shares, &pos, NULL)))
		if (!most || (by_count ? share->count > most->count : share->bytes > most->bytes))
			most = share;
	return most;
}

static struct run_record_share *choose_share(struct run_records *all, struct run_record_share *own)
{
	if (is_over_share(all, own))
		return own;
	if (!all->largest || !is_over_share(all, all->largest))
		all->largest = find_largest(all);
	return all->largest;
}

struct run_records *run_records_new(struct loop *loop, size_t max_count, size_t max_bytes)
{
	struct run_records *all = NEW(struct run_records);

	all->loop = loop;
	all->max_count = max_count;
	all->max_bytes = max_bytes;
	all->by_id = map_new();
	all->owners = map_new();
	all->shares = map_new();
	list_init(&all->ended);
	list_init(&all->forgotten);
	return all;
}

void run_records_set_metrics(struct run_records *all, struct metrics *metrics)
{
	all->metrics = metrics;
}

void run_records_set_audit(struct run_records *all, struct audit *audit)
{
	all->audit = audit;
}

void run_records_set_files(struct run_records *all,
                           bool (*fn)(void *ctx, const char *tenant, const char *session_id),
                           void *ctx)
{
	all->has_files = fn;
	all->files_ctx = ctx;
}

void run_records_free(struct run_records *all)
{
	struct run_record_owner *owner;
	struct run_record_share *share;
	struct run_record *e;
	size_t pos = 0;

	if (!all)
		return;
	while ((owner = map_next(all->owners, &pos, NULL))) {
		LIST_FOREACH (e, &owner->executions, struct run_record, node)
			run_record_free(e);
		free(owner->key);
		free(owner);
	}
	LIST_FOREACH (e, &all->forgotten, struct run_record, ended_node)
		run_record_free(e);
	pos = 0;
	while ((share = map_next(all->shares, &pos, NULL)))
		free(share);
	map_free(all->shares);
	map_free(all->owners);
	map_free(all->by_id);
	free(all);
}

static void make_id(struct run_record *e)
{
	char day[16];
	char suffix[SUFFIX_LEN + 1];

	clock_format_day(e->created_ms, day, sizeof(day));
	id_random(suffix, SUFFIX_LEN);
	(void)snprintf(e->id, sizeof(e->id), "exec_%s_%s", day, suffix);
}

struct run_record *run_record_new_blank(struct run_records *all)
{
	struct run_record *e = NEW(struct run_record);

	e->all = all;
	for (size_t i = 0; i < OUTPUT_COUNT; i++)
		buf_init(&e->output[i], RUN_RECORD_OUTPUT_MAX);
	list_init(&e->watches);
	list_init(&e->ended_node);
	list_init(&e->share_node);
	list_init(&e->node);
	list_init(&e->dirty.node);
	return e;
}

void run_records_set_store(struct run_records *all, struct store *store)
{
	all->store = store;
}

static struct run_record *new_record(struct run_records *all, const struct run_record_new *what)
{
	struct run_record *e = run_record_new_blank(all);

	e->created_ms = clock_real_ms();
	/* Tenant names are shorter. */
	(void)!str_copy(e->tenant, sizeof(e->tenant), what->tenant ? what->tenant : TENANT_DEFAULT);
	e->request_id = xstrdup(what->request_id ? what->request_id : "");
	e->key_id = what->key_id ? xstrdup(what->key_id) : NULL;
	e->language = xstrdup(what->language);
	e->timeout_us = what->timeout_us;
	e->receipt = what->receipt;
	return e;
}

struct run_record *run_record_new_unkept(const struct run_record_new *what,
                                         const struct audit *audit)
{
	struct run_record *e = new_record(NULL, what);

	make_id(e);
	if (audit || what->receipt == RECEIPT_SIGNED)
		run_report_hash(what->code, what->code_len, e->code_hash);
	return e;
}

struct run_record *run_records_add(struct run_records *all, const struct run_record_new *what)
{
	struct run_record *e = new_record(all, what);

	e->session_ms = what->session_ms;
	e->session_id = xstrdup(what->session_id);
	e->code = xmemdup0(what->code, what->code_len);
	e->code_len = what->code_len;
	e->exact = what->exact;
	e->begun = !what->waits;
	e->request = what->request;
	/* Only 41 random bits: the id may be taken. If only the store has it, the write fails. */
	do
		make_id(e);
	while (map_put(all->by_id, e->id, e) < 0);
	enter_owner(e);
	run_row_changed(e);
	return e;
}

void run_records_enter(struct run_records *all, struct run_record *e)
{
	if (map_put(all->by_id, e->id, e) < 0)
		abort(); /* unique in the store */
	enter_owner(e);
	if (e->state == RUN_RECORD_RUNNING)
		run_record_add_event(e, RUN_EVENT_START);
}

struct run_record *run_records_find(struct run_records *all, const char *tenant, const char *id)
{
	struct run_record *e = map_get(all->by_id, id);

	return e && str_equal(e->tenant, tenant) ? e : NULL;
}

struct run_record *run_records_of(struct run_records *all, const char *tenant,
                                  const char *session_id, size_t offset)
{
	struct run_record_owner *owner = owner_of(all, tenant, session_id);
	struct list *node;

	if (!owner || offset >= owner->count)
		return NULL;
	for (node = owner->executions.prev; offset > 0; offset--)
		node = node->prev;
	return LIST_ENTRY(node, struct run_record, node);
}

size_t run_records_count_of(struct run_records *all, const char *tenant, const char *session_id)
{
	const struct run_record_owner *owner = owner_of(all, tenant, session_id);

	return owner ? owner->count : 0;
}

void run_records_expire(struct run_records *all, const char *tenant, const char *id)
{
	struct run_record *e = run_records_find(all, tenant, id);

	if (!e || e->state != RUN_RECORD_ENDED)
		return;
	e->withdrawn = true;
	list_remove(&e->dirty.node);
	forget_record(e);
}

void run_records_delete(struct run_records *all, const char *tenant, const char *session_id)
{
	struct run_record_owner *owner = owner_of(all, tenant, session_id);
	struct run_record *e;

	if (!owner)
		return;
	LIST_FOREACH (e, &owner->executions, struct run_record, node) {
		e->withdrawn = true;
		list_remove(&e->dirty.node);
	}
	run_records_forget(all, tenant, session_id);
}

void run_records_forget(struct run_records *all, const char *tenant, const char *session_id)
{
	struct error gone = {0};
	struct run_record *e;

	(void)error_set(&gone, ERR_NOT_FOUND, 0, "the session was deleted");
	/* One at a time: ending one may expire others. */
	while ((e = run_records_of(all, tenant, session_id, 0))) {
		if (e->state != RUN_RECORD_ENDED)
			run_record_failed(e, &gone);
		else
			forget_record(e);
	}
}

static bool has_files(const struct run_record *e)
{
	const struct run_records *all = e->all;

	return e->has_outcome && e->outcome.artifacts.count > 0 && all && all->has_files &&
	       all->has_files(all->files_ctx, e->tenant, e->session_id);
}

void run_record_info(const struct run_record *e, struct run_record_info *ret_info)
{
	bool ended = e->state == RUN_RECORD_ENDED;

	*ret_info = (struct run_record_info){
		.tenant = e->tenant,
		.id = e->id,
		.session_id = e->session_id,
		.request_id = e->request_id,
		.language = e->language,
		.code = e->code,
		.code_len = e->code_len,
		.state = e->state,
		.created_ms = e->created_ms,
		.started_ms = e->started_ms,
		.completed_ms = e->completed_ms,
		.paused_ms = e->paused_ms,
		.timeout_us = e->timeout_us,
		.cuts = e->cuts,
		.outcome = e->has_outcome ? &e->outcome : NULL,
		.failure = ended && !e->has_outcome ? &e->failure : NULL,
		.session_reset = e->session_reset,
		.begun = e->begun,
		.background = e->background || e->outcome.background,
		.terminal = e->rolling > 0 || e->outcome.terminal,
		.files_stay = has_files(e),
		.spec = e->spec || e->outcome.spec,
		.later = e->later || e->outcome.later,
	};
}

const struct buf *run_record_printed(const struct run_record *e, enum output_stream stream)
{
	if (e->has_outcome)
		return stream == OUTPUT_STDERR ? &e->outcome.err : &e->outcome.out;
	return &e->output[stream];
}

void run_record_set_spec(struct run_record *e)
{
	e->spec = true;
	e->outcome.spec = e->has_outcome;
}

void run_record_set_later(struct run_record *e)
{
	e->later = true;
	e->outcome.later = e->has_outcome;
}

void run_record_started(struct run_record *e)
{
	if (e->state != RUN_RECORD_PENDING)
		return;
	e->state = RUN_RECORD_RUNNING;
	e->started_ms = clock_real_ms();
	run_record_add_event(e, RUN_EVENT_START);
	if (e->all)
		run_row_changed(e);
}

void run_record_paused(struct run_record *e, uint64_t ms)
{
	if (e->state != RUN_RECORD_RUNNING)
		return;
	e->paused_ms += ms;
	run_row_paused(e);
}

/* Counts it, and forgets the oldest beyond the bounds. @e stays, whatever its size: its caller is
 * about to read it. */
static void enter_ended(struct run_record *e)
{
	struct run_records *all = e->all;
	struct run_record *oldest;
	struct run_record_share *share = map_get(all->shares, e->tenant);

	e->bytes = sizeof(*e) + e->code_len + e->pieces_cap * sizeof(*e->pieces) +
	           e->output[OUTPUT_STDOUT].cap + e->output[OUTPUT_STDERR].cap +
	           e->outcome.out.cap + e->outcome.err.cap + e->outcome.report.cap;
	all->ended_count++;
	all->ended_bytes += e->bytes;
	list_append(&all->ended, &e->ended_node);
	if (!share) {
		share = NEW(struct run_record_share);
		memcpy(share->tenant, e->tenant, sizeof(share->tenant));
		list_init(&share->ended);
		(void)!map_put(all->shares, share->tenant, share); /* looked up above */
		all->shares_count++;
	}
	share->count++;
	share->bytes += e->bytes;
	list_append(&share->ended, &e->share_node);
	e->share = share;
	if (!all->store || e->withdrawn)
		run_record_settle(e);
	while (all->ended_count > 1 &&
	       (all->ended_count > all->max_count || all->ended_bytes > all->max_bytes)) {
		share = choose_share(all, e->share);
		oldest = LIST_FIRST(&share->ended, struct run_record, share_node);
		if (oldest == e)
			break;
		forget_record(oldest);
	}
}

void run_records_remember(struct run_records *all, struct run_record *e)
{
	struct list *node;

	/* The table holds each id once, across tenants. */
	if (map_put(all->by_id, e->id, e) < 0) {
		log_warn("execution=%s is not read: another in memory has its id", e->id);
		run_record_free(e);
		return;
	}
	enter_owner(e);
	/* By age: its session may have newer ones. */
	node = e->owner->executions.next;
	while (node != &e->node &&
	       LIST_ENTRY(node, struct run_record, node)->created_ms <= e->created_ms)
		node = node->next;
	if (node != &e->node) {
		list_remove(&e->node);
		list_append(node, &e->node); /* before it */
	}
	enter_ended(e);
}

static void finish_record(struct run_record *e)
{
	e->state = RUN_RECORD_ENDED;
	if (!e->all)
		return;
	run_report_end(e, e->all->metrics, e->all->audit, NULL);
	if (e->completed_ms == 0) /* else its receipt has it */
		e->completed_ms = clock_real_ms();
	run_record_set_control(e, NULL, NULL, NULL);
	run_record_add_event(e, RUN_EVENT_END);
	run_row_changed(e);
	enter_ended(e);
}

void run_record_ended(struct run_record *e, struct outcome *outcome, bool session_reset)
{
	if (e->state == RUN_RECORD_ENDED) {
		outcome_done(outcome);
		return;
	}
	e->outcome = *outcome;
	*outcome = (struct outcome){0};
	e->has_outcome = true;
	e->session_reset = session_reset;
	e->outcome.background = e->background;
	e->outcome.spec = e->spec;
	e->outcome.later = e->later;
	e->outcome.terminal = e->rolling > 0;
	memcpy(e->outcome.execution_id, e->id, sizeof(e->id));
	/* Events point into the output, which moves to the outcome. */
	for (int i = 0; i < OUTPUT_COUNT; i++) {
		struct buf *to = i == OUTPUT_STDOUT ? &e->outcome.out : &e->outcome.err;

		if (e->output[i].len == 0)
			continue;
		buf_done(to);
		*to = e->output[i];
		e->output[i] = (struct buf){0};
	}
	finish_record(e);
}

void run_record_failed(struct run_record *e, const struct error *err)
{
	if (e->state == RUN_RECORD_ENDED)
		return;
	e->failure = *err;
	finish_record(e);
}

void run_record_hold(struct run_record *e, run_record_stored_fn *fn, void *ctx)
{
	e->hold = fn;
	e->hold_ctx = ctx;
}

void run_record_when_stored(struct run_record *e, run_record_stored_fn *fn, void *ctx)
{
	e->on_stored = fn;
	e->on_stored_ctx = ctx;
	if (fn && !e->hold)
		run_record_was_stored(e, NULL);
}

void run_record_was_stored(struct run_record *e, const struct error *err)
{
	run_record_stored_fn *hold = TAKE_PTR(e->hold), *on_stored = TAKE_PTR(e->on_stored);

	if (on_stored)
		on_stored(e->on_stored_ctx, e, err);
	if (hold)
		hold(e->hold_ctx, e, err);
}

int run_record_begin(struct run_record *e, run_record_stored_fn *fn, void *ctx, struct error *err)
{
	if (e->begun || !e->all->store) {
		e->begun = true;
		return 0;
	}
	e->begun = true;
	if (run_row_write_now(e, err) < 0) {
		e->begun = false;
		return -1;
	}
	run_record_hold(e, fn, ctx);
	return 1;
}

void run_record_withdraw(struct run_record *e, const struct error *err)
{
	e->withdrawn = true;
	run_record_failed(e, err);
	forget_record(e);
}

bool run_record_when_settled(struct run_record *e, void (*fn)(void *ctx), void *ctx)
{
	/* A run that was in a box has another that waits; it cannot begin again. */
	if (e->state != RUN_RECORD_ENDED || e->settled || !run_row_hurry(e))
		return false;
	e->settled = fn;
	e->settled_ctx = ctx;
	return true;
}

void run_record_settle(struct run_record *e)
{
	void (*fn)(void *ctx) = TAKE_PTR(e->settled);

	if (fn)
		fn(e->settled_ctx);
}

void run_record_set_control(struct run_record *e, void (*cancel)(void *ctx),
                            int (*input)(void *ctx, const void *data, size_t len, bool end,
                                         struct error *err),
                            void *ctx)
{
	if (!cancel) {
		e->hold = NULL;
		e->control = NULL;
	}
	e->cancel = cancel;
	e->input = input;
	e->control_ctx = ctx;
}

int run_record_cancel(struct run_record *e, struct error *err)
{
	if (e->state == RUN_RECORD_ENDED || !e->cancel)
		return error_set(err, ERR_CONFLICT, 0, "execution %s has ended", e->id);
	e->cancel(e->control_ctx);
	return 0;
}

int run_record_stdin(struct run_record *e, const void *data, size_t len, bool end,
                     struct error *err)
{
	if (e->state == RUN_RECORD_ENDED)
		return error_set(err, ERR_CONFLICT, 0, "execution %s has ended", e->id);
	if (!e->input)
		return error_set(err, ERR_CONFLICT, 0, "stdin of execution %s is not open", e->id);
	return e->input(e->control_ctx, data, len, end, err);
}

int run_record_resize(struct run_record *e, uint16_t rows, uint16_t cols, struct error *err)
{
	if (e->state == RUN_RECORD_ENDED || !e->control)
		return error_set(err, ERR_CONFLICT, 0, "execution %s has ended", e->id);
	return e->control->resize(e->control_ctx, rows, cols, err);
}

int run_record_signal(struct run_record *e, int signo, struct error *err)
{
	if (e->state == RUN_RECORD_ENDED || !e->control)
		return error_set(err, ERR_CONFLICT, 0, "execution %s has ended", e->id);
	return e->control->signal(e->control_ctx, signo, err);
}

void run_record_stop_output(struct run_record *e)
{
	e->stops++;
}

void run_record_continue_output(struct run_record *e)
{
	/* An ended record that was read again from the store knows no stops. */
	if (e->stops == 0 || e->state == RUN_RECORD_ENDED)
		return;
	if (--e->stops == 0 && e->control)
		e->control->allow_output(e->control_ctx);
}

bool run_record_is_stopped(const struct run_record *e)
{
	return e->stops > 0;
}

size_t run_record_unread(const struct run_record *e)
{
	return e->control ? e->control->unread(e->control_ctx) : 0;
}
