/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/json.h"
#include "api/pending.h"
#include "api/reply.h"
#include "api/sandboxes/life.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/session/session.h"
#include "http/status.h"
#include "io/loop.h"
#include <errno.h>
#include <string.h>

/*
 * Theory of operation. One action for many sandboxes, a few at a time, in order, with one response.
 * Core's calls return at once, and their items wait until the change is persisted; programs wait
 * for their tool. A failed item ends the batch unless continue_on_error is set: started items
 * finish, the others are reported as not tried.
 *
 * A client that disconnects cancels its programs and starts no more. The last item frees the batch.
 */

#define IDS_MAX         100
#define CONCURRENCY     4
#define CONCURRENCY_MAX 10

struct batch;

typedef int act_fn(struct session *session, const json_t *parameters, struct error *err);

struct action {
	const char *name;
	enum scope scope;
	act_fn *act; /* or: */
	const struct sandboxes_program_kind *program;
};

struct batch_body {
	unsigned action; /* index of actions */
	json_t *ids, *parameters;
	bool continue_on_error;
	uint64_t most;
	json_t *timeout; /* of each program */
};

struct item {
	struct batch *batch;
	size_t index;
	struct call call; /* of a tool */
	bool calling;
};

struct batch {
	struct pending pending;
	struct router *router;
	struct loop *loop; /* borrowed; outlives the store, which ends what waits for it */
	const struct principal *principal; /* borrowed */
	char *request_id;
	const struct action *action;
	json_t *ids, *parameters, *results; /* owned; one result per id */
	struct item items[IDS_MAX];
	size_t count, next, running, most;
	size_t succeeded;
	bool continue_on_error, stopped, pumping;
};

static int start(struct session *session, const json_t *parameters, struct error *err)
{
	(void)parameters;
	return sandboxes_do_start(session, err);
}

static int stop(struct session *session, const json_t *parameters, struct error *err)
{
	(void)parameters;
	return sandboxes_do_stop(session, err);
}

static int restart(struct session *session, const json_t *parameters, struct error *err)
{
	(void)parameters;
	return session_restart(session, err);
}

static int terminate(struct session *session, const json_t *parameters, struct error *err)
{
	(void)parameters;
	(void)err;
	session_terminate(session, "terminated by its owner");
	return 0;
}

static int update(struct session *session, const json_t *parameters, struct error *err)
{
	return sandboxes_change(session, parameters, false, err);
}

/* clang-format off */
static const struct action actions[] = {
	{"start",     SCOPE_SESSIONS, start},
	{"stop",      SCOPE_SESSIONS, stop},
	{"restart",   SCOPE_SESSIONS, restart},
	{"delete",    SCOPE_SESSIONS, terminate},
	{"terminate", SCOPE_SESSIONS, terminate},
	{"update",    SCOPE_SESSIONS, update},
	{"exec",      SCOPE_EXECUTE,  NULL, &sandboxes_exec_kind},
	{"execute",   SCOPE_EXECUTE,  NULL, &sandboxes_exec_kind},
	{"code",      SCOPE_EXECUTE,  NULL, &sandboxes_code_kind},
	{"run_code",  SCOPE_EXECUTE,  NULL, &sandboxes_code_kind},
};

static const char *const action_words[] = {"start", "stop", "restart", "delete", "terminate", "update", "exec", "execute", "code", "run_code", NULL};
static_assert(ARRAY_SIZE(action_words) == ARRAY_SIZE(actions) + 1, "every action has its word");

#define INTO(member) AT(struct batch_body, member)
static int check_ids(const struct field_value *v);
static int check_timeout(const struct field_value *v);

static const struct fields option_fields = SANDBOXES_FIELDS(NULL,
	{"continue_on_error", FIELD_BOOL, INTO(continue_on_error), .schema = "{\"default\": false}"},
	{"max_concurrency", FIELD_INTEGER, INTO(most), .max = 1000, .description = "0 means 4; values over 10 count as 10."},
	{"timeout", FIELD_ANY, INTO(timeout), .check = check_timeout, .schema = "{\"type\": [\"number\", \"string\"]}", .description = "Time limit of each program."});
const struct fields sandboxes_batch_fields = SANDBOXES_FIELDS("SandboxBatch",
	{"action", FIELD_ENUM, INTO(action), .words = action_words, .required = true},
	{"sandbox_ids", FIELD_LIST, INTO(ids), .check = check_ids, .required = true, .schema = "{\"minItems\": 1, \"maxItems\": 100, \"items\": {\"type\": \"string\"}}"},
	{"parameters", FIELD_OBJECT, INTO(parameters), .fallback = "{}"},
	{"options", FIELD_OBJECT, .fields = &option_fields});
