/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_run.h"

#include "api/internal.h"
#include "api/json/decode.h"
#include "api/json/json.h"
#include "api/op/dependencies.h"
#include "api/tools/detect.h"
#include "api/tools/tool_internal.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/language/runners.h"
#include "core/request/workpath.h"

/*
 * Theory of operation. The arguments become the body of POST /api/v1/execute, and go the way of
 * one: what is checked there is checked here, by the same code. What that body has not (directory,
 * packages, options) is looked at before.
 */

#define PACKAGES_MAX 50

/* An argument, and what the control plane calls it. */
static const struct {
	const char *argument, *field;
} names[] = {
	{"code", "code"},         {"command", "code"},    {"stdin", "stdin"},
	{"args", "args"},         {"files", "files"},     {"environment", "env_vars"},
	{"env_vars", "env_vars"}, {"timeout", "timeout"}, {"event", "event"},
};

static void rename_field(const struct call *call, struct error *err)
{
	size_t base = strcspn(err->field, ".[");
	char rest[sizeof(err->field)];

	(void)!str_copy(rest, sizeof(rest), err->field + base);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i].field) == base &&
		    strncmp(err->field, names[i].field, base) == 0 &&
		    tool_value(call, names[i].argument)) {
			(void)!str_format(err->field, sizeof(err->field), "%s%s", names[i].argument,
			                  rest);
			return;
		}
}

static const char *choose_language(const struct call *call, const char *fallback)
{
	const char *code = tool_text(call, "code");

	if (call->tool->language)
		return call->tool->language;
	if (tool_text(call, "language"))
		return tool_text(call, "language");
	if (fallback)
		return fallback;
	return tool_value(call, "event") || !code ? "python" : detect_language(code, strlen(code));
}

/* "/workspace/x", "x", ".": where a program starts. */
int tool_clean_path(const char *path, const char *field, char ret_path[WORKPATH_MAX + 1],
                    struct error *err)
{
	static const char workspace[] = "/workspace";
	size_t len = sizeof(workspace) - 1;

	if (strncmp(path, workspace, len) == 0 && (path[len] == '\0' || path[len] == '/'))
		path += len;
	else if (path[0] == '/')
		return error_field(err, field,
		                   "'%.80s' is outside: files are in /workspace and below it",
		                   path);
	return workpath_clean(path, WORKPATH_STRIP, field, ret_path, err);
}

static int take_directory(const struct call *call, struct run_request *request, struct error *err)
{
	const char *dir = tool_text(call, "working_dir");
	char path[WORKPATH_MAX + 1] = "";

	if (dir && tool_clean_path(dir, "working_dir", path, err) < 0)
		return -1;
	json_set(call->asked, "working_dir",
	         json_sprintf("/workspace%s%s", *path ? "/" : "", path));
	if (*path)
		request->cwd = xstrdup(path);
	return 0;
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

/* Nothing is installed: what is asked for has to be there. */
static int check_packages(const struct call *call, const char *language, struct error *err)
{
	const json_t *list = tool_value(call, "packages");
	cleanup_json json_t *wanted = json_array(), *read = NULL, *found = NULL;

	json_set(call->asked, "packages_installed", json_array());
	if (json_array_size(list) == 0)
		return 0;
	if (!str_equal(language, "python"))
		return error_field(err, "packages",
		                   "of %.32s cannot be installed: there is no network. Use a "
		                   "template that has them",
		                   language);
	for (size_t i = 0; i < json_array_size(list); i++)
		(void)!json_array_append_new(
			wanted, split_package(json_string_value(json_array_get(list, i))));
	read = dependencies_read("packages", wanted, err);
	if (!read)
		return -1;
	found = dependencies_resolve(call->router->parts.packages, read, err);
	if (error_is_set(err)) {
		(void)!str_copy(err->field, sizeof(err->field), "packages");
		return -1;
	}
	json_set(call->asked, "packages_installed", json_copy((json_t *)(uintptr_t)list));
	return 0;
}

/* What may be asked of how a language is run. Where there is no list, anything goes into the
 * program's first line. */
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
	return error_field(err, field, "is not an option of %.32s here", language);
}

/* "-euo pipefail": letters and words, nothing that ends the command. */
static int take_flags(const char *flags, struct run_request *request, struct error *err)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-+ ";
	char *code;

	if (flags[strspn(flags, good)] || (flags[0] != '-' && flags[0] != '+'))
		return error_field(err, "options.set_flags", "must be such as \"-euo pipefail\"");
	code = xasprintf("set %s\n%s", flags, request->code);
	free(request->code);
	request->code = code;
	request->code_len = strlen(code);
	return 0;
}

static int take_options(const struct call *call, const char *language, struct run_request *request,
                        struct error *err)
{
	json_t *given = json_object_get(call->arguments, "options");
	const char *name, *flags;
	json_t *value;

	json_object_foreach (given, name, value)
		if (check_option(language, name, json_string_value(value), err) < 0)
			return -1;
	flags = json_string_value(json_object_get(given, "set_flags"));
	return flags && *flags ? take_flags(flags, request, err) : 0;
}

static json_t *make_body(const struct call *call, const char *language)
{
	json_t *body = json_object();

	json_set(body, "language", json_string(language));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_t *value = json_object_get(call->arguments, names[i].argument);

		if (value)
			json_set(body, names[i].field, json_incref(value));
	}
	return body;
}

static int decode(const struct call *call, const char *language, struct run_request *ret_request,
                  struct error *err)
{
	const struct decode_limits limits = {call->router->config->max_code_bytes};
	cleanup_decoded_exec struct decoded_exec decoded = {0};
	cleanup_json json_t *body = make_body(call, language);

	if (decode_exec_object(body, &limits, &decoded, err) < 0) {
		rename_field(call, err);
		return -1;
	}
	*ret_request = decoded.request;
	decoded.request = (struct run_request){0};
	return 0;
}

int tool_run_request(struct call *call, const char *language, struct run_request *ret_request,
                     struct error *err)
{
	const struct runner *runner = tool_runner(call, choose_language(call, language), err);
	json_t *command = json_object_get(call->arguments, "command");

	if (!runner)
		return -1;
	call->asked = json_object();
	json_set(call->asked, "language", json_string(runner->name));
	if (command)
		json_set(call->asked, "command", json_incref(command));
	if (check_packages(call, runner->name, err) < 0 ||
	    decode(call, runner->name, ret_request, err) < 0 ||
	    take_directory(call, ret_request, err) < 0 ||
	    take_options(call, runner->name, ret_request, err) < 0)
		return -1;
	ret_request->request_id = xstrdup(call->request_id);
	ret_request->tenant = call->principal.tenant;
	ret_request->key_id = call->principal.key_id;
	return 0;
}
