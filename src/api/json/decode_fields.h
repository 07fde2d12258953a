/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: rows that tables share. A struct with a program begins with a struct decoded_run. */

#include "api/json/decode.h"
#include "api/json/fields.h"

/* clang-format off */
#define ID_TEXT "1 to 64 letters, digits, '_' or '-'"
/* Core checks these bounds, and its errors name the field. */
#define NAME_SCHEMA   "{\"minLength\": null}"
#define ID_SCHEMA     "{\"pattern\": \"^[A-Za-z0-9_-]{1,64}$\"}"
#define ENGINE_SCHEMA "{\"pattern\": \"^[a-z][a-z0-9-]{0,30}$\", \"examples\": [\"native\", \"auto\"]}"
#define POLICY_SCHEMA "{\"pattern\": \"^[a-z0-9][a-z0-9_-]{0,62}$\"}"
/* Of text, the usual forms of what is enough: other ones are accepted, too. */
#define MEMORY_TEXT   "^((1[6-9]|[2-9][0-9]|[1-9][0-9]{2,7})[mM]i?B?|[1-9][0-9]{0,5}[gG]i?B?|[1-9][0-9]{5,9}[kK]i?B?|[1-9][0-9]{8,12}B?)$"
#define DISK_TEXT     "^([1-9][0-9]{0,7}[mM]i?B?|[1-9][0-9]{0,5}[gG]i?B?|[1-9][0-9]{4,9}[kK]i?B?|[1-9][0-9]{7,12}B?)$"
#define MEMORY_SCHEMA "{\"oneOf\": [{\"type\": \"integer\", \"minimum\": 16777216}, {\"type\": \"string\", \"pattern\": \"" MEMORY_TEXT "\", \"examples\": [\"512Mi\"]}]}"
#define DISK_SCHEMA   "{\"oneOf\": [{\"type\": \"integer\", \"minimum\": 1048576}, {\"type\": \"string\", \"pattern\": \"" DISK_TEXT "\", \"examples\": [\"256Mi\"]}]}"
#define FILES_SCHEMA  "{\"type\": \"object\", \"additionalProperties\": {\"$ref\": \"#/components/schemas/Bytes\"}}"
#define OPTIONS_SCHEMA "{\"type\": \"object\", \"additionalProperties\": {\"type\": [\"string\", \"boolean\"]}}"
#define EVENT_SCHEMA  "{\"type\": \"object\", \"properties\": {\"__timeout\": {\"type\": \"number\", \"default\": 300}}}"

/* M is "request." where S has a struct run_request. */
#define RESOURCE_ROWS(S, M) \
	{"cpu", FIELD_CPU, AT(S, M cpu_millicores)}, \
	{"memory", FIELD_SIZE, AT(S, M memory_bytes), .schema = MEMORY_SCHEMA, .description = "At least 16Mi."}, \
	{"disk", FIELD_SIZE, AT(S, M disk_bytes), .schema = DISK_SCHEMA, .description = "At least 1Mi. Files are kept in memory: at most half of `memory` is granted."}, \
	{"max_processes", FIELD_INTEGER, AT(S, M max_processes), .min = 1, .schema = "{\"minimum\": 16}"}

#define ENGINE_ROWS(S, M) \
	{"engine", FIELD_STRING, AT(S, M engine), .min = 1, .schema = ENGINE_SCHEMA, \
	 .description = "Who makes the box: an engine of `GET /api/v1/runtimes`, or `auto`: the first that can do what is asked for. The default is that of the template, else the operator's. A named engine is never replaced: one that is not configured is a 400, one that the policy does not allow a 403, one that is away a 503."}, \
	{"min_isolation", FIELD_ENUM, AT(S, M min_isolation), .words = decode_grades, .schema = "{\"default\": \"namespace\"}", \
	 .description = "Least grade of isolation. namespace: the host's kernel is shared; gvisor: a kernel in user space; vm: a kernel of its own. Policy, template and operator may ask for more. Without an engine that has it nothing runs."}

