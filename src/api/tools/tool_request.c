/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_run.h"

#include "api/internal.h"
#include "api/json/decode_fields.h"
#include "api/json/dependencies.h"
#include "api/json/json.h"
#include "api/tools/detect.h"
#include "api/tools/tool_internal.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/language/runners.h"
#include "core/request/workpath.h"

/* What a tool that runs a program checks after its arguments were decoded. */

static const char *choose_language(const struct call *call, const char *fallback)
{
	const struct decoded_exec *exec = &call->args.exec;

	if (call->tool->language)
		return call->tool->language;
	if (exec->request.language)
		return exec->request.language;
	if (fallback)
		return fallback;
	return exec->event ? "python" : detect_language(exec->request.code, exec->request.code_len);
}

int tool_clean_path(const char *path, const char *field, char ret_path[WORKPATH_MAX + 1],
                    struct error *err)
{
	static const char workspace[] = "/workspace";
	size_t len = sizeof(workspace) - 1;

	if (strncmp(path, workspace, len) == 0 && (path[len] == '\0' || path[len] == '/'))
		path += len;
	else if (path[0] == '/')
		return error_field(err, field, "'%.80s' is outside of /workspace", path);
	return workpath_clean(path, WORKPATH_STRIP, field, ret_path, err);
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

/* Nothing is installed: the packages must be there. */
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

/* Options of languages and their values. Without a list, take_flags checks the value. */
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

/* "-euo pipefail": letters and words, nothing that ends the command. */
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

int tool_run_prepare(struct call *call, const char *language, struct error *err)
{
	const struct runner *runner = tool_runner(call, choose_language(call, language), err);
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
