/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/decode.h"
#include "api/json/decode_fields.h"
#include "api/json/json.h"
#include "api/reply.h"
#include "api/tools/remedy.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "base/suggest.h"
#include "core/config/config.h"
#include "core/observe/audit.h"
#include "core/observe/metrics.h"
#include "core/policy/policies.h"
#include "core/session/session.h"
#include "core/session/session_row.h"
#include "core/template/template.h"
#include <string.h>

/* Of a file: more than any box has. */
#define READ_OFFSET_MAX 1099511627776.0
#define QUERY_MAX       500 /* the time of a search grows with its words */

/* Models read the descriptions. */
/* clang-format off */
#define ARG(member)          AT(struct tool_args, member)
#define ARG_LEN(member, len) AT_LEN(struct tool_args, member, len)
/* null counts as absent, except for limits: "no limit" is not on offer. */
#define INPUT(...)  {.rows = (const struct field[]){__VA_ARGS__, FIELDS_END}, .flags = FIELDS_LOOSE}
#define OUTPUT(...) {.rows = (const struct field[]){__VA_ARGS__, FIELDS_END}}

/* A brief result has only what is shown, and of that only what there is. */
#define FULL  .shown = FIELD_SHOWN_FULL
#define BRIEF .shown = FIELD_SHOWN_BRIEF

/* Two names of one argument: sandbox_id in the full profile, session_id in the default one. */
#define SANDBOX_ROWS(needed, text) \
	{"sandbox_id", FIELD_STRING, ARG(sandbox_id), .required = needed, .other_name = "session_id", FULL, .description = text}, \
	{"session_id", FIELD_STRING, ARG(sandbox_id), .required = needed, .other_name = "sandbox_id", BRIEF, .description = "From manage_session"}
#define SANDBOX_ID       SANDBOX_ROWS(true, "Id of the sandbox, from create_sandbox or list_sandboxes")
#define SANDBOX_OPTIONAL SANDBOX_ROWS(false, "Id of the sandbox; without it the command runs once, in a box of its own")

/* tool_view shows it only where servers are configured. */
#define MCP_TEXT "Servers from search_tools that code may call"
/* Of a box. tool_view shows it only where the policy has hosts. */
#define ALLOW(member) {"network_allow", FIELD_STRINGS, ARG(member), .max = 64, FULL, .description = "Hosts that programs reach, and no others, as \"api.example.com\" or \"pypi\"; each must be allowed by the policy"}
#define IMAGE         {"image", FIELD_STRING, ARG(image), .fallback = "\"ubuntu:22.04\"", .description = "Id of a template (python-basic, python-datascience, shell ...), or a common image name such as ubuntu:22.04 or python:3.11, which selects the template with the same programs; nothing is pulled"}
#define ENGINE(member) \
	{"engine", FIELD_STRING, ARG(member engine), FULL, .description = "Who makes the box: an engine's name, or auto"}, \
	{"min_isolation", FIELD_ENUM, ARG(member min_isolation), .words = decode_grades, FULL, .description = "Least grade of isolation: gvisor and vm do not share the host's kernel"}
#define WORKSPACE_DIR {"workspace_dir", FIELD_STRING, ARG(workspace_dir), .fallback = "\"/workspace\"", FULL, .description = "Files are always in /workspace"}
#define SESSION_ROWS \
	{"environment", FIELD_ENV, ARG(session.env), FULL, .description = "Environment variables of every program in the sandbox, NAME: value"}, \
	{"cpu_limit", FIELD_CPU, ARG(session.cpu_millicores), .not_null = true, FULL, .description = "Cores, as 1 or \"0.5\""}, \
	{"memory_limit", FIELD_SIZE, ARG(session.memory_bytes), .not_null = true, .description = "Memory, files included, as \"512Mi\" or \"1G\""}, \
	{"disk_limit", FIELD_SIZE, ARG(session.disk_bytes), .not_null = true, FULL, .description = "Size of /workspace, as \"256Mi\"; at most half of the memory, which holds it"}, \
	{"network_mode", FIELD_ENUM, ARG(session.network), GIVEN(struct tool_args, session.network_asked), .words = decode_networks, FULL, .description = "none: no network. By default as much as the policy grants"}, \
	ALLOW(session.network_allow), \
	ENGINE(session.), \
	{"timeout", FIELD_SECONDS, ARG(session.idle_timeout_us), .min = 1, .max = DECODE_SESSION_MAX, FULL, .description = "Idle seconds after which the sandbox ends"}, \
	{"mcp", FIELD_STRINGS, ARG(session.mcp), .description = MCP_TEXT}, \
	{"policy", FIELD_STRING, ARG(session.policy), .valid = policy_is_name, .what = "1 to 63 of a-z 0-9 _ -", FULL, .description = "A stricter policy to apply as well"}

