/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandboxes/sandboxes.h"

#include "api/json/json.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include <string.h>

#define COMMAND_MAX (1u << 20)
#define NS_PER_US   1000

/* Fields are data, however long their lines. */
/* clang-format off */
const struct tool_field sandboxes_exec_fields[] = {
	{"command",     TOOL_STRING,  true,  "A line for the shell; with args, a program"},
	{"args",        TOOL_STRINGS, false, "Arguments, as they are"},
	{"environment", TOOL_OBJECT,  false, "NAME: value"},
	{"working_dir", TOOL_STRING,  false, "Where it starts"},
	{"timeout",     TOOL_ANY,     false, "How long it may take"},
	{"stream",      TOOL_BOOLEAN, false, "Answer with events"},
	{"input",       TOOL_STRING,  false, "Standard input"},
	{NULL},
};

const struct tool_field sandboxes_code_fields[] = {
	{"code",        TOOL_STRING,  true,  "The program"},
	{"language",    TOOL_STRING,  false, "What it is written in"},
	{"filename",    TOOL_STRING,  false, "Its name: tells the language where that is not said"},
	{"environment", TOOL_OBJECT,  false, "NAME: value"},
	{"packages",    TOOL_STRINGS, false, "That it needs"},
	{"timeout",     TOOL_ANY,     false, "How long it may take"},
	{"stream",      TOOL_BOOLEAN, false, "Answer with events"},
	{"input",       TOOL_STRING,  false, "Standard input"},
	{"working_dir", TOOL_STRING,  false, "Where it starts"},
	{NULL},
};

/* What the end of a name says. */
static const struct {
	const char *ending, *language;
} endings[] = {
	{".py", "python"}, {".js", "javascript"}, {".mjs", "javascript"}, {".ts", "typescript"}, {".sh", "shell"}, {".bash", "shell"},
	{".go", "go"}, {".rs", "rust"}, {".java", "java"}, {".c", "c"}, {".cc", "cpp"}, {".cpp", "cpp"}, {".cxx", "cpp"}, {".cs", "csharp"},
};
/* clang-format on */

static const char *language_of(const char *filename)
{
	const char *dot = filename ? strrchr(filename, '.') : NULL;

	for (size_t i = 0; dot && i < ARRAY_SIZE(endings); i++)
		if (str_equal(endings[i].ending, dot))
			return endings[i].language;
	return NULL;
}

static void copy_member(json_t *to, const char *key, const json_t *from, const char *member)
{
	json_t *value = json_object_get(from, member);

	if (value)
		json_set(to, key, json_incref(value));
}

/* One word for the shell, whatever is in it. Return: 0 or -1: too long. */
static int quote(struct buf *b, const char *word)
{
	int r = buf_add_str(b, " '");

	for (; r == 0 && *word; word++)
		r = *word == '\'' ? buf_add_str(b, "'\\''") : buf_add(b, word, 1);
	return r < 0 ? -1 : buf_add_str(b, "'");
}

/* Return: owned, or NULL with *err. */
static json_t *command_line(const json_t *body, struct error *err)
{
	cleanup_buf struct buf b = BUF_INIT(COMMAND_MAX);
	const json_t *args = json_object_get(body, "args");
	int r = buf_add_str(&b, json_string_value(json_object_get(body, "command")));

	for (size_t i = 0; r == 0 && i < json_array_size(args); i++)
		r = quote(&b, json_string_value(json_array_get(args, i)));
	if (r < 0)
		(void)error_field(err, "args", "and command must have at most %u bytes",
		                  COMMAND_MAX);
	return r < 0 ? NULL : json_text(b.data ? b.data : "", b.len);
}

/* What both have. Return: owned, or NULL with *err. */
static json_t *begin_arguments(const json_t *body, const char *id, struct error *err)
{
	const json_t *timeout = json_object_get(body, "timeout");
	json_t *j = json_object();
	double seconds;

	json_set(j, "sandbox_id", json_string(id));
	copy_member(j, "environment", body, "environment");
	copy_member(j, "working_dir", body, "working_dir");
	copy_member(j, "stdin", body, "input");
	if (!timeout || json_is_null(timeout))
		return j;
	if (sandboxes_seconds(timeout, "timeout", &seconds, err) == 0) {
		json_set(j, "timeout", json_real(seconds));
		return j;
	}
	json_decref(j);
	return NULL;
}

