/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/decode_fields.h"
#include "api/json/dependencies.h"
#include "api/json/json.h"
#include "api/op/language.h"
#include "api/op/language_list.h"
#include "api/op/run.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/install/install.h"
#include "core/language/manager.h"
#include "core/language/runners.h"
#include "core/session/session.h"
#include <string.h>

/*
 * Theory of operation. A program runs in a session, where its execution is a record, or in its own
 * box. execute_code uses the session's interpreter; the other tools start a process each, so only
 * files stay.
 *
 * call_cancel kills the program. The transport decides whether a disconnect cancels.
 */

/* Most snippets of agents are Python. */
#define DEFAULT_LANGUAGE "python"

/* The tool's, the argument's, @fallback (NULL: none), or guessed. Core refuses one that is not
 * installed. */
static const struct runner *find_runner(struct call *call, const char *fallback, struct error *err)
{
	const struct runners *all = call->router->parts.runners;
	struct decoded_run *exec = &call->args.exec;
	const char *language = call->tool->language;
	const struct runner *runner;
	char list[160] = "";

	if (!language && op_language_take_stated(all, exec))
		language = exec->request.language;
	if (!language)
		language = exec->event ? DEFAULT_LANGUAGE : fallback;
	if (!language) {
		if (op_language_choose(call->router, exec, DEFAULT_LANGUAGE, err) < 0)
			return NULL;
		language = exec->request.language;
	}
	runner = runners_find(all, language);
	if (runner)
		return runner;
	op_language_names(call->router, list, sizeof(list));
	(void)error_field(err, "language", "'%.32s' is not supported; available: %s", language,
	                  list);
	return NULL;
}

/* "numpy==1.24" as {"name": "numpy", "version": "==1.24"}. */
static json_t *split_package(const char *text)
{
	size_t len = strcspn(text, "=<>!~ ");
	json_t *j = json_object();

	json_set(j, "name", json_stringn(text, len));
	if (text[len])
		json_set(j, "version", json_string(text + len + strspn(text + len, " ")));
	return j;
}

/* See wait_for_packages: what can be installed is. */
static int refuse_packages(const struct runner *runner, struct error *err)
{
	const struct manager *manager = manager_of(runner);

	if (!manager)
		return error_field(err, "packages",
		                   "of %.32s cannot be installed: it has no package manager here. "
		                   "Use a template that has them",
		                   runner->name);
	return error_field(err, "packages",
	                   "of %.32s cannot be installed: the operator's setting "
	                   "packages.managers lacks %s. Use a template that has them, or have "
	                   "%s added to the setting",
	                   runner->name, manager->name, manager->name);
}

/* Packages must be there, unless they were installed. */
static int check_packages(const struct call *call, const struct runner *runner, struct error *err)
{
	cleanup_json json_t *wanted = json_array(), *read = NULL, *found = NULL;
	json_t *names = json_array();

	json_set(call->asked, "packages_installed", names);
	for (char **package = call->args.packages; package && *package; package++) {
		(void)!json_array_append_new(wanted, split_package(*package));
		(void)!json_array_append_new(names, json_string(*package));
	}
	if (json_array_size(wanted) == 0 || call->args.installed)
		return 0;
	if (!str_equal(runner->name, "python"))
		return refuse_packages(runner, err);
	read = dependencies_read("packages", wanted, err);
	if (!read)
		return -1;
	found = dependencies_resolve(call->router->parts.packages, read, err);
	if (!error_is_set(err))
		return 0;
	(void)!str_copy(err->field, sizeof(err->field), "packages");
	return -1;
}

/* Core checks names and values. */
static int take_options(struct call *call, struct error *err)
{
	if (!call->args.options)
		return 0;
	call->args.exec.request.options = decode_options_object("options", call->args.options, err);
	return call->args.exec.request.options ? 0 : -1;
}

/* Also sets call->asked. @language: the session's; NULL: guess. */
static int complete_request(struct call *call, const char *language, struct error *err)
{
	const struct runner *runner = find_runner(call, language, err);
	struct run_request *request = &call->args.exec.request;
	const char *dir = call->args.working_dir;
	char path[WORKPATH_MAX + 1] = "";

	if (!runner)
		return -1;
	free(request->language);
	request->language = xstrdup(runner->name);
	call->asked = json_object();
	json_set(call->asked, "language", json_string(runner->name));
	if (fields_find(call->tool->input, "command"))
		json_set(call->asked, "command", json_text(request->code, request->code_len));
	if (check_packages(call, runner, err) < 0 ||
	    decode_handler_end(&call->args.exec, err) < 0 ||
	    (dir && tool_clean_path(dir, "working_dir", path, err) < 0))
		return -1;
	json_set(call->asked, "working_dir",
	         json_sprintf("/workspace%s%s", *path ? "/" : "", path));
	if (*path)
		request->cwd = xstrdup(path);
	return take_options(call, err);
}