static const struct fields create_in = INPUT(
	IMAGE, WORKSPACE_DIR, SESSION_ROWS,
	{"session_id", FIELD_STRING, ARG(session.id), .valid = decode_is_id, .what = ID_TEXT, .description = "An id of your choice: 1 to 64 of A-Z a-z 0-9 _ -"});

static const char *const actions[] = {
	[TOOL_CREATE] = "create", [TOOL_LIST] = "list", [TOOL_INTERRUPT] = "interrupt", [TOOL_END] = "end", NULL};
static const struct fields manage_in = INPUT(
	{"action", FIELD_ENUM, ARG(action), .required = true, .words = actions},
	{"session_id", FIELD_STRING, ARG(sandbox_id), .description = "create: an id of your choice"},
	{"sandbox_id", FIELD_STRING, ARG(sandbox_id), .shown = FIELD_SHOWN_NEVER},
	{"template", FIELD_STRING, ARG(image), .fallback = "\"" TEMPLATE_DEFAULT "\"", .description = "create: which programs it has"},
	WORKSPACE_DIR, SESSION_ROWS);
static const struct fields create_out = OUTPUT(
	{"sandbox_id", FIELD_STRING, FULL, .description = "Id for the other tools"},
	{"session_id", FIELD_STRING, .description = "The same id, as execute_code calls it"},
	{"container_id", FIELD_STRING, FULL, .description = "Id of its box"},
	{"status", FIELD_STRING, .description = "running: it can be used at once"},
	{"created_at", FIELD_STRING, FULL},
	{"config", FIELD_OBJECT, FULL, .description = "Effective settings: template, resources, network, environment"});

static const struct fields manage_out = OUTPUT(
	{"session_id", FIELD_STRING},
	{"sandbox_id", FIELD_STRING, FULL, .description = "The same id"},
	{"status", FIELD_STRING},
	{"sandboxes", FIELD_LIST, FULL, .description = "list: as list_sandboxes"});

static const struct fields no_input = {.rows = (const struct field[]){FIELDS_END}, .flags = FIELDS_LOOSE};
static const struct fields list_out = OUTPUT(
	{"sandboxes", FIELD_LIST, FULL, .description = "Newest first: id, container_id, status, working_dir, created_at"},
	{"total_count", FIELD_INTEGER, FULL},
	{"running_count", FIELD_INTEGER, FULL},
	{"stopped_count", FIELD_INTEGER, FULL});

static const struct fields sandbox_in = INPUT(SANDBOX_ID);
static const struct fields sandbox_out = OUTPUT({"sandbox_id", FIELD_STRING}, {"status", FIELD_STRING});

#define CODE(name, text)       {name, FIELD_STRING, ARG_LEN(exec.request.code, exec.request.code_len), .required = true, .min = 1, .what = "a non-empty string", .check = decode_check_code, .description = text}
/* tool_view adds the languages that the host has. */
#define LANGUAGE(text)         {"language", FIELD_STRING, ARG(exec.request.language), .description = text}
#define TIMEOUT(most, seconds) {"timeout", FIELD_SECONDS, ARG(exec.request.timeout_us), .min = 0.001, .max = most, .fallback = #seconds, .description = "Seconds"}
#define WORKING_DIR            {"working_dir", FIELD_STRING, ARG(working_dir), .fallback = "\"/workspace\"", .description = "/workspace or below"}
#define ENVIRONMENT(name)      {name, FIELD_ENV, ARG(exec.request.env), FULL, .description = "Environment variables for this run, NAME: value"}
#define STDIN_TEXT             {"stdin", FIELD_STRING, ARG_LEN(exec.request.stdin_data, exec.request.stdin_len), .description = "Standard input of the program"}
#define FILES                  {"files", FIELD_CUSTOM, .check = decode_files, .schema = "{\"type\": \"object\"}", FULL, .description = "Files to write to /workspace first, path: text"}

