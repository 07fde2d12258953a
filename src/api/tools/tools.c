/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "base/str.h"
#include "base/suggest.h"
#include "core/config/config.h"

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

/* What runs programs. */
#define TIMEOUT(most, seconds) {"timeout", TOOL_NUMBER, false, "Seconds it may take", .min = 0.001, .max = most, .fallback = #seconds}
#define WORKING_DIR {"working_dir", TOOL_STRING, false, "Where it starts: /workspace or a directory below it", .fallback = "\"/workspace\""}
#define ENVIRONMENT {"environment", TOOL_OBJECT, false, "Environment variables for this run, NAME: value"}
#define STDIN_TEXT {"stdin", TOOL_STRING, false, "What the program reads from standard input"}
#define FILES {"files", TOOL_OBJECT, false, "Files to be written to /workspace before, path: text"}

static const struct tool_field execute_in[] = {
	{"code",       TOOL_STRING,  true,  "The program"},
	{"language",   TOOL_STRING,  false, "What it is written in; guessed where it is not said, and that of the session in a session", .words = tool_languages},
	{"session_id", TOOL_STRING,  false, "The sandbox_id of a sandbox: variables, imports and files of earlier calls are there, and stay. Without it the code runs once, in a box of its own"},
	{"timeout",    TOOL_NUMBER,  false, "Seconds it may take", .min = 0.001, .max = 3600, .fallback = "30"},
	STDIN_TEXT,
	{"event",      TOOL_OBJECT,  false, "Python: the code defines handler(event) or handler(event, context), which is called with this; what it returns is return_value"},
	FILES,
	{"args",       TOOL_STRINGS, false, "Arguments of the program"},
	{"env_vars",   TOOL_OBJECT,  false, "Environment variables for this run, NAME: value"},
	FIELDS_END,
};
static const struct tool_field command_in[] = {
	SANDBOX_ID,
	{"command",    TOOL_STRING,  true,  "A line, or several, for the shell"},
	WORKING_DIR, ENVIRONMENT, STDIN_TEXT, TIMEOUT(300, 30),
	FIELDS_END,
};
static const struct tool_field code_in[] = {
	SANDBOX_ID,
	{"code",       TOOL_STRING,  true,  "The program"},
	{"language",   TOOL_STRING,  false, "What it is written in; guessed where it is not said", .words = tool_languages},
	WORKING_DIR, ENVIRONMENT, STDIN_TEXT, TIMEOUT(300, 30),
	FIELDS_END,
};
#define PROGRAM_FIELDS \
	SANDBOX_ID, \
	{"code",       TOOL_STRING,  true,  "The program"}, \
	{"packages",   TOOL_STRINGS, false, "Packages that the program needs, as \"numpy\" or \"numpy>=1.20\". Nothing is fetched: they must be in the sandbox, and what is not is told"}, \
	FILES, \
	{"options",    TOOL_OBJECT,  false, "How the language is run; values are strings. python: python_cmd, use_venv; shell: shell, set_flags"}, \
	ENVIRONMENT, WORKING_DIR, STDIN_TEXT, TIMEOUT(300, 60)
