/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/message.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/plain.h"
#include "base/str.h"
#include "json/json_dump.h"

static const char *command_name = "run";

void message_set_command(const char *name)
{
	command_name = name;
}

static void print_text(FILE *out, const char *data, size_t len, bool keeps_layout)
{
	cleanup_buf struct buf text = BUF_INIT(SIZE_MAX / 2);

	if (plain_add(&text, data, len, keeps_layout) == 0 && text.len > 0)
		(void)fwrite(text.data, 1, text.len, out);
}

void message_print_safe(FILE *out, const char *text)
{
	print_text(out, text, strlen(text), false);
}

void message_print_block(FILE *out, const char *data, size_t len)
{
	print_text(out, data, len, true);
}

void message_show(const char *fmt, ...)
{
	cleanup_free char *line = NULL;
	va_list args;
	int r;

	va_start(args, fmt);
	r = vasprintf(&line, fmt, args);
	va_end(args);
	if (r < 0)
		abort();
	(void)fputs("millibox: ", stderr);
	message_print_safe(stderr, line);
	(void)fputc('\n', stderr);
}

void message_show_error(const struct error *err)
{
	if (err->sys)
		message_show("%s: %s", err->msg, strerror(err->sys));
	else
		message_show("%s", err->msg);
}

const char *message_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void print_member(const json_t *problem, const char *key, const char *label)
{
	const char *text = message_text(problem, key);

	if (!*text)
		return;
	(void)fprintf(stderr, "  %s", label);
	message_print_safe(stderr, text);
	(void)fputc('\n', stderr);
}

/* The option that sets a request's field. */
static const struct {
	const char *field; /* also a prefix of its path */
	const char *name;
	const char *hint; /* instead of the help's; NULL: none */
} option_names[] = {
	{"language", "--language"},
	{"code", "the program"},
	{"stdin", "--stdin"},
	{"args", "the program's arguments"},
	{"files", "--file"},
	{"env_vars", "--env"},
	{"timeout", "--timeout"},
	{"resources.memory", "--memory"},
	{"resources.cpu", "--cpu"},
	{"resources.disk", "--disk"},
	{"resources.max_processes", "--processes"},
	{"resources.max_output", "--max-output"},
	{"network", "--network"},
	{"network_allow", "--allow"},
	{"policy", "--policy"},
	{"template_id", "--template", "'millibox template list' shows all templates."},
	{"secrets", "--secret",
         "'millibox secret list' shows your secrets, 'millibox policy list' the policies "
         "(--policy) "
         "that may allow them."},
	{"mcp", "--mcp", "'millibox gateway list' shows the servers that the policy allows."},
	{"packages", "--package"},
	{"lock", "--lock"},
	{"options", "--option"},
	{"hosts", "--host"},
	{"manager", "--manager"},
	{"mode", "--mode"},
	{"lifetime", "--lifetime"},
	{"status", "--status"},
	{"limit", "--limit"},
};

/* Instead of remedies that name API fields and headers. */
static const struct {
	enum error_code code;
	const char *remedy;
} remedies[] = {
	{ERR_TOO_LARGE, "send a shorter program, smaller files or less standard input"},
	{ERR_BUSY, "nothing was run: do what this says, then try again"},
	{ERR_DENIED, "request only what the policy allows: 'millibox policy explain' shows it"},
	{ERR_UNAUTHENTICATED,
         "set MILLIBOX_API_KEY or MILLIBOX_API_KEY_FILE to a valid key; the operator creates one "
         "with 'millibox key create' on the daemon's Unix socket"},
	{ERR_NO_SCOPE,
         "use a key with this scope ('millibox key create --scopes'), or the daemon's Unix socket "
         "(--socket)"},
	{ERR_QUOTA,
         "end what you no longer need ('millibox session list', 'session delete', 'template "
         "delete'); the operator raises quotas with 'millibox tenant set'"},
	{ERR_DISK_FULL,
         "remove files ('millibox file rm'), or create a session with a larger --disk"},
	{ERR_TEMPLATE_IN_USE,
         "first end its sessions ('millibox session list') and delete the templates on its image"},
	{ERR_SESSION_NOT_FOUND, "check the id: 'millibox session list' shows all sessions"},
	{ERR_KEY_NOT_FOUND, "check the id: 'millibox key list' shows all keys"},
	{ERR_TENANT_NOT_FOUND, "check the name: 'millibox tenant list' shows all tenants"},
	{ERR_FILE_NOT_FOUND, "check the path: 'millibox file ls SESSION' lists the files"},
	{ERR_TEMPLATE_NOT_FOUND, "check the id: 'millibox template list' shows all templates"},
	{ERR_SECRET_NOT_FOUND, "check the name: 'millibox secret list' shows all secrets"},
	{ERR_NO_LANGUAGE,
         "run that command there, or choose another language: 'millibox languages' lists them"},
	{ERR_IMPORT_NOT_FOUND,
         "it may have ended: see 'millibox template list' and 'millibox template imports'"},
	{ERR_UNAVAILABLE, "'millibox doctor' shows what the host lacks"},
	{ERR_BOX_FAILED, "run 'millibox doctor'; the daemon's log has the details"},
	{ERR_CONFIG, "correct the configuration: 'milliboxd --check-config' shows where"},
	{ERR_EXECUTION_NOT_FOUND,
         "check the id: 'millibox execution list SESSION'; only executions of sessions are kept. "
         "For others: 'millibox run --json ... | millibox why -'"},
};