static const struct fields execute_in = INPUT(
	CODE("code", "The program"),
	LANGUAGE("Default: the session's, else guessed"),
	{"session_id", FIELD_STRING, ARG(sandbox_id), .description = "Id of a session or sandbox, where variables, imports and files persist. Without it the code runs once, in a box of its own"},
	{"sandbox_id", FIELD_STRING, ARG(sandbox_id), .other_name = "session_id", .shown = FIELD_SHOWN_NEVER},
	/* Other systems' clients send any number. Core cuts it. */
	{"timeout", FIELD_SECONDS, ARG(exec.request.timeout_us), .clamp = true, .max = 3600, .fallback = "30", .schema = "{\"minimum\": 0.001, \"maximum\": 3600}", .description = "Seconds"},
	STDIN_TEXT,
	{"event", FIELD_CUSTOM, .check = decode_event, FULL, .schema = "{\"type\": \"object\"}", .description = "Python: the code defines handler(event) or handler(event, context), which is called with this object; return_value is what it returns"},
	FILES,
	{"mcp", FIELD_STRINGS, ARG(exec.request.mcp), .description = MCP_TEXT},
	ALLOW(exec.request.network_allow),
	ENGINE(exec.request.),
	{"args", FIELD_STRINGS, ARG(exec.request.args), FULL, .description = "Command-line arguments of the program"},
	ENVIRONMENT("env_vars"));
static const struct fields command_in = INPUT(
	SANDBOX_OPTIONAL, CODE("command", "One or more lines for the shell"),
	WORKING_DIR, ENVIRONMENT("environment"), STDIN_TEXT, TIMEOUT(300, 30),
	ALLOW(exec.request.network_allow), ENGINE(exec.request.));
static const struct fields code_in = INPUT(
	SANDBOX_ID, CODE("code", "The program"), LANGUAGE("Programming language; guessed if not given"),
	WORKING_DIR, ENVIRONMENT("environment"), STDIN_TEXT, TIMEOUT(300, 30));
#define PROGRAM_FIELDS \
	SANDBOX_ID, CODE("code", "The program"), \
	{"packages", FIELD_STRINGS, ARG(packages), .description = "Packages that the program needs, as \"numpy\" or \"numpy>=1.20\". Missing ones are installed first, if the operator allows it; the error names those that cannot be"}, \
	FILES, \
	{"options", FIELD_OBJECT, ARG(options), .description = "Options of the language; values are strings; list_languages shows them"}, \
	ENVIRONMENT("environment"), WORKING_DIR, STDIN_TEXT, TIMEOUT(300, 60)
static const struct fields install_in = INPUT(
	SANDBOX_ID,
	{"packages", FIELD_STRINGS, ARG(packages), .required = true, .description = "Names, as \"numpy\" or \"numpy==2.1\""},
	LANGUAGE("Its registry is used; default: the session's language"));
static const struct fields install_out = OUTPUT(
	{"packages_installed", FIELD_STRINGS, .description = "The packages"});
static const struct fields program_in = INPUT(PROGRAM_FIELDS);
static const struct fields generic_in = INPUT(PROGRAM_FIELDS, LANGUAGE("Programming language; guessed if not given"));
static const struct fields run_out = OUTPUT(
	{"status", FIELD_STRING, FULL, .description = "success, failed, timeout, crashed or cancelled; without a session success, timeout or execution_error"},
	{"status", FIELD_STRING, BRIEF, .description = "success, failed, timeout, crashed or cancelled"},
	{"output", FIELD_STRING, BRIEF},
	{"result", FIELD_STRING, BRIEF, .description = "Value of the last line"},
	{"error", FIELD_STRING, BRIEF},
	{"limit", FIELD_STRING, .description = "The limit that ended the program: time, cpu, memory, processes, output or disk"},
	{"language", FIELD_STRING},
	{"files", FIELD_STRINGS, BRIEF, .description = "Made or changed"},
	{"isolation", FIELD_STRING, BRIEF, .description = "If not strict"},
	{"warnings", FIELD_STRING, BRIEF, .description = "Limits that were lowered"},
	{"outcome", FIELD_STRING, FULL, .description = "success, failed, timeout, crashed or cancelled, with or without a session"},
	{"exit_code", FIELD_INTEGER, FULL, .description = "-1 if the program did not exit by itself"},
	{"stdout", FIELD_STRING, FULL, .description = "Shortened if long: see output_truncated"},
	{"stderr", FIELD_STRING, FULL, .description = "Shortened if long"},
	{"stdout_size", FIELD_INTEGER, FULL, .description = "Bytes that the program printed"},
	{"stderr_size", FIELD_INTEGER, FULL},
	{"output_truncated", FIELD_BOOL, FULL, .description = "Some output is left out; the resource execution://ID/stdout or /stderr has all of it"},
	{"error", FIELD_OBJECT, FULL, .description = "The exception: name, value, traceback"},
	{"error_message", FIELD_STRING, FULL, .description = "The exception or other failure in one line"},
	{"results", FIELD_LIST, FULL, .description = "Values that the program displayed, by media type; figures are images of the content"},
	{"return_value", FIELD_ANY, FULL, .description = "What the handler returned"},
	{"denials", FIELD_LIST, FULL, .description = "Actions that were denied: kind, what, detail, rule, errno, count, remedy"},
	{"why", FIELD_STRINGS, FULL, .description = "What ended it, which rule, what to change; null after a success without denials"},
	{"artifacts", FIELD_LIST, FULL, .description = "Files that the program made or changed: path, size, mime_type"},
	{"timed_out", FIELD_BOOL, FULL},
	{"duration", FIELD_NUMBER, FULL, .description = "Seconds"},
	{"execution_time", FIELD_NUMBER, FULL, .description = "Seconds"},
	{"execution_time_ms", FIELD_NUMBER, FULL},
	{"metrics", FIELD_OBJECT, FULL, .description = "Times and resource usage"},
	{"command", FIELD_STRING, FULL},
	{"working_dir", FIELD_STRING, FULL},
	{"packages_installed", FIELD_LIST, FULL, .description = "The requested packages that are installed"},
	{"execution_id", FIELD_STRING, FULL},
	{"session_id", FIELD_STRING, FULL},
	{"session_reset", FIELD_BOOL, FULL, .description = "The interpreter was lost, and its variables with it"});