static const struct tool_field program_in[] = {PROGRAM_FIELDS, FIELDS_END};
static const struct tool_field generic_in[] = {
	PROGRAM_FIELDS,
	{"language",   TOOL_STRING,  false, "What it is written in; guessed where it is not said", .words = tool_languages},
	FIELDS_END,
};
static const struct tool_field run_out[] = {
	{"status",             TOOL_STRING,  true, "success, failed, timeout, crashed or cancelled; without a session success, timeout or execution_error"},
	{"outcome",            TOOL_STRING,  true, "success, failed, timeout, crashed or cancelled, always"},
	{"exit_code",          TOOL_INTEGER, true, "-1 where the program did not end by itself"},
	{"stdout",             TOOL_STRING,  true, "Shortened where it is long: output_truncated"},
	{"stderr",             TOOL_STRING,  true, "The same of standard error"},
	{"stdout_size",        TOOL_INTEGER, true, "Bytes that the program printed"},
	{"stderr_size",        TOOL_INTEGER, true, NULL},
	{"output_truncated",   TOOL_BOOLEAN, true, "Some output is left out; all of it is the resource execution://ID/stdout or /stderr"},
	{"error",              TOOL_OBJECT,  true, "Of an exception: name, value, traceback"},
	{"error_message",      TOOL_STRING,  true, "The same in one line, or why it failed"},
	{"results",            TOOL_LIST,    true, "Values that the program showed, by media type; figures are images of the content"},
	{"return_value",       TOOL_ANY,     true, "What the handler returned"},
	{"limit",              TOOL_STRING,  true, "The limit that ended it: time, cpu, memory, processes, output or disk"},
	{"denials",            TOOL_LIST,    true, "What it tried and was not allowed: kind, what, rule, count"},
	{"artifacts",          TOOL_LIST,    true, "Files that it made or changed: path, size, mime_type"},
	{"timed_out",          TOOL_BOOLEAN, true, NULL},
	{"duration",           TOOL_NUMBER,  true, "Seconds"},
	{"execution_time",     TOOL_NUMBER,  true, "Seconds"},
	{"execution_time_ms",  TOOL_NUMBER,  true, NULL},
	{"metrics",            TOOL_OBJECT,  true, "Times and usage"},
	{"language",           TOOL_STRING,  true, NULL},
	{"command",            TOOL_STRING,  false, NULL},
	{"working_dir",        TOOL_STRING,  true, NULL},
	{"packages_installed", TOOL_LIST,    true, "Those of packages that are there"},
	{"execution_id",       TOOL_STRING,  true, NULL},
	{"session_id",         TOOL_STRING,  true, NULL},
	{"session_reset",      TOOL_BOOLEAN, true, "The interpreter was lost: its variables are gone"},
	FIELDS_END,
};

