/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/remedy.h"

#include "base/attr.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>

/* Others are for every reader. */
static const struct {
	enum error_code code;
	const char *brief;
	const char *full; /* NULL: the same */
} remedies[] = {
	{ERR_INVALID, "Correct this argument and call the tool again.", NULL},
	{ERR_UNKNOWN_FIELD,
         "Correct its name or leave it out; more_tools with the tool's name as query describes "
         "every argument.",
         "Correct its name or leave it out; the tool's inputSchema describes every argument."},
	{ERR_NOT_FOUND, "Call more_tools: without a query it lists all tools.",
         "Call a tool of the list of tools."},
	{ERR_CONFLICT,
         "Wait for the state in the message, or create a session with manage_session.",
         "Wait for the state in the message, or call create_sandbox."},
	{ERR_SESSION_NOT_FOUND,
         "Call manage_session: action list shows your sessions, create makes one.",
         "Call list_sandboxes to see your sandboxes, or create_sandbox."},
	{ERR_FILE_NOT_FOUND, "Call list_files to see the files of the session.",
         "Call list_files to see the files of the sandbox."},
	{ERR_EXECUTION_NOT_FOUND,
         "Use the execution_id that a shortened result names, or run the program again.", NULL},
	{ERR_TEMPLATE_NOT_FOUND, "Use a template that the schema of manage_session lists.",
         "Leave out image, or give the id of a template, such as python-basic."},
	{ERR_DENIED, "Ask only for what the message allows; the rules are the operator's.", NULL},
	{ERR_NO_LANGUAGE,
         "Use another language (list_languages lists them), or tell the user that this command "
         "installs it.",
         NULL},
	{ERR_NO_SCOPE, "Tell the user: the key of this connection lacks the scope.", NULL},
	{ERR_QUOTA,
         "End sessions that are no longer needed with manage_session, or tell the user that the "
         "operator can raise the quota.",
         "End sandboxes that are no longer needed with terminate_sandbox, or tell the user that "
         "the operator can raise the quota."},
	{ERR_DISK_FULL,
         "Remove files with exec_command, or create a session with more memory_limit.",
         "Remove files with exec_command, or create a sandbox with a larger disk_limit."},
	{ERR_BUSY, "Do what the message says before you call the tool again.", NULL},
	{ERR_UNAVAILABLE, "Tell the user: the server lacks what this needs.", NULL},
	{ERR_BOX_FAILED, "Call the tool again; if it fails again, tell the user.", NULL},
	{ERR_AGENT_LOST,
         "The program may have run in part, and may have ended its own box: call the tool again "
         "only if running it twice does no harm.",
         NULL},
	{ERR_CONFIG, "Tell the user: the operator must correct the configuration.", NULL},
	{ERR_SYSTEM, "Tell the user: the log of the server has the details.", NULL},
};

const char *remedy_of(const struct error *err, bool brief)
{
	enum error_code code = err->code;

	if (err->retry_s > 0)
		return "Call the tool again in some seconds.";
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
		if (remedies[i].code == code)
			return brief || !remedies[i].full ? remedies[i].brief : remedies[i].full;
	return error_solution(code);
}

const char *remedy_describe(enum error_code code)
{
	return code == ERR_INVALID         ? "An argument has an invalid value."
	       : code == ERR_UNKNOWN_FIELD ? "The tool has no such argument."
	                                   : error_describe(code);
}

void remedy_name_argument(struct error *err)
{
	static const char field[] = "no such field", argument[] = "no such argument";
	char rest[sizeof(err->msg)];
	char *at = strstr(err->msg, field);

	if (!at)
		return;
	(void)!str_copy(rest, sizeof(rest), at + strlen(field));
	(void)snprintf(at, sizeof(err->msg) - (size_t)(at - err->msg), "%s%s", argument, rest);
}

void remedy_add_text(const char *text, struct buf *to)
{
	static const struct {
		const char *field, *argument;
	} names[] = {
		{"resources.memory", "memory_limit"},
		{"resources.disk", "disk_limit"},
		{"resources.cpu", "cpu_limit"},
	};

	while (*text) {
		size_t i = 0;

		while (i < ARRAY_SIZE(names) && !str_has_prefix(text, names[i].field))
			i++;
		if (i == ARRAY_SIZE(names)) {
			(void)!buf_add(to, text++, 1);
			continue;
		}
		(void)!buf_add_str(to, names[i].argument);
		text += strlen(names[i].field);
	}
}
