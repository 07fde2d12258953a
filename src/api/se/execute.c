/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth.h"
#include "api/se/se.h"

#include "api/json/encode_result.h"
#include "api/json/json.h"
#include "api/json/report.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/request/workpath.h"
#include "core/run/run.h"
#include "core/run/run_record.h"
#include "core/session/session.h"
#include <string.h>

/*
 * Theory of operation. Each program runs in a process of its own in the session's box, so that only
 * files stay, as this dialect's clients know it. A request waits for the end of its execution; a
 * client that leaves does not end it.
 */

#define TIMEOUT_US  (300 * USEC_PER_SEC)
#define TIMED_OUT   124
#define OUTPUTS_MAX 100

/* A request and the execution it waits for. */
struct wait {
	struct http_request *req;
	struct run_watch *watch;
	bool outputs; /* variables were asked for */
};

static json_int_t return_code(const struct outcome *o)
{
	return o->status == EXEC_TIMEOUT ? TIMED_OUT : o->exited || o->signal ? o->exit_code : -1;
}

static json_t *output_text(const struct buf *b)
{
	return json_text(b->data ? b->data : "", b->len);
}

static void answer(const struct wait *w, const struct outcome *o)
{
	cleanup_report struct report report = {0};
	json_t *j = json_object();
	bool found;

	encode_result_report(o, &report);
	json_set(j, "stdout", output_text(&o->out));
	json_set(j, "stderr", output_text(&o->err));
	json_set(j, "returncode", json_integer(return_code(o)));
	json_set(j, "exit_code", json_integer(return_code(o)));
	json_set(j, "status", json_string(exec_status_name(o->status)));
	found = json_is_object(report.result);
	if (w->outputs)
		json_set(j, "output_variables", found ? json_incref(report.result) : json_object());
	se_reply(w->req, j, NULL);
}

static void on_event(void *ctx, struct run_record *e, const struct run_event *event)
{
	struct wait *w = ctx;
	struct run_record_info info = {0};

	if (event->kind != RUN_EVENT_END)
		return;
	run_record_info(e, &info);
	if (info.outcome)
		answer(w, info.outcome);
	else
		reply_error(w->req, info.failure);
	free(w);
}

static void on_gone(void *ctx)
{
	struct wait *w = ctx;

	run_unwatch(w->watch);
	free(w);
}

