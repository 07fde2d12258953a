/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tool_internal.h"

#include "base/str.h"
#include "base/suggest.h"
#include "core/config.h"

/* Fields and rows are data, however long their lines. */
/* clang-format off */
#define SANDBOX_ID {"sandbox_id", TOOL_STRING, true, "Which sandbox, as create_sandbox and list_sandboxes tell it"}
#define FIELDS_END {NULL}

static const char *const network_words[] = {"none", "allowlist", "bridge", "host", NULL};

static const struct tool_field create_in[] = {
	{"image",         TOOL_STRING, false, "A template's id (python-basic, python-datascience, shell ...), or the name of a common image such as ubuntu:22.04 or python:3.11, which means the template with the same programs; nothing is pulled", .fallback = "\"ubuntu:22.04\""},
	{"workspace_dir", TOOL_STRING, false, "Always /workspace", .fallback = "\"/workspace\""},
	{"environment",   TOOL_OBJECT, false, "Environment variables of everything that runs in it, NAME: value"},
	{"cpu_limit",     TOOL_ANY,    false, "Cores, as 1 or \"0.5\""},
	{"memory_limit",  TOOL_ANY,    false, "Memory with files included, as \"512Mi\" or \"1G\""},
	{"disk_limit",    TOOL_ANY,    false, "Size of /workspace, as \"256Mi\"; at most half of the memory, which holds it"},
	{"network_mode",  TOOL_STRING, false, "none: there is no network", .words = network_words, .fallback = "\"none\""},
	{"timeout",       TOOL_NUMBER, false, "Seconds without use after which it ends", .min = 1, .max = 604800},
	{"session_id",    TOOL_STRING, false, "An id of your choice: 1 to 64 of A-Z a-z 0-9 _ -"},
	{"policy",        TOOL_STRING, false, "A stricter policy to be held to as well"},
	FIELDS_END,
};
static const struct tool_field create_out[] = {
	{"sandbox_id",   TOOL_STRING, true, "To be given to the other tools"},
	{"session_id",   TOOL_STRING, true, "The same, as execute_code calls it"},
	{"container_id", TOOL_STRING, true, "Of its box"},
	{"status",       TOOL_STRING, true, "creating, running, stopped or error; it can be used at once"},
	{"created_at",   TOOL_STRING, true, NULL},
	{"config",       TOOL_OBJECT, true, "What it really got: template, resources, network, environment"},
	FIELDS_END,
};

static const struct tool_field nothing_in[] = {FIELDS_END};
static const struct tool_field list_out[] = {
	{"sandboxes",     TOOL_LIST,    true, "Newest first: id, container_id, status, working_dir, created_at"},
	{"total_count",   TOOL_INTEGER, true, NULL},
	{"running_count", TOOL_INTEGER, true, NULL},
	{"stopped_count", TOOL_INTEGER, true, NULL},
	FIELDS_END,
};

static const struct tool_field sandbox_in[] = {SANDBOX_ID, FIELDS_END};
static const struct tool_field sandbox_out[] = {
	{"sandbox_id", TOOL_STRING, true, NULL},
	{"status",     TOOL_STRING, true, NULL},
	FIELDS_END,
};

static const struct tool_field languages_out[] = {
	{"languages", TOOL_STRINGS, true, "Names of those that can be used now"},
	{"details",   TOOL_LIST,    true, "All that are known: name, title, aliases, available, keeps_state, missing"},
	FIELDS_END,
};

static const struct tool table[] = {
	{"create_sandbox", "Create a sandbox",
	 "Creates an isolated Linux sandbox and returns its sandbox_id. Files in /workspace and what its interpreters know stay until terminate_sandbox, or until it was not used for a while. Use it when several steps belong together; for a single piece of code execute_code needs none.",
	 create_in, create_out, 0, SCOPE_SESSIONS, tool_create_sandbox},
	{"list_sandboxes", "List sandboxes",
	 "Lists your sandboxes with their ids and states, newest first.",
	 nothing_in, list_out, TOOL_READ_ONLY | TOOL_IDEMPOTENT, SCOPE_READ, tool_list_sandboxes},
	{"terminate_sandbox", "Terminate a sandbox",
	 "Ends a sandbox and everything that runs in it. Its files are lost: read what you need before.",
	 sandbox_in, sandbox_out, TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT, SCOPE_SESSIONS, tool_terminate_sandbox},
	{"interrupt", "Interrupt what runs",
	 "Interrupts the program that runs in a sandbox, as Ctrl-C does. Files and variables stay, and the sandbox can be used on. For a call of another tool that takes too long.",
	 sandbox_in, sandbox_out, TOOL_IDEMPOTENT, SCOPE_SESSIONS, tool_interrupt},
	{"list_languages", "List languages",
	 "Lists the programming languages, which of them can be used now, and what the others lack.",
	 nothing_in, languages_out, TOOL_READ_ONLY | TOOL_IDEMPOTENT, SCOPE_READ, tool_list_languages},
};
/* clang-format on */

const struct tool *tool_at(size_t index)
{
	return index < ARRAY_SIZE(table) ? &table[index] : NULL;
}

static const struct tool *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (str_equal(table[i].name, name))
			return &table[i];
	return NULL;
}

static bool is_listed(char *const *list, const char *name)
{
	for (; list && *list; list++)
		if (str_equal(*list, name))
			return true;
	return false;
}

bool tool_is_enabled(const struct config *config, const struct tool *tool)
{
	char *const *enabled = config->mcp_enabled_tools;

	if (is_listed(config->mcp_disabled_tools, tool->name))
		return false;
	return !enabled || !*enabled || is_listed(enabled, tool->name);
}

const struct tool *tool_find(const struct config *config, const char *name)
{
	const struct tool *tool = find(name);

	return tool && tool_is_enabled(config, tool) ? tool : NULL;
}

static int check_list(char *const *list, const char *key, struct error *err)
{
	for (; list && *list; list++) {
		struct suggest s = {.word = *list};

		if (find(*list))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(table); i++)
			suggest_offer(&s, table[i].name);
		return error_set(err, ERR_CONFIG, 0, "%s: there is no tool '%.64s'%s%s", key, *list,
		                 s.best ? "; perhaps " : "", s.best ? s.best : "");
	}
	return 0;
}

int tools_check(const struct config *config, struct error *err)
{
	if (check_list(config->mcp_enabled_tools, "mcp.enabled_tools", err) < 0)
		return -1;
	return check_list(config->mcp_disabled_tools, "mcp.disabled_tools", err);
}
