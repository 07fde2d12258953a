/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/decode_fields.h"
#include "api/json/dependencies.h"
#include "api/json/json.h"
#include "api/op/run.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/language/detect.h"
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

static void list_installed(const struct runners *all, char *list, size_t size)
{
	const struct runner *r;
	size_t used = 0;

	for (size_t i = 0; (r = runners_at(all, i)); i++)
		if (r->installed && used + strlen(r->name) + 3 < size)
			used += (size_t)snprintf(list + used, size - used, "%s%s", used ? ", " : "",
			                         r->name);
}

/* The tool's, the argument's, @fallback (NULL: none), or guessed. */
static const struct runner *find_runner(const struct call *call, const char *fallback,
                                        struct error *err)
{
	const struct runners *all = call->router->parts.runners;
	const struct decoded_run *exec = &call->args.exec;
	const char *language = call->tool->language;
	const struct runner *runner;
	char list[160] = "";

	if (!language)
		language = exec->request.language ? exec->request.language : fallback;
	if (!language)
		language = exec->event
		                   ? "python"
		                   : detect_language(exec->request.code, exec->request.code_len);
	runner = runners_find(all, language);
	if (runner && runner->installed)
		return runner;
	list_installed(all, list, sizeof(list));
	if (runner)
		(void)error_field(err, "language",
		                  "%s needs %s, which this host lacks; "
		                  "available: %s",
		                  runner->name, runner->program, list);
	else
		(void)error_field(err, "language", "'%.32s' is not supported; available: %s",
		                  language, list);
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

/* Packages must be there already. */
static int check_packages(const struct call *call, const char *language, struct error *err)
{
	cleanup_json json_t *wanted = json_array(), *read = NULL, *found = NULL;
	json_t *names = json_array();

	json_set(call->asked, "packages_installed", names);
	for (char **package = call->args.packages; package && *package; package++) {
		(void)!json_array_append_new(wanted, split_package(*package));
		(void)!json_array_append_new(names, json_string(*package));
	}
	if (json_array_size(wanted) == 0)
		return 0;
	if (!str_equal(language, "python"))
		return error_field(err, "packages",
		                   "of %.32s cannot be installed: there is no network. Use a "
		                   "template that has them",
		                   language);
	read = dependencies_read("packages", wanted, err);
	if (!read)
		return -1;
	found = dependencies_resolve(call->router->parts.packages, read, err);
	if (!error_is_set(err))
		return 0;
	(void)!str_copy(err->field, sizeof(err->field), "packages");
	return -1;
}

/* Without values, take_flags checks. */
static const struct {
	const char *language, *name;
	const char *values[4];
} options[] = {
	{"python", "use_venv", {"false"}},
	{"python", "python_cmd", {"python3", "python"}},
	{"shell", "shell", {"bash", "sh"}},
	{"shell", "set_flags", {NULL}},
};

static int check_option(const char *language, const char *name, const char *value,
                        struct error *err)
{
	char field[64];

	(void)snprintf(field, sizeof(field), "options.%.48s", name);
	if (!value)
		return error_field(err, field, "must be a string");
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (!str_equal(options[i].language, language) || !str_equal(options[i].name, name))
			continue;
		if (!options[i].values[0])
			return 0;
		for (const char *const *v = options[i].values; *v; v++)
			if (str_equal(*v, value))
				return 0;
		return error_field(err, field, "must be \"%s\"", options[i].values[0]);
	}
	return error_field(err, field, "is not an option of %.32s", language);
}

/* "-euo pipefail": nothing that ends the command. */
static int take_flags(const char *flags, struct run_request *request, struct error *err)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-+ ";
	char *code;

	if (flags[strspn(flags, good)] || (flags[0] != '-' && flags[0] != '+'))
		return error_field(err, "options.set_flags", "must be like \"-euo pipefail\"");
	code = xasprintf("set %s\n%s", flags, request->code);
	free(request->code);
	request->code = code;
	request->code_len = strlen(code);
	return 0;
}

static int take_options(struct call *call, const char *language, struct error *err)
{
	json_t *given = call->args.options;
	const char *name, *flags;
	json_t *value;

	json_object_foreach (given, name, value)
		if (check_option(language, name, json_string_value(value), err) < 0)
			return -1;
	flags = json_string_value(json_object_get(given, "set_flags"));
	return flags && *flags ? take_flags(flags, &call->args.exec.request, err) : 0;
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
	if (check_packages(call, runner->name, err) < 0 ||
	    decode_handler_end(&call->args.exec, err) < 0 ||
	    (dir && tool_clean_path(dir, "working_dir", path, err) < 0))
		return -1;
	json_set(call->asked, "working_dir",
	         json_sprintf("/workspace%s%s", *path ? "/" : "", path));
	if (*path)
		request->cwd = xstrdup(path);
	return take_options(call, runner->name, err);
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

static void cancel_run(void *work)
{
	run_watch_cancel(work);
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
	struct error err = {0};

	if (session)
		session_info(session, &info);
	if (session && info.state == SESSION_PAUSED) {
		/* It would wait until the sandbox is started. */
		(void)error_set(&err, ERR_CONFLICT, 0, "sandbox %s is stopped: start it first",
		                info.id);
	} else if (complete_request(call, stays ? info.language : NULL, &err) == 0) {
		request->fresh = session && (!stays || request->cwd);
		(void)!op_run_start(call->router, &start, &record, &err);
	}
	/* Core has its own copy. */
	decoded_run_done(&call->args.exec);
	call->args.exec = (struct decoded_run){0};
	if (!record) {
		tool_refuse(call, &err);
		return;
	}
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
