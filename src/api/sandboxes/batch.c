/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/json.h"
#include "api/reply.h"
#include "api/sandboxes/life.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/session/session.h"
#include "io/loop.h"
#include <string.h>

/*
 * Theory of operation. One action for many sandboxes: some at a time, in the order in which they
 * were named, and one answer at the end. What is only a call of core is done at once, and its item
 * waits until that is on the disk; what runs a program waits for its tool. An item that fails ends
 * the batch, unless it is to go on: those that have begun are let finish, the others are told not
 * to have been tried.
 *
 * A client that leaves ends the programs that run for it and begins nothing more. The batch is
 * freed when its last item is over.
 */

#define IDS_MAX         100
#define CONCURRENCY     4
#define CONCURRENCY_MAX 10

struct batch;

/* An action that is a call of core. */
typedef int act_fn(struct session *session, const json_t *parameters, struct error *err);

struct action {
	const char *name;
	enum scope scope;
	act_fn *act; /* NULL: it runs a program: */
	const char *tool;
	const struct tool_field *fields;
	json_t *(*translate)(const json_t *body, const char *id, struct error *err);
	sandboxes_render_fn *render;
};

struct item {
	struct batch *batch;
	size_t index;
	struct call call; /* of a tool */
	bool calling;
};

struct batch {
	struct http_request *req; /* the server's; NULL: the client left */
	struct router *router;
	struct principal principal; /* its texts are the batch's own */
	char *tenant, *key_id, *request_id;
	const struct action *action;
	json_t *ids, *parameters, *results; /* owned; a result for each id */
	struct item items[IDS_MAX];
	size_t count, next, running, most;
	size_t succeeded;
	bool go_on, stopped, pumping;
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

/* Rows are data, however long their lines. */
/* clang-format off */
#define EXEC "exec_command", sandboxes_exec_fields, sandboxes_exec_arguments, sandboxes_render_exec
#define CODE "run_generic",  sandboxes_code_fields, sandboxes_code_arguments, sandboxes_render_code
static const struct action actions[] = {
	{"start",     SCOPE_SESSIONS, start},
	{"stop",      SCOPE_SESSIONS, stop},
	{"restart",   SCOPE_SESSIONS, restart},
	{"delete",    SCOPE_SESSIONS, terminate},
	{"terminate", SCOPE_SESSIONS, terminate},
	{"update",    SCOPE_SESSIONS, update, .fields = sandboxes_update_fields},
	{"exec",      SCOPE_EXECUTE,  NULL, EXEC},
	{"execute",   SCOPE_EXECUTE,  NULL, EXEC},
	{"code",      SCOPE_EXECUTE,  NULL, CODE},
	{"run_code",  SCOPE_EXECUTE,  NULL, CODE},
};

static const char *const action_words[] = {"start", "stop", "restart", "delete", "terminate", "update", "exec", "execute", "code", "run_code", NULL};
static_assert(ARRAY_SIZE(action_words) == ARRAY_SIZE(actions) + 1, "every action has its word");

static const struct tool_field batch_fields[] = {
	{"action",      TOOL_STRING,  true,  "What is done to each", .words = action_words},
	{"sandbox_ids", TOOL_STRINGS, true,  "To which"},
	{"parameters",  TOOL_OBJECT,  false, "As the body of that request", .fallback = "{}"},
	{"options",     TOOL_OBJECT,  false, "continue_on_error, max_concurrency, timeout", .fallback = "{}"},
	{NULL},
};
static const struct tool_field option_fields[] = {
	{"continue_on_error", TOOL_BOOLEAN, false, "Also after a failure", .fallback = "false"},
	{"max_concurrency",   TOOL_INTEGER, false, "So many at a time", .min = 0, .max = 1000, .fallback = "0"},
	{"timeout",           TOOL_ANY,     false, "Of each program"},
	{NULL},
};
/* clang-format on */

static void pump(void *arg);

static void batch_free(struct batch *b)
{
	loop_cancel(b->router->parts.loop, pump, b);
	free(b->tenant);
	free(b->key_id);
	free(b->request_id);
	json_decref(b->ids);
	json_decref(b->parameters);
	json_decref(b->results);
	free(b);
}

static json_t *summary(const struct batch *b)
{
	json_t *j = json_object();

	json_set(j, "total", json_integer((json_int_t)b->count));
	json_set(j, "succeeded", json_integer((json_int_t)b->succeeded));
	json_set(j, "failed", json_integer((json_int_t)(b->count - b->succeeded)));
	return j;
}

static void answer(struct batch *b)
{
	json_t *j = json_object();

	http_set_gone(b->req, NULL, NULL);
	json_set(j, "results", json_incref(b->results));
	json_set(j, "summary", summary(b));
	json_set(j, "timestamp", sandboxes_now());
	reply_json(b->req, 200, j);
}

static const char *id_of(const struct batch *b, size_t index)
{
	return json_string_value(json_array_get(b->ids, index));
}

/* Of one item. Takes @result. */
static void note(struct batch *b, size_t index, json_t *result, const struct error *failure)
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

static void finish(struct item *item, json_t *result, const struct error *failure)
{
	struct batch *b = item->batch;

	item->calling = false;
	if (failure && reply_is_internal(failure) && b->req)
		reply_log_error(b->req, failure);
	note(b, item->index, result, failure);
	b->succeeded += !failure;
	b->stopped |= failure && !b->go_on;
	b->running--;
	/* One that is over at once is so inside pump, which goes on by itself. */
	if (!b->pumping)
		loop_defer(b->router->parts.loop, pump, b);
}

/* A call of core. */

static void on_kept(void *ctx, const struct error *err)
{
	struct item *item = ctx;
	struct batch *b = item->batch;
	struct error ignored = {0}; /* it was terminated: there is nothing to tell */
	const struct session *session =
		sandboxes_get(b->router, b->tenant, id_of(b, item->index), &ignored);

	finish(item, session && !err ? sandboxes_view(session) : NULL, err);
}

static void act(struct item *item, struct session *session)
{
	struct batch *b = item->batch;
	struct error err = {0};
	int r;

	if (b->action->act(session, b->parameters, &err) < 0) {
		finish(item, NULL, &err);
		return;
	}
	r = session_when_kept(session, on_kept, item, &err);
	if (r != 0)
		on_kept(item, r < 0 ? &err : NULL);
}

/* A program. */

static void on_done(void *ctx, json_t *result, const struct error *failure)
{
	struct item *item = ctx;
	const struct sandboxes_done done = sandboxes_done_of(&item->call, result, failure);
	json_t *body = failure ? NULL : item->batch->action->render(&done);

	call_release(&item->call);
	finish(item, body, failure);
}

static void run(struct item *item)
{
	struct batch *b = item->batch;
	const struct tool *tool = tool_find(b->router->config, b->action->tool);
	struct error err = {0};
	cleanup_json json_t *arguments = NULL;

	if (!tool)
		(void)error_set(&err, ERR_DENIED, 0, "tool %s is disabled here", b->action->tool);
	else
		arguments = b->action->translate(b->parameters, id_of(b, item->index), &err);
	if (!arguments) {
		finish(item, NULL, &err);
		return;
	}
	item->calling = true;
	item->call.whole = true;
	item->call.events = (struct call_events){.ctx = item, .on_done = on_done};
	call_init(&item->call, b->router, &b->principal, b->request_id);
	tool_start(&item->call, tool, arguments); /* the batch may be gone afterwards */
}

static void begin(struct batch *b, size_t index)
{
	struct item *item = &b->items[index];
	struct session *session;
	struct error err = {0};

	*item = (struct item){.batch = b, .index = index};
	b->running++;
	session = sandboxes_get(b->router, b->tenant, id_of(b, index), &err);
	if (!session)
		finish(item, NULL, &err);
	else if (b->action->act)
		act(item, session);
	else
		run(item);
}

/* Begin what may begin; at the end, answer. */
static void pump(void *arg)
{
	struct batch *b = arg;
	struct error err = {0};

	b->pumping = true;
	while (!b->stopped && b->running < b->most && b->next < b->count)
		begin(b, b->next++);
	b->pumping = false;
	if (b->running > 0)
		return;
	(void)error_set(&err, ERR_CONFLICT, 0, "not tried: one before it has failed");
	while (b->next < b->count)
		note(b, b->next++, NULL, &err);
	if (b->req)
		answer(b);
	batch_free(b);
}

static void on_gone(void *ctx)
{
	struct batch *b = ctx;

	b->req = NULL;
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

/* The request. */

static const struct action *find_action(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		if (str_equal(actions[i].name, name))
			return &actions[i];
	return NULL; /* the word was checked */
}

static int check_ids(const json_t *ids, struct error *err)
{
	size_t count = json_array_size(ids);

	if (count == 0 || count > IDS_MAX)
		return error_field(err, "sandbox_ids", "must have 1 to %d ids", IDS_MAX);
	for (size_t i = 0; i < count; i++)
		if (json_string_length(json_array_get(ids, i)) > SESSION_ID_MAX)
			return error_field(err, "sandbox_ids", "has one that is too long");
	return 0;
}

static int check_scope(const struct action *action, const struct principal *who, struct error *err)
{
	if (scope_allows(who->scopes, action->scope))
		return 0;
	return error_set(err, ERR_NO_SCOPE, 0, "action %s needs scope %s", action->name,
	                 scope_name(action->scope));
}

/* Of both, only what is known. */
static void drop_unknown(json_t *object, const struct tool_field *fields)
{
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(object, next, name, value)
	{
		const struct tool_field *f = fields;

		while (f->name && !str_equal(f->name, name))
			f++;
		if (!f->name)
			(void)json_object_del(object, name);
	}
}

/* An error is told with the place of the field in the whole body. */
static int check_part(json_t *body, const char *part, const struct tool_field *fields,
                      struct error *err)
{
	json_t *object = json_object_get(body, part);
	char field[sizeof(err->field)];

	drop_unknown(object, fields);
	if (tool_check_arguments(fields, object, err) == 0)
		return 0;
	(void)!str_copy(field, sizeof(field), err->field);
	(void)!str_format(err->field, sizeof(err->field), "%s.%.64s", part, field);
	return -1;
}

static int check(json_t *body, const struct principal *who, struct error *err)
{
	const struct action *action =
		find_action(json_string_value(json_object_get(body, "action")));
	json_t *parameters = json_object_get(body, "parameters"), *timeout;
	double seconds;

	if (check_ids(json_object_get(body, "sandbox_ids"), err) < 0 ||
	    check_scope(action, who, err) < 0 ||
	    check_part(body, "options", option_fields, err) < 0 ||
	    (action->fields && check_part(body, "parameters", action->fields, err) < 0))
		return -1;
	timeout = json_object_get(json_object_get(body, "options"), "timeout");
	if (timeout && !json_is_null(timeout) &&
	    sandboxes_seconds(timeout, "options.timeout", &seconds, err) < 0)
		return -1;
	if (timeout && action->tool && !json_object_get(parameters, "timeout"))
		json_set(parameters, "timeout", json_incref(timeout));
	return 0;
}

static struct batch *batch_new(struct router *r, struct http_request *req,
                               const struct principal *who, const json_t *body)
{
	const json_t *options = json_object_get(body, "options");
	json_int_t most =
		(json_int_t)json_number_value(json_object_get(options, "max_concurrency"));
	struct batch *b = NEW(struct batch);

	b->req = req;
	b->router = r;
	b->tenant = xstrdup(who->tenant);
	b->key_id = who->key_id ? xstrdup(who->key_id) : NULL;
	b->request_id = xstrdup(http_request_id(req));
	b->principal = (struct principal){b->tenant, b->key_id, who->scopes};
	b->action = find_action(json_string_value(json_object_get(body, "action")));
	b->ids = json_incref(json_object_get(body, "sandbox_ids"));
	b->parameters = json_incref(json_object_get(body, "parameters"));
	b->results = json_array();
	b->count = json_array_size(b->ids);
	b->go_on = json_is_true(json_object_get(options, "continue_on_error"));
	b->most = most == 0 ? CONCURRENCY : most < CONCURRENCY_MAX ? (size_t)most : CONCURRENCY_MAX;
	for (size_t i = 0; i < b->count; i++)
		(void)!json_array_append_new(b->results, json_null());
	return b;
}

void sandboxes_batch(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_json json_t *body = NULL;
	struct error err = {0};
	struct batch *b;

	if (sandboxes_begin(req, SANDBOXES_V2) < 0)
		return;
	body = sandboxes_body(req, batch_fields);
	if (!body)
		return;
	if (check(body, args->principal, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	b = batch_new(r, req, args->principal, body);
	http_drop_body(req);
	http_set_gone(req, on_gone, b);
	pump(b);
}