static void pass_output(struct call *call, const struct run_event *event)
{
	enum output_stream stream = event->kind == RUN_EVENT_STDOUT ? OUTPUT_STDOUT : OUTPUT_STDERR;
	size_t len;
	cleanup_free char *text =
		text_stream_feed(&call->text[stream], event->data, event->len, &len);

	if (len > 0)
		call->events.on_output(call->events.ctx, stream, text, len);
}

static void on_event(void *ctx, struct run_record *record, const struct run_event *event)
{
	struct call *call = ctx;
	struct run_record_info run = {0};

	if (event->kind == RUN_EVENT_END) {
		run_record_info(record, &run);
		if (run.outcome)
			tool_result_finish(call, &run);
		else
			tool_refuse(call, run.failure);
	} else if (event->kind != RUN_EVENT_START && call->events.on_output) {
		pass_output(call, event);
	}
}

static void start_run(struct call *call, struct session *session);

static void run_again(struct call *call)
{
	call->args.installed = true;
	tool_with_session(call, start_run);
}

/* @language: the session's; NULL: guess. Return: whether the run waits for its packages. */
static bool wait_for_packages(struct call *call, struct session *session, const char *language)
{
	const struct runner *runner;
	struct error err = {0};

	if (!call->args.packages || !call->args.packages[0] || call->args.installed)
		return false;
	runner = find_runner(call, language, &err);
	/* Else complete_request says what is wrong. */
	if (!runner || !manager_of(runner))
		return false;
	if (!tool_lacks_packages(call, session, runner->name)) {
		call->args.installed = true;
		return false;
	}
	if (!installs_can(call->router->parts.installs, runner->name))
		return false;
	tool_install(call, runner->name, run_again);
	return true;
}

static void cancel_run(void *work)
{
	run_watch_cancel(work);
}

/* The program would wait until the session is resumed. No tool resumes one. */
static int refuse_paused(const struct call *call, const char *id, struct error *err)
{
	if (call->whole)
		return error_set(err, ERR_CONFLICT, 0,
		                 "sandbox %.64s is stopped: POST /api/v1/sandboxes/%.64s/start "
		                 "starts it",
		                 id, id);
	return error_set(err, ERR_CONFLICT, 0,
	                 "%s %.64s is paused by its user, and runs nothing until the user resumes "
	                 "it; no tool does",
	                 tool_noun(call), id);
}

/* A box keeps what it was made with: of hosts, a narrower request would get the others, too. */
static int check_box(const struct call *call, const struct session *session, struct error *err)
{
	const struct run_request *asked = &call->args.exec.request;
	const char *field = asked->network_allow   ? "network_allow"
	                    : asked->engine        ? "engine"
	                    : asked->min_isolation ? "min_isolation"
	                                           : NULL;

	if (!session || !field)
		return 0;
	return error_field(err, field,
	                   "belongs to the box of a %s: give it when that is created, or run the "
	                   "program without a %s",
	                   tool_noun(call), tool_noun(call));
}

/* @session NULL: none. */
static void start_run(struct call *call, struct session *session)
{
	struct run_request *request = &call->args.exec.request;
	const struct op_run_start start = {.session = session,
	                                   .request = request,
	                                   .who = call->principal,
	                                   .request_id = call->request_id};
	bool stays = call->tool->run == tool_execute_code;
	struct session_info info = {0};
	struct run_record *record = NULL;
	const char *language;
	struct error err = {0};

	if (session)
		session_info(session, &info);
	language = stays ? info.language : NULL;
	if (session && wait_for_packages(call, session, language))
		return;
	if (session && op_run_is_paused(session)) {
		(void)!refuse_paused(call, info.id, &err);
	} else if (check_box(call, session, &err) == 0 &&
	           complete_request(call, language, &err) == 0) {
		request->fresh = session && (!stays || request->cwd);
		(void)!op_run_start(call->router, &start, &record, &err);
	}
	if (!record) {
		tool_refuse(call, &err);
		return;
	}
	/* Core has its own copy. */
	decoded_run_done(&call->args.exec);
	call->args.exec = (struct decoded_run){0};
	call_wait(call, run_watch(record, 0, on_event, call), cancel_run);
}

void tool_execute_code(struct call *call)
{
	if (call->args.sandbox_id && *call->args.sandbox_id)
		tool_with_session(call, start_run);
	else
		start_run(call, NULL);
}

void tool_exec_command(struct call *call)
{
	tool_execute_code(call);
}

void tool_run_in_sandbox(struct call *call)
{
	tool_with_session(call, start_run);
}