static const char *const encodings[] = {[TOOL_UTF8] = "utf8", [TOOL_BASE64] = "base64", NULL};
#define PATH_TEXT      "Path in /workspace: \"data/x.csv\" or \"/workspace/data/x.csv\""
#define FILE_PATH      {"path", FIELD_STRING, ARG(path), .required = true, .description = PATH_TEXT}
#define ENCODING(text) {"encoding", FIELD_ENUM, ARG(encoding), .words = encodings, .fallback = "\"utf8\"", .description = text}
static const struct fields write_in = INPUT(
	SANDBOX_ID, FILE_PATH,
	{"content", FIELD_STRING, ARG_LEN(content, content_len), .required = true},
	ENCODING("Of content"),
	{"mode", FIELD_STRING, ARG(mode), FULL, .fallback = "\"0644\"", .description = "Octal permissions"},
	{"create_backup", FIELD_BOOL, ARG(create_backup), FULL, .fallback = "false", .description = "Keep an existing file as PATH.bak"},
	{"force_overwrite", FIELD_BOOL, ARG(force_overwrite), FULL, .fallback = "true", .description = "false: fail if the file exists"},
	{"validate_checksum", FIELD_ANY, ARG(checksum), FULL, .description = "Expected SHA-256 of the content, or true to get it in the result"});
static const struct fields write_out = OUTPUT(
	{"path", FIELD_STRING, FULL},
	{"size", FIELD_INTEGER, FULL},
	{"encoding", FIELD_STRING, FULL},
	{"checksum", FIELD_STRING, .description = "SHA-256, if validate_checksum was given"});
