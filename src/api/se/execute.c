/* SPDX-License-Identifier: Apache-2.0 */
#include "api/se/se.h"

#include "api/json/encode.h"
#include "api/json/fields.h"
#include "api/json/json.h"
#include "api/json/report.h"
#include "api/op/run.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/request/workpath.h"
#include "core/run/run.h"
#include "core/session/session.h"
#include "json/json_dump.h"
#include <string.h>

/*
 * Theory of operation. Each program runs in a new process in the session's box: only files stay, as
 * clients expect. A client that leaves does not end its program.
 */

#define TIMED_OUT   124
#define OUTPUTS_MAX 100

static json_int_t return_code(const struct outcome *o)
{
	return o->status == OUTCOME_TIMEOUT ? TIMED_OUT
	       : o->exited || o->signal     ? o->exit_code
	                                    : -1;
}

static json_t *output_text(const struct buf *b)
{
	return json_text(b->data ? b->data : "", b->len);
}

/* @ctx not NULL: variables were requested. */
static void answer_run(void *ctx, struct http_request *req, const struct run_record_info *run)
{
	cleanup_report struct report report = {0};
	const struct outcome *o = run->outcome;
	json_t *j = json_object();

	encode_result_report(o, &report);
	json_set(j, "stdout", output_text(&o->out));
	json_set(j, "stderr", output_text(&o->err));
	json_set(j, "returncode", json_integer(return_code(o)));
	json_set(j, "exit_code", json_integer(return_code(o)));
	json_set(j, "status", json_string(outcome_status_name(o->status)));
	if (ctx)
		json_set(j, "output_variables",
		         json_is_object(report.result) ? json_incref(report.result)
		                                       : json_object());
	se_reply(req, j, NULL);
}

static const struct run_encoder encoder = {.answer = answer_run};

static void run_in_session(struct router *r, struct http_request *req,
                           const struct route_args *args, const struct run_request *request,
                           bool has_outputs)
{
	struct op_run_start start = {
		.request = request, .who = args->principal, .request_id = http_request_id(req)};
	struct run_record *record;
	struct error err = {0};

	start.session = se_session(r, req, args);
	if (!start.session)
		return;
	if (op_run_is_paused(start.session))
		(void)error_set(&err, ERR_CONFLICT, 0,
		                "session %.64s is paused, so the result would not come: resume it "
		                "with POST /api/v1/sessions/%.64s/resume",
		                args->id, args->id);
	if (error_is_set(&err) || op_run_start(r, &start, &record, &err) < 0)
		reply_error(req, &err);
	else
		run_reply(r, req, record,
		          &(struct run_reply){.encoder = &encoder,
		                              .ctx = has_outputs ? xstrdup("outputs") : NULL});
}

/* Bodies of both routes. */
struct program {
	struct run_request request;
	char *command, *filename;
	enum script_type {
		SCRIPT_PYTHON,
		SCRIPT_SHELL,
		SCRIPT_BASH,
		SCRIPT_SH,
	} type;
	char **outputs;
};

/* Strings; numbers become strings. */
static int take_args(const struct field_value *v)
{
	struct program *p = v->out;
	size_t count = json_array_size(v->value);
	char **args;

	if (!json_is_array(v->value))
		return fields_wrong(v, "a list of strings");
	args = p->request.args = xcalloc(count + 1, sizeof(*args));
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_array_get(v->value, i);

		if (json_is_string(item) &&
		    !memchr(json_string_value(item), '\0', json_string_length(item)))
			args[i] = xstrdup(json_string_value(item));
		else if (json_is_number(item))
			args[i] = json_dump_text(item, 0);
		else
			return fields_wrong(v, "a list of strings");
	}
	return 0;
}

static const char *const script_types[] = {"python", "shell", "bash", "sh", NULL};

/* clang-format off */
#define COMMON_ROWS \
	{"args", FIELD_CUSTOM, .check = take_args, .schema = "{\"type\": \"array\", \"items\": {\"type\": [\"string\", \"number\"]}}"}, \
	{"timeout", FIELD_SECONDS, AT(struct program, request.timeout_us), .min = 0.001, .what = "a number of seconds", .fallback = "300", .schema = "{\"minimum\": null}"}

const struct fields se_execute_fields = {
	.name = "SeExecute",
	.flags = FIELDS_OPEN | FIELDS_LOOSE,
	.rows = (const struct field[]){
		{"command", FIELD_STRING, AT(struct program, command), .required = true, .min = 1, .description = "A program. With blanks and without `args`: a line for the shell."},
		COMMON_ROWS,
		FIELDS_END,
	},
};