/* Files. */
#define PATH(what) {"path", TOOL_STRING, true, what ": in /workspace, as \"data/x.csv\" or \"/workspace/data/x.csv\""}
static const char *const encodings[] = {"utf8", "base64", NULL};
static const struct tool_field write_in[] = {
	SANDBOX_ID,
	PATH("The file"),
	{"content",           TOOL_STRING,  true,  "What it is to hold"},
	{"encoding",          TOOL_STRING,  false, "How content is written here", .words = encodings, .fallback = "\"utf8\""},
	{"mode",              TOOL_STRING,  false, "Permissions, octal", .fallback = "\"0644\""},
	{"create_backup",     TOOL_BOOLEAN, false, "Keep what was there as PATH.bak", .fallback = "false"},
	{"force_overwrite",   TOOL_BOOLEAN, false, "false: refuse where the file is there already", .fallback = "true"},
	{"validate_checksum", TOOL_ANY,     false, "The SHA-256 that the content must have, or true to be told it"},
	FIELDS_END,
};
static const struct tool_field write_out[] = {
	{"path",     TOOL_STRING,  true, NULL},
	{"size",     TOOL_INTEGER, true, NULL},
	{"encoding", TOOL_STRING,  true, NULL},
	{"checksum", TOOL_STRING,  true, "SHA-256, where it was asked for"},
	FIELDS_END,
};
#define READ_FIELDS(most) \
	SANDBOX_ID, \
	PATH("The file"), \
	{"encoding", TOOL_STRING,  false, "base64 for what is not text", .words = encodings, .fallback = "\"utf8\""}, \
	{"max_size", TOOL_INTEGER, false, "Bytes at most; the rest is left out and truncated is true", .min = 1, .max = 10485760, .fallback = #most}
static const struct tool_field read_in[] = {READ_FIELDS(1048576), FIELDS_END};
static const struct tool_field download_in[] = {READ_FIELDS(10485760), FIELDS_END};
static const struct tool_field read_out[] = {
	{"path",      TOOL_STRING,  true, NULL},
	{"size",      TOOL_INTEGER, true, "Of the whole file"},
	{"encoding",  TOOL_STRING,  true, "Of content; images are always base64"},
	{"content",   TOOL_STRING,  true, NULL},
	{"truncated", TOOL_BOOLEAN, true, NULL},
	{"mime_type", TOOL_STRING,  true, NULL},
	FIELDS_END,
};
static const struct tool_field files_in[] = {
	SANDBOX_ID,
	{"path",      TOOL_STRING,  false, "The directory", .fallback = "\"/workspace\""},
	{"recursive", TOOL_BOOLEAN, false, "What is below its directories too", .fallback = "false"},
	FIELDS_END,
};
static const struct tool_field files_out[] = {
	{"path",        TOOL_STRING,  true, NULL},
	{"total_count", TOOL_INTEGER, true, NULL},
	{"truncated",   TOOL_BOOLEAN, true, "There are more"},
	{"files",       TOOL_LIST,    true, "name, path, size, is_dir, mode, modified"},
	FIELDS_END,
};

static const struct tool_field languages_out[] = {
	{"languages", TOOL_STRINGS, true, "Names of those that can be used now"},
	{"details",   TOOL_LIST,    true, "All that are known: name, title, aliases, available, keeps_state, missing"},
	FIELDS_END,
};

#define PROGRAM(name, title, language) \
	{"run_" name, "Run " title, \
	 "Runs a " title " program in a sandbox, in a process of its own: files in /workspace stay, variables do not. What it prints, its exit code and the files it made come back. There is no network; where " title " or a package is not installed, the answer says what is.", \
	 program_in, run_out, TOOL_DESTRUCTIVE, SCOPE_EXECUTE, tool_run_in_sandbox, language}

static const struct tool table[] = {
	{"execute_code", "Run code",
	 "Runs code in an isolated Linux box without network and returns what it printed, the value of its last line, figures, files, and errors. Without session_id it runs once and nothing stays. With the sandbox_id of create_sandbox as session_id, variables, imports and files stay between calls, as in a notebook. Code that fails is answered with its error, so that you can correct it and call again.",
	 execute_in, run_out, TOOL_DESTRUCTIVE, SCOPE_EXECUTE, tool_execute_code},
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
	{"exec_command", "Run a command",
	 "Runs a shell command in a sandbox and returns what it printed and its exit code. Files in /workspace stay.",
	 command_in, run_out, TOOL_DESTRUCTIVE, SCOPE_EXECUTE, tool_run_in_sandbox, "shell"},
	{"run_code", "Run code in a sandbox",
	 "Runs a program in a sandbox, in a process of its own: files in /workspace stay, variables do not (execute_code keeps them). The language is guessed where it is not said.",
	 code_in, run_out, TOOL_DESTRUCTIVE, SCOPE_EXECUTE, tool_run_in_sandbox},
	{"upload_file", "Upload a file",
	 "Writes a file into a sandbox, text or base64. Directories on the way are made.",
	 write_in, write_out, TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT, SCOPE_FILES, tool_write_file},
	{"write_file", "Write a file",
	 "Writes a file into a sandbox, text or base64. Directories on the way are made; what was there is replaced.",
	 write_in, write_out, TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT, SCOPE_FILES, tool_write_file},
	{"download_file", "Download a file",
	 "Returns the content of a file of a sandbox, up to 10 MiB; base64 for what is not text.",
	 download_in, read_out, TOOL_READ_ONLY | TOOL_IDEMPOTENT, SCOPE_FILES, tool_read_file},
	{"read_file", "Read a file",
	 "Returns the content of a file of a sandbox, up to max_size; images are shown. Long text is shortened to its head and tail.",
	 read_in, read_out, TOOL_READ_ONLY | TOOL_IDEMPOTENT, SCOPE_FILES, tool_read_file},
	{"list_files", "List files",
	 "Lists the files of a directory of a sandbox with their sizes.",
	 files_in, files_out, TOOL_READ_ONLY | TOOL_IDEMPOTENT, SCOPE_FILES, tool_list_files},
	PROGRAM("python", "Python", "python"),
	PROGRAM("javascript", "JavaScript", "javascript"),
	PROGRAM("typescript", "TypeScript", "typescript"),
	PROGRAM("go", "Go", "go"),
	PROGRAM("rust", "Rust", "rust"),
	PROGRAM("java", "Java", "java"),
	PROGRAM("cpp", "C++", "cpp"),
	PROGRAM("csharp", "C#", "csharp"),
	PROGRAM("shell", "shell", "shell"),
	{"run_generic", "Run a program",
	 "Runs a program of any language that is installed, in a sandbox and in a process of its own. The language is guessed where it is not said; list_languages tells which there are.",
	 generic_in, run_out, TOOL_DESTRUCTIVE, SCOPE_EXECUTE, tool_run_in_sandbox},
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