#define POLICY_ROWS(S, M) \
	ENGINE_ROWS(S, M), \
	{"network", FIELD_ENUM, AT(S, M network), GIVEN(S, M network_asked), .words = decode_networks, \
	 .description = "Network of the box; the default is the policy's. More than the policy allows is a 403, more than the engine can provide a 503."}, \
	{"network_allow", FIELD_STRINGS, AT(S, M network_allow), .max = 64, .schema = "{\"items\": {\"type\": \"string\", \"examples\": [\"api.example.com\", \"pypi\"]}}", \
	 .description = "The hosts that the box reaches, and no others: rules as in `network.allow` of a policy. The network is then `allowlist`. Each must be among the policy's, or among those that requests may name (`network.request`); else the answer is a 403."}, \
	{"secrets", FIELD_STRINGS, AT(S, M secrets), .max = 8, \
	 .description = "Names of secrets that the proxy adds to requests to their hosts. The policy must allow them (`network.secrets`); the code never sees their values."}, \
	{"mcp", FIELD_STRINGS, AT(S, M mcp), .schema = "{\"maxItems\": 64, \"items\": {\"type\": \"string\", \"examples\": [\"github/search\"]}}", \
	 .description = "Tools of outside MCP servers that the code may call: `SERVER`, or `SERVER/TOOL` in which `*` stands for anything. The default is none. What the policy does not allow is a 403. GET /api/v1/mcp/servers lists them."}, \
	{"policy", FIELD_STRING, AT(S, M policy), .valid = policy_is_name, .what = "1 to 63 of a-z 0-9 _ -", .schema = POLICY_SCHEMA, \
	 .description = "A policy to apply besides that of the tenant; the narrower rule wins. One that the caller may not select is a 403."}

#define PACKAGE_ROWS(S, M) \
	{"packages", FIELD_STRINGS, AT(S, M packages), .schema = "{\"maxItems\": 256}", \
	 .description = "Packages of the language's registry, like `numpy` or `numpy==2.1`. Those that the root lacks are installed first, in a box of their own; the same packages are there at once the next time."}, \
	{"lock", FIELD_STRING, AT(S, M lock), .min = 1, .max = 1048576, \
	 .description = "Instead of packages: the text of a lock file (requirements.txt with hashes, package-lock.json, Cargo.toml and Cargo.lock, go.mod and go.sum, pom.xml, packages.lock.json), or what a layer shows as its lock. Of several files, each follows a line `==> NAME <==`."}

/* Code or a handler, and its input. */
#define PROGRAM_ROWS \
	{"code", FIELD_STRING, AT_LEN(struct decoded_run, request.code, request.code_len), .min = 1, .check = decode_check_code}, \
	{"handler_code", FIELD_STRING, AT_LEN(struct decoded_run, request.code, request.code_len), .min = 1, .check = decode_check_handler, \
	 .description = "Instead of `code`: Python that defines `handler(event)` or `handler(event, context)`. Its return value is `result`."}, \
	HANDLER_ROWS(decode_context_fields), \
	{"file_name", FIELD_STRING, AT(struct decoded_run, file_name), .min = 1, .max = WORKPATH_MAX, \
	 .description = "Name of the file that the code comes from: its extension selects the language if `language` is absent. It is also the name of the program for Python, JavaScript and TypeScript, in `argv` and tracebacks."}, \
	{"stdin", FIELD_BYTES, AT_LEN(struct decoded_run, request.stdin_data, request.stdin_len)}, \
	{"args", FIELD_STRINGS, AT(struct decoded_run, request.args)}, \
	{"files", FIELD_CUSTOM, .check = decode_files, .schema = FILES_SCHEMA, .description = "Relative path in the workspace to content."}, \
	{"env_vars", FIELD_ENV, AT(struct decoded_run, request.env)}, \
	{"options", FIELD_CUSTOM, .check = decode_options, .schema = OPTIONS_SCHEMA, .description = "Options of the language, as `GET /api/v1/languages` lists them: standard, optimisation, flags ..."}

#define HANDLER_ROWS(C) \
	{"event", FIELD_CUSTOM, .check = decode_event, .schema = EVENT_SCHEMA, \
	 .description = "Argument of the handler; beside `code` it means that the code defines one. At most 1 MiB. Its member `__timeout` is the time limit in seconds (0 and less: 300), and is removed."}, \
	{"context", FIELD_OBJECT, .fields = &C, .check = decode_keep_context}
/* clang-format on */

extern const char *const decode_networks[]; /* in the order of enum box_network */
extern const char *const decode_grades[];   /* in the order of enum box_grade */
/** decode_is_id - 1 to 64 letters, digits, '_' or '-'. */
bool decode_is_id(const char *text);

/* Of a struct decoded_run; the context is a struct decode_limits. */
field_fn decode_check_code;
field_fn decode_files;
field_fn decode_options;
/** decode_options_object - NAME=value; values are strings or booleans. Owned; NULL with *err. */
char **decode_options_object(const char *path, const json_t *object, struct error *err);

/* decode_run.c */
extern const struct field decode_context_rows[];
extern const struct fields decode_context_fields;
field_fn decode_check_handler;
field_fn decode_event;
field_fn decode_keep_context;
/** decode_handler_end - after all fields: the handler's argument, timeout and language. */
int decode_handler_end(struct decoded_run *d, struct error *err) attr_must_check;