const struct fields se_execute_code_fields = {
	.name = "SeExecuteCode",
	.flags = FIELDS_OPEN | FIELDS_LOOSE,
	.rows = (const struct field[]){
		{"code", FIELD_STRING, AT_LEN(struct program, request.code, request.code_len), .required = true, .min = 1},
		{"filename", FIELD_STRING, AT(struct program, filename), .description = "Path of the script in the workspace."},
		{"script_type", FIELD_ENUM, AT(struct program, type), .words = script_types, .what = "python or shell", .fallback = "\"python\""},
		{"output_params", FIELD_STRINGS, AT(struct program, outputs), .max = OUTPUTS_MAX, .description = "Variables to return after the run."},
		COMMON_ROWS,
		FIELDS_END,
	},
};
/* clang-format on */

static void program_done(struct program *p)
{
	run_request_done(&p->request);
	free(p->command);
	free(p->filename);
	str_list_free(p->outputs);
}

/* A command with blanks and without arguments is a line for the shell; others are programs. */
static void complete_command(struct program *p)
{
	struct run_request *request = &p->request;
	size_t count = request->args ? str_list_count(request->args) : 0;
	char **args = NULL;

	request->language = xstrdup("shell");
	if (count == 0 && strpbrk(p->command, " \t\n|&;<>")) {
		request->code = TAKE_PTR(p->command);
	} else {
		args = xcalloc(count + 2, sizeof(*args));
		args[0] = TAKE_PTR(p->command);
		for (size_t i = 0; i < count; i++)
			args[i + 1] = request->args[i];
		free(request->args);
		request->args = args;
		request->code = xstrdup("exec \"$@\"");
	}
	request->code_len = strlen(request->code);
}

void se_execute(struct router *r, struct http_request *req, const struct route_args *args)
{
	attr_cleanup(program_done) struct program p = {.request = {.fresh = true}};

	if (se_decode(req, args, &se_execute_fields, &p) < 0)
		return;
	complete_command(&p);
	run_in_session(r, req, args, &p.request, false);
}

static bool ends_with(const char *text, const char *ending)
{
	size_t len = strlen(text), more = strlen(ending);

	return len >= more && str_equal(text + len - more, ending);
}

/* The script stays in the workspace under its name. */
static int take_file(struct program *p, struct error *err)
{
	const char *ending = p->type == SCRIPT_PYTHON ? ".py" : ".sh";
	struct run_request *request = &p->request;
	char path[WORKPATH_MAX + 1];
	cleanup_free char *own =
		xasprintf("script_%llu%s", (unsigned long long)clock_real_ms(), ending);

	if (workpath_clean(p->filename && *p->filename ? p->filename : own, WORKPATH_STRIP,
	                   "filename", path, err) < 0)
		return -1;
	if (!*path)
		return error_field(err, "filename", "is not the name of a file");
	request->files = xcalloc(1, sizeof(*request->files));
	request->files_count = 1;
	request->files[0].name =
		ends_with(path, ending) ? xstrdup(path) : xasprintf("%s%s", path, ending);
	request->files[0].data = xstrdup(request->code);
	request->files[0].len = request->code_len;
	return 0;
}

/* The program's name, and variables that are read after it. */
static void ask_runner(struct program *p)
{
	json_t *ask = json_object(), *list = json_array();

	json_set(ask, "name", encode_text(p->request.files[0].name));
	for (char **name = p->outputs; name && *name; name++)
		json_append(list, encode_text(*name));
	if (json_array_size(list) > 0)
		json_set(ask, "outputs", json_incref(list));
	json_decref(list);
	p->request.ask = json_dump_text(ask, JSON_COMPACT);
	json_decref(ask);
}

/* The shell runs the file itself, so that $0 and messages name it. */
static void run_file(struct program *p)
{
	struct run_request *request = &p->request;
	size_t count = request->args ? str_list_count(request->args) : 0;
	char **args = xcalloc(count + 2, sizeof(*args));

	args[0] = xstrdup(request->files[0].name);
	for (size_t i = 0; i < count; i++)
		args[i + 1] = request->args[i];
	free(request->args);
	request->args = args;
	free(request->code);
	request->code = xstrdup("exec \"$BASH\" -- \"$@\"");
	request->code_len = strlen(request->code);
}

void se_execute_code(struct router *r, struct http_request *req, const struct route_args *args)
{
	attr_cleanup(program_done) struct program p = {.request = {.fresh = true}};
	struct error err = {0};
	bool has_outputs;

	if (se_decode(req, args, &se_execute_code_fields, &p) < 0)
		return;
	has_outputs = p.outputs && p.outputs[0];
	if (has_outputs && p.type != SCRIPT_PYTHON)
		(void)error_field(&err, "output_params", "is for Python programs only");
	if (error_is_set(&err) || take_file(&p, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	p.request.language = xstrdup(p.type == SCRIPT_PYTHON ? "python" : "shell");
	if (p.type == SCRIPT_PYTHON)
		ask_runner(&p);
	else
		run_file(&p);
	run_in_session(r, req, args, &p.request, has_outputs);
}