#define READ_FIELDS(most) \
	SANDBOX_ID, FILE_PATH, ENCODING("base64 for files that are not text"), \
	{"offset", FIELD_INTEGER, ARG(offset), .max = READ_OFFSET_MAX, .fallback = "0", .description = "First byte"}, \
	{"max_size", FIELD_INTEGER, ARG(max_size), .min = 1, .max = 10485760, .fallback = #most, FULL, .description = "Maximum number of bytes; if the file is larger, truncated is true"}
static const struct fields read_in = INPUT(READ_FIELDS(1048576));
static const struct fields download_in = INPUT(READ_FIELDS(10485760));
static const struct fields read_out = OUTPUT(
	{"path", FIELD_STRING, FULL},
	{"size", FIELD_INTEGER, FULL, .description = "Of the whole file"},
	{"encoding", FIELD_STRING, FULL, .description = "Of content; images are always base64"},
	{"content", FIELD_STRING},
	{"truncated", FIELD_BOOL, FULL},
	{"mime_type", FIELD_STRING, FULL});
static const struct fields files_in = INPUT(
	SANDBOX_ID,
	{"path", FIELD_STRING, ARG(path), .fallback = "\"/workspace\"", .description = "The directory"},
	{"recursive", FIELD_BOOL, ARG(recursive), .fallback = "false", .description = "Include subdirectories"});
static const struct fields files_out = OUTPUT(
	{"path", FIELD_STRING, FULL},
	{"total_count", FIELD_INTEGER, FULL},
	{"truncated", FIELD_BOOL, FULL, .description = "There are more files"},
	{"files", FIELD_LIST, FULL, .description = "name, path, size, is_dir, mode, modified"});

static const char *const streams[] = {[OUTPUT_STDOUT] = "stdout", [OUTPUT_STDERR] = "stderr", NULL};
static const struct fields output_in = INPUT(
	{"execution_id", FIELD_STRING, ARG(execution_id), .required = true},
	{"stream", FIELD_ENUM, ARG(stream), .words = streams, .fallback = "\"stdout\""},
	{"offset", FIELD_INTEGER, ARG(offset), .fallback = "0", .description = "First byte"});
static const struct fields output_out = OUTPUT(
	{"output", FIELD_STRING, .description = "The page, at most mcp.max_text bytes"},
	{"offset", FIELD_INTEGER, FULL, .description = "Of its first byte"},
	{"next_offset", FIELD_INTEGER, .description = "Of the next page; null at the end"},
	{"size", FIELD_INTEGER, FULL, .description = "Of the whole output, in bytes"});
static const struct fields more_in = INPUT(
	{"query", FIELD_STRING, ARG(query), .max = QUERY_MAX, .description = "Words of a name or description; none: all"},
	{"call", FIELD_STRING, ARG(callee), .description = "Call this tool instead"},
	{"arguments", FIELD_OBJECT, ARG(arguments), .description = "for it"});
static const struct fields more_out = OUTPUT(
	{"tools", FIELD_LIST, FULL, .description = "name, description and arguments of each"});

static const struct fields search_in = INPUT(
	{"query", FIELD_STRING, ARG(query), .max = QUERY_MAX, .description = "What the tool should do; none: all"},
	{"limit", FIELD_INTEGER, ARG(limit), .min = 1, .max = 50, .fallback = "10", FULL});
static const struct fields search_out = OUTPUT(
	{"tools", FIELD_LIST, FULL, .description = "The best first: server, name, call (how a program calls it), input_schema"});

static const struct fields languages_in = {
	.rows = (const struct field[]){
		{"template", FIELD_STRING, ARG(image), .description = "Whose programs; default: those of the host"}, FIELDS_END},
	.flags = FIELDS_LOOSE};
static const struct fields languages_out = OUTPUT(
	{"languages", FIELD_STRINGS, .description = "Names of the available languages"},
	{"details", FIELD_LIST, FULL, .description = "All known languages: name, title, aliases, available, keeps_state, missing"});

#define PROGRAM(name, title, language) \
	{"run_" name, "Run " title, \
	 "Runs a " title " program in a sandbox as a new process: files in /workspace persist, variables do not. Returns its output, exit code and the files it made. If " title " or a package is missing, the error says what is installed.", \
	 &program_in, &run_out, TOOL_DESTRUCTIVE, SCOPE_EXECUTE, tool_run_in_sandbox, language}

static const struct tool table[] = {
	{"execute_code", "Run code",
	 "Runs code in an isolated Linux box. Returns its output, the value of its last line, figures and errors. With session_id, variables, imports and files persist between calls, as in a notebook; without it nothing does.",
	 &execute_in, &run_out, TOOL_BRIEF | TOOL_DESTRUCTIVE, SCOPE_EXECUTE, tool_execute_code},
	{"exec_command", "Run a command",
	 "Runs a shell command and returns its output and exit code. With a session, files in /workspace persist.",
	 &command_in, &run_out, TOOL_BRIEF | TOOL_DESTRUCTIVE, SCOPE_EXECUTE, tool_exec_command, "shell"},
	{"read_file", "Read a file",
	 "Returns a file; images are shown. Of long text it returns head and tail, or the part at offset.",
	 &read_in, &read_out, TOOL_BRIEF | TOOL_READ_ONLY | TOOL_IDEMPOTENT, SCOPE_FILES, tool_read_file},
	{"write_file", "Write a file",
	 "Writes a file from text or base64. Creates missing directories, replaces an existing file.",
	 &write_in, &write_out, TOOL_BRIEF | TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT, SCOPE_FILES, tool_write_file},
	{"list_files", "List files",
	 "Lists the files in a directory with their sizes.",
	 &files_in, &files_out, TOOL_BRIEF | TOOL_READ_ONLY | TOOL_IDEMPOTENT, SCOPE_FILES, tool_list_files},
	{"manage_session", "Manage a session",
	 "create: a Linux box whose files (/workspace) and variables persist; returns the session_id for the other tools. list: your sessions. interrupt: stop its program, like Ctrl-C. end: delete it with its files.",
	 &manage_in, &manage_out, TOOL_BRIEF | TOOL_DESTRUCTIVE, SCOPE_READ, tool_manage_session},
	{"read_output", "Read long output",
	 "Returns output that was shortened in a result, from offset on.",
	 &output_in, &output_out, TOOL_BRIEF | TOOL_READ_ONLY | TOOL_IDEMPOTENT, SCOPE_READ, tool_read_output},
	{"more_tools", "Find more tools",
	 "Finds further tools and arguments (packages, languages, variables, limits ...), or calls such a tool.",
	 &more_in, &more_out, TOOL_BRIEF | TOOL_DESTRUCTIVE, SCOPE_ANY, tool_more_tools},
	{"search_tools", "Search tools for code",
	 "Finds functions of outside servers that programs in execute_code can call (one program can call many). Returns names, arguments, what they do.",
	 &search_in, &search_out, TOOL_BRIEF | TOOL_READ_ONLY | TOOL_IDEMPOTENT, SCOPE_READ, tool_search_tools},
	{"create_sandbox", "Create a sandbox",
	 "Creates an isolated Linux sandbox and returns its sandbox_id. Files in /workspace and the state of its interpreters persist until terminate_sandbox or the idle timeout. Use it for work in several steps; a single piece of code needs only execute_code.",
	 &create_in, &create_out, 0, SCOPE_SESSIONS, tool_create_sandbox},
	{"list_sandboxes", "List sandboxes",
	 "Lists your sandboxes with their ids and states, newest first.",
	 &no_input, &list_out, TOOL_READ_ONLY | TOOL_IDEMPOTENT, SCOPE_READ, tool_list_sandboxes},
	{"terminate_sandbox", "Terminate a sandbox",
	 "Ends a sandbox and everything that runs in it. Its files are deleted: read what you need first.",
	 &sandbox_in, &sandbox_out, TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT, SCOPE_SESSIONS, tool_terminate_sandbox},
	{"interrupt", "Interrupt a program",
	 "Interrupts the program that runs in a sandbox, like Ctrl-C. Files and variables persist, and the sandbox stays usable. Use it when a call of another tool takes too long.",
	 &sandbox_in, &sandbox_out, TOOL_IDEMPOTENT, SCOPE_SESSIONS, tool_interrupt},
	{"run_code", "Run code in a sandbox",
	 "Runs a program in a sandbox as a new process: files in /workspace persist, variables do not (execute_code keeps them). The language is guessed if not given.",
	 &code_in, &run_out, TOOL_DESTRUCTIVE, SCOPE_EXECUTE, tool_run_in_sandbox},
	{"install_package", "Install packages",
	 "Installs packages from the language's registry into a sandbox, where later programs find them. The packages are fetched outside of it; the sandbox itself gets no network.",
	 &install_in, &install_out, TOOL_IDEMPOTENT, SCOPE_EXECUTE, tool_install_package},
	{"upload_file", "Upload a file",
	 "Writes a file into a sandbox, from text or base64. Missing directories are created.",
	 &write_in, &write_out, TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT, SCOPE_FILES, tool_write_file},
	{"download_file", "Download a file",
	 "Returns the content of a file in a sandbox, up to 10 MiB; base64 for files that are not text.",
	 &download_in, &read_out, TOOL_READ_ONLY | TOOL_IDEMPOTENT, SCOPE_FILES, tool_read_file},
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
	 "Runs a program in any installed language in a sandbox, as a new process. The language is guessed if not given; list_languages shows which are available.",
	 &generic_in, &run_out, TOOL_DESTRUCTIVE, SCOPE_EXECUTE, tool_run_in_sandbox},
	{"list_languages", "List languages",
	 "Lists the known programming languages, which are available, and what the others lack.",
	 &languages_in, &languages_out, TOOL_READ_ONLY | TOOL_IDEMPOTENT, SCOPE_READ, tool_list_languages},
};
/* clang-format on */