json_t *sandboxes_exec_arguments(const json_t *body, const char *id, struct error *err)
{
	json_t *j = begin_arguments(body, id, err), *command = j ? command_line(body, err) : NULL;

	if (command) {
		json_set(j, "command", command);
		return j;
	}
	json_decref(j);
	return NULL;
}

json_t *sandboxes_code_arguments(const json_t *body, const char *id, struct error *err)
{
	const char *language = language_of(json_string_value(json_object_get(body, "filename")));
	json_t *j = begin_arguments(body, id, err);

	if (!j)
		return NULL;
	copy_member(j, "code", body, "code");
	copy_member(j, "packages", body, "packages");
	if (language)
		json_set(j, "language", json_string(language));
	copy_member(j, "language", body, "language");
	return j;
}

static void finish_view(json_t *j, const struct sandboxes_done *done)
{
	const json_t *told = done->structured;
	double seconds = json_number_value(json_object_get(told, "duration"));

	json_set(j, "exit_code", json_incref(json_object_get(told, "exit_code")));
	/* Go's clients read whole nanoseconds. */
	json_set(j, "duration", json_integer((json_int_t)(seconds * 1e9)));
	json_set(j, "duration_ms", json_real(seconds * 1e3));
	json_set(j, "timed_out", json_incref(json_object_get(told, "timed_out")));
	json_set(j, "is_error", json_boolean(done->is_error));
	json_set(j, "execution_id", json_incref(json_object_get(told, "execution_id")));
	json_set(j, "timestamp", sandboxes_now());
	json_set(j, "metadata", sandboxes_metadata(done));
}

json_t *sandboxes_render_exec(const struct sandboxes_done *done)
{
	const json_t *told = done->structured;
	json_t *j = json_object();

	json_set(j, "stdout", json_incref(json_object_get(told, "stdout")));
	json_set(j, "stderr", json_incref(json_object_get(told, "stderr")));
	finish_view(j, done);
	return j;
}

json_t *sandboxes_render_code(const struct sandboxes_done *done)
{
	const json_t *told = done->structured;
	json_t *j = sandboxes_render_exec(done), *why = json_object_get(told, "error_message");
	json_t *err = json_object_get(told, "stderr");
	const char *printed = json_string_value(err);

	json_set(j, "output", json_incref(json_object_get(told, "stdout")));
	if (!done->is_error)
		json_set(j, "error", json_string(""));
	else
		json_set(j, "error", json_incref(printed && *printed ? err : why));
	json_set(j, "language", json_incref(json_object_get(told, "language")));
	return j;
}

typedef json_t *arguments_fn(const json_t *body, const char *id, struct error *err);

static void run(struct router *r, struct http_request *req, const struct route_args *args,
                const struct tool_field *fields, arguments_fn *translate,
                struct sandboxes_call *call)
{
	cleanup_json json_t *body = NULL;
	struct error err = {0};

	if (sandboxes_begin(req, SANDBOXES_V1) < 0 || !sandboxes_find(r, req, args))
		return;
	body = sandboxes_body(req, fields);
	if (!body)
		return;
	http_drop_body(req);
	call->arguments = translate(body, args->id, &err);
	if (!call->arguments) {
		reply_error(req, &err);
		return;
	}
	call->stream = json_is_true(json_object_get(body, "stream"));
	call->strict = true;
	sandboxes_call(r, req, args, call);
}

void sandboxes_exec(struct router *r, struct http_request *req, const struct route_args *args)
{
	run(r, req, args, sandboxes_exec_fields, sandboxes_exec_arguments,
	    &(struct sandboxes_call){.tool = "exec_command", .render = sandboxes_render_exec});
}

void sandboxes_run_code(struct router *r, struct http_request *req, const struct route_args *args)
{
	run(r, req, args, sandboxes_code_fields, sandboxes_code_arguments,
	    &(struct sandboxes_call){.tool = "run_generic", .render = sandboxes_render_code});
}
