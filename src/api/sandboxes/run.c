/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/decode_fields.h"
#include "api/json/json.h"
#include "api/reply.h"
#include "api/tools/tool_internal.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include <math.h>
#include <string.h>

#define COMMAND_MAX (1u << 20)
#define TIMEOUT_MIN 0.001
#define TIMEOUT_MAX 300.0

static int take_timeout(const struct field_value *v)
{
	struct sandboxes_program *p = v->out;
	double seconds;

	if (sandboxes_seconds(v->value, v->path, &seconds, v->err) < 0)
		return -1;
	if (!(seconds >= TIMEOUT_MIN && seconds <= TIMEOUT_MAX))
		return fields_wrong(v, "0.001 to 300 seconds");
	p->args.exec.request.timeout_us = (uint64_t)ceil(seconds * USEC_PER_SEC);
	return 0;
}

/* clang-format off */
#define INTO(member)          AT(struct sandboxes_program, member)
#define INTO_LEN(member, len) AT_LEN(struct sandboxes_program, member, len)
#define COMMON_ROWS(seconds) \
	{"environment", FIELD_ENV, INTO(args.exec.request.env)}, \
	{"working_dir", FIELD_STRING, INTO(args.working_dir), .schema = "{\"default\": \"/workspace\"}"}, \
	{"timeout", FIELD_CUSTOM, .check = take_timeout, .fallback = seconds, .schema = "{\"type\": [\"number\", \"string\"]}", .description = "At most 300 seconds; or nanoseconds (Go), or text such as 30s."}, \
	{"stream", FIELD_BOOL, INTO(stream), .schema = "{\"default\": false}"}, \
	{"input", FIELD_STRING, INTO_LEN(args.exec.request.stdin_data, args.exec.request.stdin_len), .description = "Standard input."}

const struct fields sandboxes_exec_fields = SANDBOXES_FIELDS("SandboxExec",
	{"command", FIELD_STRING, INTO_LEN(args.exec.request.code, args.exec.request.code_len), .required = true, .check = decode_check_code, .description = "A line for the shell; with `args`, its beginning."},
	{"args", FIELD_STRINGS, INTO(args.exec.request.args), .description = "Each is passed as one word."},
	COMMON_ROWS("30"));
const struct fields sandboxes_code_fields = SANDBOXES_FIELDS("SandboxCode",
	{"code", FIELD_STRING, INTO_LEN(args.exec.request.code, args.exec.request.code_len), .required = true, .min = 1, .check = decode_check_code},
	{"language", FIELD_STRING, INTO(args.exec.request.language)},
	{"filename", FIELD_STRING, INTO(args.exec.file_name)},
	{"packages", FIELD_STRINGS, INTO(args.packages), .description = "Packages that the program needs. Missing ones are installed first, if the operator allows it."},
	COMMON_ROWS("60"));
/* clang-format on */

/* For a shell command. Return: 0, or -1: too long. */
static int quote(struct buf *b, const char *word)
{
	int r = buf_add_str(b, " '");

	for (; r == 0 && *word; word++)
		r = *word == '\'' ? buf_add_str(b, "'\\''") : buf_add(b, word, 1);
	return r < 0 ? -1 : buf_add_str(b, "'");
}

/* Arguments become words of the command line. */
static int complete_exec(struct sandboxes_program *p, struct error *err)
{
	struct run_request *request = &p->args.exec.request;
	cleanup_str_list char **words = TAKE_PTR(request->args);
	cleanup_buf struct buf b = BUF_INIT(COMMAND_MAX);
	int r = buf_add_str(&b, request->code);

	for (char **word = words; r == 0 && word && *word; word++)
		r = quote(&b, *word);
	if (r < 0)
		return error_field(err, "args", "and command must have at most %u bytes",
		                   COMMAND_MAX);
	if (b.len == 0)
		return error_field(err, "command", "must not be empty");
	free(request->code);
	request->code = buf_take(&b, &request->code_len);
	return 0;
}

void sandboxes_program_done(struct sandboxes_program *p)
{
	tool_args_done(&p->args);
}

static void finish_view(json_t *j, const struct sandboxes_done *done)
{
	const json_t *result = done->structured;
	double seconds = json_number_value(json_object_get(result, "duration"));

	json_set(j, "exit_code", json_incref(json_object_get(result, "exit_code")));
	/* Go's clients read whole nanoseconds. */
	json_set(j, "duration", json_integer((json_int_t)(seconds * 1e9)));
	json_set(j, "duration_ms", json_real(seconds * 1e3));
	json_set(j, "timed_out", json_incref(json_object_get(result, "timed_out")));
	json_set(j, "is_error", json_boolean(done->is_error));
	json_set(j, "execution_id", json_incref(json_object_get(result, "execution_id")));
	json_set(j, "timestamp", sandboxes_now());
	json_set(j, "metadata", sandboxes_metadata(done));
}

static json_t *render_exec(const struct sandboxes_done *done)
{
	const json_t *result = done->structured;
	json_t *j = json_object();

	json_set(j, "stdout", json_incref(json_object_get(result, "stdout")));
	json_set(j, "stderr", json_incref(json_object_get(result, "stderr")));
	finish_view(j, done);
	return j;
}

static json_t *render_code(const struct sandboxes_done *done)
{
	const json_t *result = done->structured;
	json_t *j = render_exec(done), *why = json_object_get(result, "error_message");
	json_t *err = json_object_get(result, "stderr");
	const char *printed = json_string_value(err);

	json_set(j, "output", json_incref(json_object_get(result, "stdout")));
	if (!done->is_error)
		json_set(j, "error", json_string(""));
	else
		json_set(j, "error", json_incref(printed && *printed ? err : why));
	json_set(j, "language", json_incref(json_object_get(result, "language")));
	return j;
}

const struct sandboxes_program_kind sandboxes_exec_kind = {"exec_command", &sandboxes_exec_fields,
                                                           complete_exec, render_exec};
const struct sandboxes_program_kind sandboxes_code_kind = {"run_generic", &sandboxes_code_fields,
                                                           NULL, render_code};

static void run_program(struct router *r, struct http_request *req, const struct route_args *args,
                        const struct sandboxes_program_kind *kind)
{
	cleanup_sandboxes_program struct sandboxes_program p = {0};
	struct error err = {0};

	if (!sandboxes_find(r, req, args, SANDBOXES_V1) ||
	    sandboxes_decode(r, req, args, kind->fields, &p) < 0)
		return;
	http_drop_body(req);
	if (kind->complete && kind->complete(&p, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	p.args.sandbox_id = xstrdup(args->id);
	sandboxes_call(r, req, args,
	               &(struct sandboxes_call){.tool = kind->tool,
	                                        .args = &p.args,
	                                        .render = kind->render,
	                                        .stream = p.stream,
	                                        .strict = true});
}

void sandboxes_exec(struct router *r, struct http_request *req, const struct route_args *args)
{
	run_program(r, req, args, &sandboxes_exec_kind);
}

void sandboxes_run_code(struct router *r, struct http_request *req, const struct route_args *args)
{
	run_program(r, req, args, &sandboxes_code_kind);
}