const struct tool *tool_at(size_t index)
{
	return index < ARRAY_SIZE(table) ? &table[index] : NULL;
}

bool tool_is_enabled(const struct config *config, const struct tool *tool)
{
	char *const *enabled = config->mcp_enabled_tools;

	if (str_list_has(config->mcp_disabled_tools, tool->name))
		return false;
	return !enabled || !*enabled || str_list_has(enabled, tool->name);
}

const struct tool *tool_find(const struct config *config, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (str_equal(table[i].name, name))
			return !config || tool_is_enabled(config, &table[i]) ? &table[i] : NULL;
	return NULL;
}

/* Those of the default profile: all names would not fit. */
static void list_names(const struct router *r, char *ret_text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if ((table[i].hints & TOOL_BRIEF) && tool_is_in_profile(r, &table[i]) &&
		    used + strlen(table[i].name) + 3 < size)
			used += (size_t)snprintf(ret_text + used, size - used, "%s%s",
			                         used ? ", " : "", table[i].name);
}

int tool_unknown(const struct router *r, const char *name, struct error *err)
{
	struct suggest s = {.word = name};
	char names[160] = "none";

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (!r || tool_is_enabled(r->config, &table[i]))
			suggest_offer(&s, table[i].name);
	if (s.best || !r)
		return error_set(err, ERR_INVALID, 0, "no tool '%.64s'%s%s%s", name,
		                 s.best ? "; did you mean '" : "", s.best ? s.best : "",
		                 s.best ? "'?" : "");
	list_names(r, names, sizeof(names));
	return error_set(err, ERR_INVALID, 0, "no tool '%.48s'; use one of: %s", name, names);
}