/* clang-format on */

static void pump(void *arg);

static void batch_free(struct batch *b)
{
	loop_cancel(b->loop, pump, b);
	free(b->request_id);
	json_decref(b->ids);
	json_decref(b->parameters);
	json_decref(b->results);
	free(b);
}

static void reply_batch(struct http_request *req, const struct batch *b)
{
	json_t *j = json_object(), *summary = json_object();

	json_set(summary, "total", json_integer((json_int_t)b->count));
	json_set(summary, "succeeded", json_integer((json_int_t)b->succeeded));
	json_set(summary, "failed", json_integer((json_int_t)(b->count - b->succeeded)));
	json_set(j, "results", json_incref(b->results));
	json_set(j, "summary", summary);
	json_set(j, "timestamp", sandboxes_now());
	reply_json(req, HTTP_OK, j);
}

static const char *id_of(const struct batch *b, size_t index)
{
	return json_string_value(json_array_get(b->ids, index));
}

/* Takes @result. */
static void set_result(struct batch *b, size_t index, json_t *result, const struct error *failure)
{
	json_t *j = json_object();

	json_set(j, "sandbox_id", json_string(id_of(b, index)));
	json_set(j, "success", json_boolean(!failure));
	json_set(j, "result", result ? result : json_null());
	json_set(j, "error",
	         failure ? sandboxes_error(failure, b->request_id, error_http(failure->code))
	                 : json_null());
	(void)!json_array_set_new(b->results, index, j);
}

static void finish_item(struct item *item, json_t *result, const struct error *failure)
{
	struct batch *b = item->batch;

	item->calling = false;
	if (failure && error_is_internal(failure) && b->pending.req)
		reply_log_error(b->pending.req, failure);
	set_result(b, item->index, result, failure);
	b->succeeded += !failure;
	b->stopped |= failure && !b->continue_on_error;
	b->running--;
	/* Inside pump its loop continues. */
	if (!b->pumping)
		loop_defer(b->loop, pump, b);
}

static void on_kept(void *ctx, const struct error *err)
{
	struct item *item = ctx;
	struct batch *b = item->batch;
	struct error ignored = {0}; /* terminated: no view */
	const struct session *session;

	/* The daemon stops: router, sessions and keys are gone, and so is the request. */
	if (err && err->sys == ECANCELED) {
		if (--b->running == 0)
			batch_free(b);
		return;
	}
	session = err ? NULL
	              : sandboxes_get(b->router, b->principal->tenant, id_of(b, item->index),
	                              &ignored);
	finish_item(item, session ? sandboxes_view(session) : NULL, err);
}

static void act_on(struct item *item, struct session *session)
{
	struct batch *b = item->batch;
	struct error err = {0};
	int r;

	if (b->action->act(session, b->parameters, &err) < 0) {
		finish_item(item, NULL, &err);
		return;
	}
	r = session_when_kept(session, on_kept, item, &err);
	if (r != 0)
		on_kept(item, r < 0 ? &err : NULL);
}

static void on_done(void *ctx, json_t *result, const struct error *failure)
{
	struct item *item = ctx;
	const struct sandboxes_done done = sandboxes_done_of(&item->call, result, failure);
	json_t *body = failure ? NULL : item->batch->action->program->render(&done);

	call_release(&item->call);
	finish_item(item, body, failure);
}

static void run_tool(struct item *item)
{
	struct batch *b = item->batch;
	const struct sandboxes_program_kind *kind = b->action->program;
	const struct tool *tool = tool_find(b->router->config, kind->tool);
	cleanup_sandboxes_program struct sandboxes_program p = {0};
	struct error err = {0};

	if (!tool)
		(void)error_set(&err, ERR_DENIED, 0, "tool %s is disabled here", kind->tool);
	if (!tool ||
	    sandboxes_decode_part(b->router, "parameters", b->parameters, kind->fields, &p, &err) <
	            0 ||
	    (kind->complete && kind->complete(&p, &err) < 0)) {
		finish_item(item, NULL, &err);
		return;
	}
	item->calling = true;
	item->call.whole = true;
	item->call.events = (struct call_events){.ctx = item, .on_done = on_done};
	item->call.args = p.args;
	p.args = (struct tool_args){.sandbox_id = NULL};
	item->call.args.sandbox_id = xstrdup(id_of(b, item->index));
	call_init(&item->call, b->router, b->principal, b->request_id);
	tool_start(&item->call, tool, NULL); /* may free the batch */
}