/* By the daemon's words, of errors whose code says less. */
static const struct {
	const char *detail; /* a part of it */
	const char *remedy;
} by_detail[] = {
	{"requests may not name the address",
         "the operator adds this rule to network.request of a policy (docs/network.md)"},
	{"requests may not name",
         "the operator adds the host to network.request of the policy; your own daemon lets you "
         "name public hosts with MILLIBOX_POLICY_DEFAULT=owner in its environment"},
	{"there is no tenant", "create it first: 'millibox tenant create NAME'"},
	{"Is a directory", "use 'millibox file get -r' for a tar archive of it, or 'millibox cp'"},
	{"directory is not empty", "use -r to remove it with everything in it"},
	{"no policy has this name", "check the name: 'millibox policy list' shows all policies"},
	{"no layer of packages has this id",
         "check the id: 'millibox package list' shows all layers"},
	{"has keys; revoke them", "run 'millibox key list' and 'millibox key revoke KEY'"},
	{"cannot be paused", "nothing: only a running or ready session can be paused"},
	{"is paused", "run 'millibox session resume SESSION'"},
	{"move '", "use --replace to replace the target"},
	{" exists", "choose another name, or delete it first"},
	{"has terminated", "create a session: 'millibox session create'"},
	{"is terminated", "create a session: 'millibox session create'"},
	{"has not ended", "wait: 'millibox execution logs --follow EXECUTION'"},
};

static const char *find_remedy(const char *code, const char *detail)
{
	if (str_equal(error_text(ERR_CONFLICT), code) || str_equal(error_text(ERR_INVALID), code) ||
	    str_equal(error_text(ERR_NOT_FOUND), code) || str_equal(error_text(ERR_DENIED), code))
		for (size_t i = 0; i < ARRAY_SIZE(by_detail); i++)
			if (strstr(detail, by_detail[i].detail))
				return by_detail[i].remedy;
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
		if (str_equal(error_text(remedies[i].code), code))
			return remedies[i].remedy;
	return NULL;
}

/* Like a value that the option parser rejects. */
static bool show_invalid_option(const char *field, const char *detail)
{
	size_t len = strlen(field);

	if (strncmp(detail, field, len) != 0 || !str_has_prefix(detail + len, ": "))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(option_names); i++) {
		size_t n = strlen(option_names[i].field);

		if (strncmp(field, option_names[i].field, n) != 0 ||
		    (field[n] && !strchr(".[", field[n])))
			continue;
		/* Keep the name of the file or variable. */
		if (field[n] == '.')
			message_show("%s: %s", option_names[i].name, detail + n + 1);
		else
			message_show("%s%s", option_names[i].name, detail + n);
		if (option_names[i].hint)
			(void)fprintf(stderr, "  What to do: %s\n", option_names[i].hint);
		else
			(void)fprintf(stderr, "Try 'millibox %s --help'.\n", command_name);
		return true;
	}
	return false;
}

static void show_remedy(const json_t *problem)
{
	json_int_t seconds = json_integer_value(json_object_get(problem, "retry_after"));
	const char *code = message_text(problem, "error_code");
	const char *remedy = find_remedy(code, message_text(problem, "error_detail"));

	/* It is this command that showed the rule. */
	if (str_equal(command_name, "policy explain") && str_equal(error_text(ERR_DENIED), code))
		remedy = "ask for less, or ask the operator to change that rule of the policy";
	/* The library has tried again for a while. */
	if (seconds > 0)
		(void)fprintf(stderr,
		              "  What to do: nothing was run; try again in %" JSON_INTEGER_FORMAT
		              " s\n",
		              seconds);
	else if (remedy)
		(void)fprintf(stderr, "  What to do: %s\n", remedy);
	else if (!str_equal(error_text(ERR_INVALID), code))
		print_member(problem, "solution", "What to do: ");
}

void message_show_problem(const json_t *problem)
{
	const char *description = message_text(problem, "description");
	const char *code = message_text(problem, "error_code");

	if (str_equal(code, error_text(ERR_INVALID)) &&
	    show_invalid_option(message_text(problem, "field"),
	                        message_text(problem, "error_detail")))
		return;
	if (!*description)
		description = *code ? code : "the daemon rejected the request without a reason";
	message_show("%s", description);
	print_member(problem, "error_detail", "");
	show_remedy(problem);
	print_member(problem, "request_id", "Request: ");
}

/* "resources.memory: ..." of the API is about --memory here. */
static void show_warning(const char *text)
{
	size_t len = strcspn(text, ":");

	for (size_t i = 0; i < ARRAY_SIZE(option_names); i++) {
		const char *field = option_names[i].field;

		if (strlen(field) == len && strncmp(text, field, len) == 0) {
			message_show("warning: %s%s", option_names[i].name, text + len);
			return;
		}
	}
	message_show("warning: %s", text);
}

void message_show_warnings(const json_t *answer)
{
	const json_t *warning;
	size_t i;

	json_array_foreach (json_object_get(answer, "warnings"), i, warning)
		if (json_is_string(warning))
			show_warning(json_string_value(warning));
}

void message_print_json(const json_t *object)
{
	cleanup_free char *text = json_dump_text(object, JSON_INDENT(2) | JSON_ENSURE_ASCII);

	if (!text)
		abort();
	(void)puts(text);
}