static int check_list(char *const *list, const char *key, struct error *err)
{
	for (; list && *list; list++) {
		struct error unknown = {0};

		if (tool_find(NULL, *list))
			continue;
		(void)tool_unknown(NULL, *list, &unknown);
		return error_set(err, ERR_CONFIG, 0, "%s: %s", key, unknown.msg);
	}
	return 0;
}

int tools_check(const struct config *config, struct error *err)
{
	if (check_list(config->mcp_enabled_tools, "mcp.enabled_tools", err) < 0)
		return -1;
	return check_list(config->mcp_disabled_tools, "mcp.disabled_tools", err);
}

const char *tool_result_text(const json_t *result)
{
	const json_t *first = json_array_get(json_object_get(result, "content"), 0);
	const char *text = json_string_value(json_object_get(first, "text"));

	return text ? text : "";
}

/*
 * What a model needs. Some clients show it nothing else, so the text is in it too: as output, or as
 * error of a call that was refused. Return: owned.
 */
static json_t *make_brief(const struct tool *tool, const json_t *full, const char *text)
{
	json_t *j = json_object();

	json_set(j, "status", json_string("success"));
	for (const struct field *f = tool->output->rows; f->name; f++) {
		json_t *value = json_object_get(full, f->name);

		if (value && !json_is_null(value) && f->shown != FIELD_SHOWN_FULL)
			json_set(j, f->name, json_incref(value));
	}
	if (!json_object_get(full, "output"))
		json_set(j, "output", json_text(text, strlen(text)));
	return j;
}

static json_t *make_brief_refusal(const json_t *full, const char *text)
{
	json_t *j = json_object(), *field = json_object_get(full, "field");

	json_set(j, "status", json_string("error"));
	json_set(j, "error", json_text(text, strlen(text)));
	json_set(j, "code", json_incref(json_object_get(full, "code")));
	if (json_is_string(field))
		json_set(j, "field", json_incref(field));
	return j;
}

/* Takes @structured and @content. */
static void end_tool(struct call *call, const char *text, json_t *structured, json_t *content,
                     const struct error *failure, bool is_error)
{
	struct metrics *m = call->router->parts.metrics;
	const char *how = failure ? "refused" : is_error ? "error" : "ok";
	json_t *result = json_object(), *first = json_object();
	int r = json_array_insert_new(content, 0, first);

	assert(r == 0);
	(void)r;
	json_set(first, "type", json_string("text"));
	json_set(first, "text", json_text(text, strlen(text)));
	json_set(result, "content", content);
	if (call->brief) {
		json_set(result, "structuredContent",
		         failure ? make_brief_refusal(structured, text)
		                 : make_brief(call->tool, structured, text));
		json_decref(structured);
	} else {
		json_set(result, "structuredContent", structured);
	}
	json_set(result, "isError", json_boolean(is_error));
	metrics_count_for(m, METRIC_TOOL_CALLS, METRIC_LABELS(call->tool->name, how), 1);
	metrics_observe_for(m, METRIC_TOOL_DURATION, METRIC_LABELS(call->tool->name),
	                    (double)(clock_us() - call->started_us) / USEC_PER_SEC);
	call_end(call, result, failure);
}

const char *tool_noun(const struct call *call)
{
	return call->brief ? "session" : "sandbox";
}