static void start_item(struct batch *b, size_t index)
{
	struct item *item = &b->items[index];
	struct session *session;
	struct error err = {0};

	*item = (struct item){.batch = b, .index = index};
	b->running++;
	session = sandboxes_get(b->router, b->principal->tenant, id_of(b, index), &err);
	if (!session)
		finish_item(item, NULL, &err);
	else if (b->action->act)
		act_on(item, session);
	else
		run_tool(item);
}

/* After the last item, respond. */
static void pump(void *arg)
{
	struct batch *b = arg;
	struct http_request *req;
	struct error err = {0};

	b->pumping = true;
	while (!b->stopped && b->running < b->most && b->next < b->count)
		start_item(b, b->next++);
	b->pumping = false;
	if (b->running > 0)
		return;
	(void)error_set(&err, ERR_CONFLICT, 0, "not tried: an earlier item failed");
	while (b->next < b->count)
		set_result(b, b->next++, NULL, &err);
	req = pending_resume(&b->pending);
	if (req)
		reply_batch(req, b);
	batch_free(b);
}

static void on_left(struct pending *p)
{
	struct batch *b = CONTAINER_OF(p, struct batch, pending);

	b->stopped = true;
	for (size_t i = 0; i < b->next; i++)
		if (b->items[i].calling) {
			call_cancel(&b->items[i].call);
			call_release(&b->items[i].call);
			b->items[i].calling = false;
			b->running--;
		}
	if (b->running == 0)
		batch_free(b);
}

static int check_ids(const struct field_value *v)
{
	size_t count = json_array_size(v->value);

	if (count == 0 || count > IDS_MAX)
		return error_field(v->err, v->path, "must have 1 to %d ids", IDS_MAX);
	for (size_t i = 0; i < count; i++) {
		const json_t *id = json_array_get(v->value, i);

		if (!json_is_string(id) || strlen(json_string_value(id)) != json_string_length(id))
			return fields_wrong(v, "a list of strings");
		if (json_string_length(id) > SESSION_ID_MAX)
			return error_field(v->err, v->path, "has an id that is too long");
	}
	return 0;
}

static int check_timeout(const struct field_value *v)
{
	double seconds;

	return json_is_null(v->value) ? 0 : sandboxes_seconds(v->value, v->path, &seconds, v->err);
}

/* Scope and parameters, before the first item. */
static int check_batch(const struct router *r, const struct batch_body *body,
                       const struct action *action, const struct principal *who, struct error *err)
{
	cleanup_sandboxes_program struct sandboxes_program p = {0};

	if (!scope_allows(who->scopes, action->scope))
		return error_set(err, ERR_NO_SCOPE, 0, "action %s needs scope %s", action->name,
		                 scope_name(action->scope));
	if (action->act == update)
		return sandboxes_check_change(r, body->parameters, err);
	if (!action->program)
		return 0;
	if (body->timeout && !json_is_null(body->timeout) &&
	    !json_object_get(body->parameters, "timeout"))
		json_set(body->parameters, "timeout", json_incref(body->timeout));
	return sandboxes_decode_part(r, "parameters", body->parameters, action->program->fields, &p,
	                             err);
}

static struct batch *batch_new(struct router *r, struct http_request *req,
                               const struct principal *who, const struct batch_body *body)
{
	struct batch *b = NEW(struct batch);

	b->router = r;
	b->loop = r->parts.loop;
	b->principal = who;
	b->request_id = xstrdup(http_request_id(req));
	b->action = &actions[body->action];
	b->ids = json_incref(body->ids);
	b->parameters = json_incref(body->parameters);
	b->results = json_array();
	b->count = json_array_size(b->ids);
	b->continue_on_error = body->continue_on_error;
	b->most = body->most == 0                ? CONCURRENCY
	          : body->most < CONCURRENCY_MAX ? (size_t)body->most
	                                         : CONCURRENCY_MAX;
	for (size_t i = 0; i < b->count; i++)
		(void)!json_array_append_new(b->results, json_null());
	return b;
}

void sandboxes_batch(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct batch_body body = {0};
	struct batch *b = NULL;
	struct error err = {0};

	if (sandboxes_begin(req, SANDBOXES_V2) < 0)
		return;
	if (sandboxes_decode(r, req, args, &sandboxes_batch_fields, &body) == 0) {
		if (check_batch(r, &body, &actions[body.action], args->principal, &err) < 0)
			reply_error(req, &err);
		else
			b = batch_new(r, req, args->principal, &body);
	}
	fields_done(&sandboxes_batch_fields, &body);
	fields_done(&option_fields, &body);
	if (!b)
		return;
	http_drop_body(req);
	pending_wait(&b->pending, req, on_left);
	pump(b);
}
