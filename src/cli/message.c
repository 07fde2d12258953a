/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/message.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

static const char *command_name = "run";

void message_set_command(const char *name)
{
	command_name = name;
}

void message_print_safe(FILE *out, const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		/* U+0080 to U+009F: 0xC2 and a byte in UTF-8. */
		bool is_c1_control = p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0;

		if (*p == '\n' || *p == '\t')
			(void)fputc(' ', out);
		else
			(void)fputc(iscntrl(*p) || is_c1_control ? '?' : *p, out);
		p += is_c1_control;
	}
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
	{"policy", "--policy"},
	{"template_id", "--template"},
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
	{ERR_BUSY, "try again in a moment"},
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
	{ERR_EXECUTION_NOT_FOUND,
         "check the id: 'millibox execution list SESSION'; those of 'millibox run' are not kept"},
};

/* Of a conflict, by what the daemon says about it. */
static const struct {
	const char *detail; /* a part of it */
	const char *remedy;
} conflicts[] = {
	{"directory is not empty", "use -r to remove it with everything in it"},
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
	if (str_equal(error_text(ERR_CONFLICT), code))
		for (size_t i = 0; i < ARRAY_SIZE(conflicts); i++)
			if (strstr(detail, conflicts[i].detail))
				return conflicts[i].remedy;
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
		(void)fprintf(stderr, "Try 'millibox %s --help'.\n", command_name);
		return true;
	}
	return false;
}

void message_show_problem(const json_t *problem)
{
	const char *description = message_text(problem, "description");
	const char *code = message_text(problem, "error_code");
	const char *remedy = find_remedy(code, message_text(problem, "error_detail"));

	if (str_equal(code, error_text(ERR_INVALID)) &&
	    show_invalid_option(message_text(problem, "field"),
	                        message_text(problem, "error_detail")))
		return;
	if (!*description)
		description = *code ? code : "the daemon rejected the request without a reason";
	message_show("%s", description);
	print_member(problem, "error_detail", "");
	if (remedy)
		(void)fprintf(stderr, "  What to do: %s\n", remedy);
	else if (!str_equal(error_text(ERR_INVALID), code))
		print_member(problem, "solution", "What to do: ");
	print_member(problem, "request_id", "Request: ");
}

void message_show_warnings(const json_t *answer)
{
	const json_t *warning;
	size_t i;

	json_array_foreach (json_object_get(answer, "warnings"), i, warning)
		message_show("warning: %s", json_string_value(warning));
}

void message_print_json(const json_t *object)
{
	/* The API writes 15 digits; more would show rounding errors. */
	cleanup_free char *text =
		json_dumps(object, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15) |
	                                   JSON_ENCODE_ANY);

	if (!text)
		abort();
	(void)puts(text);
}