static void run(struct http_request *req, struct session *session,
                const struct run_request *request)
{
	struct run_record *e = NULL;
	struct error err = {0};
	struct run_request named = *request;
	struct wait *w;

	named.request_id = (char *)(uintptr_t)http_request_id(req);
	named.key_id = auth_principal(req)->key_id;
	if (session_execute(session, &named, &e, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	w = NEW(struct wait);
	w->req = req;
	w->outputs = request->ask != NULL;
	http_drop_body(req);
	http_set_gone(req, on_gone, w);
	w->watch = run_watch(e, 0, on_event, w);
}

static int take_text(const json_t *body, const char *name, const char **ret_text, struct error *err)
{
	const json_t *value = json_object_get(body, name);

	if (!value || json_is_null(value))
		return 0;
	if (!json_is_string(value) ||
	    memchr(json_string_value(value), '\0', json_string_length(value)))
		return error_field(err, name, "must be a string without NUL");
	*ret_text = json_string_value(value);
	return 0;
}

/* Strings, and numbers as strings; behind @first, if there is one. */
static int take_args(const json_t *body, const char *first, char ***ret_args, struct error *err)
{
	const json_t *list = json_object_get(body, "args");
	size_t count = json_array_size(list), n = 0;
	char **args;

	if (list && !json_is_null(list) && !json_is_array(list))
		return error_field(err, "args", "must be a list of strings");
	args = *ret_args = xcalloc(count + 2, sizeof(*args));
	if (first)
		args[n++] = xstrdup(first);
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_array_get(list, i);

		if (json_is_string(item) &&
		    !memchr(json_string_value(item), '\0', json_string_length(item)))
			args[n++] = xstrdup(json_string_value(item));
		else if (json_is_number(item))
			args[n++] = json_dumps(item, JSON_ENCODE_ANY);
		else
			return error_field(err, "args", "must be a list of strings");
	}
	return 0;
}

static int take_timeout(const json_t *body, uint64_t *ret_us, struct error *err)
{
	const json_t *value = json_object_get(body, "timeout");
	double seconds = json_number_value(value);

	*ret_us = TIMEOUT_US;
	if (!value || json_is_null(value))
		return 0;
	if (!json_is_number(value) || !(seconds >= 0.001) || seconds > 3600)
		return error_field(err, "timeout", "must be at most 3600 seconds");
	*ret_us = (uint64_t)(seconds * USEC_PER_SEC);
	return 0;
}

/* A command with blanks and no arguments is a line for the shell; all else is a program. */
static int read_command(const json_t *body, struct run_request *request, struct error *err)
{
	const char *command = NULL;
	bool line;

	if (take_text(body, "command", &command, err) < 0)
		return -1;
	if (!command || !*command)
		return error_field(err, "command", "is missing");
	line = strpbrk(command, " \t\n|&;<>") &&
	       json_array_size(json_object_get(body, "args")) == 0;
	if (take_args(body, line ? NULL : command, &request->args, err) < 0 ||
	    take_timeout(body, &request->timeout_us, err) < 0)
		return -1;
	request->code = xstrdup(line ? command : "exec \"$@\"");
	request->code_len = strlen(request->code);
	request->language = xstrdup("shell");
	return 0;
}

static void request_cleanup(struct run_request *request)
{
	run_request_done(request);
}

void se_execute(struct router *r, struct http_request *req, const struct route_args *args)
{
	attr_cleanup(request_cleanup) struct run_request request = {.fresh = true};
	cleanup_json json_t *body = se_body(req);
	struct session *session;
	struct error err = {0};

	if (!body)
		return;
	if (read_command(body, &request, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	session = se_session(r, req, args);
	if (session)
		run(req, session, &request);
}

/* Variables that are read after the run. */
static int take_outputs(const json_t *body, struct run_request *request, struct error *err)
{
	json_t *list = json_object_get(body, "output_params"), *ask;

	if (!list || json_is_null(list) || (json_is_array(list) && json_array_size(list) == 0))
		return 0;
	if (!json_is_array(list) || json_array_size(list) > OUTPUTS_MAX)
		return error_field(err, "output_params", "must be a list of at most %d names",
		                   OUTPUTS_MAX);
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!json_is_string(json_array_get(list, i)))
			return error_field(err, "output_params", "must be a list of names");
	if (!str_equal(request->language, "python"))
		return error_field(err, "output_params", "are variables of Python programs");
	ask = json_object();
	json_set(ask, "outputs", json_incref(list));
	request->ask = json_dumps(ask, JSON_COMPACT);
	json_decref(ask);
	return 0;
}

static bool ends_with(const char *text, const char *ending)
{
	size_t len = strlen(text), more = strlen(ending);

	return len >= more && str_equal(text + len - more, ending);
}

/* The script is left in the workspace under its name. */
static int take_file(const json_t *body, const char *code, const char *ending,
                     struct run_request *request, struct error *err)
{
	char path[WORKPATH_MAX + 1];
	const char *name = NULL;
	cleanup_free char *own =
		xasprintf("script_%llu%s", (unsigned long long)clock_real_ms(), ending);

	if (take_text(body, "filename", &name, err) < 0)
		return -1;
	if (!name || !*name)
		name = own;
	if (workpath_clean(name, WORKPATH_STRIP, "filename", path, err) < 0)
		return -1;
	if (!*path)
		return error_field(err, "filename", "is not the name of a file");
	request->files = xcalloc(1, sizeof(*request->files));
	request->files_count = 1;
	request->files[0].name =
		ends_with(path, ending) ? xstrdup(path) : xasprintf("%s%s", path, ending);
	request->files[0].data = xstrdup(code);
	request->files[0].len = strlen(code);
	return 0;
}

static int read_code(const json_t *body, struct run_request *request, struct error *err)
{
	const char *code = NULL, *type = "python";
	bool shell;

	if (take_text(body, "code", &code, err) < 0 ||
	    take_text(body, "script_type", &type, err) < 0)
		return -1;
	if (!code || !*code)
		return error_field(err, "code", "is missing");
	shell = str_equal(type, "shell") || str_equal(type, "bash") || str_equal(type, "sh");
	if (!shell && !str_equal(type, "python"))
		return error_field(err, "script_type", "must be python or shell");
	request->language = xstrdup(shell ? "shell" : "python");
	request->code = xstrdup(code);
	request->code_len = strlen(code);
	if (take_args(body, NULL, &request->args, err) < 0 ||
	    take_timeout(body, &request->timeout_us, err) < 0 ||
	    take_outputs(body, request, err) < 0)
		return -1;
	return take_file(body, code, shell ? ".sh" : ".py", request, err);
}

void se_execute_code(struct router *r, struct http_request *req, const struct route_args *args)
{
	attr_cleanup(request_cleanup) struct run_request request = {.fresh = true};
	cleanup_json json_t *body = se_body(req);
	struct session *session;
	struct error err = {0};

	if (!body)
		return;
	if (read_code(body, &request, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	session = se_session(r, req, args);
	if (session)
		run(req, session, &request);
}