void tool_finish(struct call *call, const char *text, json_t *structured, json_t *content,
                 bool is_error)
{
	end_tool(call, text, structured, content ? content : json_array(), NULL, is_error);
}

/* A stateless sandbox's result of a program that could not be started. */
static void add_setup_error(const struct call *call, const struct error *err, const char *detail,
                            json_t *structured)
{
	const char *language = call->args.exec.request.language;

	json_set(structured, "status", json_string("setup_error"));
	json_set(structured, "error_message", json_string(detail));
	json_set(structured, "exit_code", json_integer(-1));
	json_set(structured, "execution_time", json_integer(0));
	json_set(structured, "stdout", json_string(""));
	json_set(structured, "stderr",
	         language && str_equal(err->field, "language")
	                 ? json_sprintf("Unsupported language: %s", language)
	                 : json_string(detail));
}

void tool_refuse(struct call *call, const struct error *err)
{
	cleanup_json json_t *error = reply_error_object(err, call->request_id);
	const char *detail = json_string_value(json_object_get(error, "error_detail"));
	cleanup_free char *text = xasprintf("Error: %s %s\n%s", remedy_describe(err->code), detail,
	                                    remedy_of(err, call->brief));
	json_t *structured = json_object();
	char ctx[REPLY_CTX_LEN];

	(void)snprintf(ctx, sizeof(ctx), "request_id=%s", call->request_id);
	if (error_is_internal(err))
		log_error_ctx(ctx, "tool failed", err);
	audit_request_refusal(call->router, call->principal, call->request_id, err,
	                      call->tool->name);
	metrics_count_for(call->router->parts.metrics, METRIC_REJECTED,
	                  METRIC_LABELS(error_text(err->code)), 1);
	json_set(structured, "code", json_string(error_text(err->code)));
	json_set(structured, "details", json_string(detail));
	json_set(structured, "field", json_incref(json_object_get(error, "field")));
	json_set(structured, "request_id", json_string(call->request_id));
	if (call->tool->run == tool_execute_code && !call->brief)
		add_setup_error(call, err, detail, structured);
	end_tool(call, text, structured, json_array(), err, true);
}

void tool_start(struct call *call, const struct tool *tool, const json_t *arguments)
{
	const struct decode_limits limits = {call->router->config->max_code_bytes};
	const char *scope = scope_name(tool->scope);
	struct error err = {0};

	call->tool = tool;
	call->started_us = clock_us();
	if (!scope_allows(call->principal->scopes, tool->scope))
		(void)error_set(&err, ERR_NO_SCOPE, 0, "tool %s needs scope %s", tool->name,
		                scope ? scope : "admin");
	else if (arguments)
		call->malformed =
			fields_decode(tool->input, arguments, &limits, &call->args, &err) < 0;
	if (err.code == ERR_UNKNOWN_FIELD)
		remedy_name_argument(&err);
	/* The name that this reader was shown. */
	if (call->brief && str_equal(err.field, "sandbox_id"))
		(void)snprintf(err.field, sizeof(err.field), "%s", "session_id");
	/* With a required audit log no change goes unlogged. */
	if (!error_is_set(&err) && !(tool->hints & TOOL_READ_ONLY))
		(void)!audit_check(call->router->parts.audit, &err);
	if (error_is_set(&err))
		tool_refuse(call, &err);
	else
		tool->run(call);
}

static void on_loaded(void *ctx, const struct error *err)
{
	struct call *call = ctx;
	struct session *session = session_find(call->router->parts.sessions,
	                                       call->principal->tenant, call->args.sandbox_id);
	struct error missing = {0};

	call->cancel = NULL;
	if (session) {
		call->with_session(call, session);
		return;
	}
	(void)error_set(&missing, ERR_SESSION_NOT_FOUND, 0, "no %s has the id '%.64s'",
	                tool_noun(call), call->args.sandbox_id);
	tool_refuse(call, err ? err : &missing);
}

void tool_with_session(struct call *call, call_session_fn *fn)
{
	const struct router_config *p = &call->router->parts;
	const char *id = call->args.sandbox_id;
	struct store_load *search;
	struct error err = {0};

	call->with_session = fn;
	if (!p->store || !id_is_valid(id, SESSION_ID_MAX) ||
	    session_find(p->sessions, call->principal->tenant, id)) {
		on_loaded(call, NULL);
		return;
	}
	search = session_row_load(p->sessions, call->principal->tenant, id, on_loaded, call, &err);
	if (search)
		call_wait_store(call, search);
	else
		tool_refuse(call, &err);
}
