/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/size.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/client/exec_call.h"
#include "cli/client/interrupt.h"
#include "cli/color.h"
#include "cli/common_options.h"
#include "cli/message.h"
#include "cli/run_send.h"
#include "client/millibox.h"
#include "json/json_dump.h"

/*
 * The command line of SandboxRunner's sandbox-run: flags, formats and exit statuses, over the
 * request of "millibox run --handler". Also installed as sandbox-run.
 */

#define INPUT_MAX       (8 * MIB)
#define DEFAULT_TIMEOUT 300
#define PROCESSES_LEAST 16         /* of the API */
#define TIMEOUT_MOST    1000000000 /* of the API; the daemon grants less, and says so */
#define RULE            "--------------------------------------------------"
#define CONFIG_NAME     ".sandboxrc.json"

/* A handler's own status passes through. */
enum sandbox_exit {
	SANDBOX_OK = 0,
	SANDBOX_GENERAL = 1,
	SANDBOX_FILE = 2,
	SANDBOX_CODE = 3, /* syntax, or no handler */
	SANDBOX_TIMEOUT = 4,
	SANDBOX_INIT = 5,
};

struct sandbox_options {
	const char *event, *event_file, *context, *context_file;
	const char *output, *format, *log_level;
	struct daemon_options at;
	uint64_t timeout_s;
	bool verbose, quiet, profile, version;
};

struct show {
	const struct sandbox_options *options;
	const char *format;
	bool profile, color;
};

static int read_text(const char *path, struct buf *text, struct error *err)
{
	int r = file_read_at(AT_FDCWD, path, text);

	return r < 0 ? error_set(err, ERR_NOT_FOUND, -r, "read %s", path) : 0;
}

/* From the working directory, else HOME. Return: owned; NULL: none. */
static json_t *read_config(void)
{
	const char *home = getenv("HOME");
	cleanup_free char *at_home = home ? xasprintf("%s/" CONFIG_NAME, home) : NULL;
	const char *const paths[] = {CONFIG_NAME, at_home};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		cleanup_buf struct buf text = BUF_INIT(INPUT_MAX);
		json_t *object;

		if (!paths[i] || file_read_at(AT_FDCWD, paths[i], &text) < 0)
			continue;
		object = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
		if (json_is_object(object))
			return object;
		json_decref(object);
		message_show("ignoring %s: not a JSON object", paths[i]);
	}
	return NULL;
}

/* *ret_object stays NULL if neither is given. */
static int read_object(const char *name, const char *text, const char *path, json_t **ret_object,
                       struct error *err)
{
	cleanup_buf struct buf from_file = BUF_INIT(INPUT_MAX);

	if (text && path)
		return error_set(err, ERR_INVALID, 0, "give --%s or --%s-file, not both", name,
		                 name);
	if (!text && !path)
		return 0;
	if (path && read_text(path, &from_file, err) < 0)
		return -1;
	*ret_object =
		path ? json_loadb(from_file.data ? from_file.data : "", from_file.len, 0, NULL)
		     : json_loads(text, 0, NULL);
	return json_is_object(*ret_object)
	               ? 0
	               : error_set(err, ERR_INVALID, 0, "--%s is not a JSON object", name);
}

/*
 * The settings of a box. Times of idle workers and numbers of their tasks have no meaning here,
 * since no box is used twice; nor has cpu_quota, seconds that the time limit bounds already.
 */
static void add_resources(const json_t *config, json_t *body)
{
	const json_t *own = json_object_get(config, "sandbox");
	json_int_t kib = json_integer_value(json_object_get(own, "memory_limit"));
	json_int_t processes = json_integer_value(json_object_get(own, "max_user_progress"));
	json_auto_t *resources = json_object();

	if (kib > 0 && kib < INT64_MAX / (json_int_t)KIB)
		json_object_set_new(resources, "memory", json_integer(kib * (json_int_t)KIB));
	/* SandboxRunner counts those of the user, we also agent and runner. */
	if (processes > 0)
		json_object_set_new(
			resources, "max_processes",
			json_integer(processes < PROCESSES_LEAST ? PROCESSES_LEAST : processes));
	if (json_object_size(resources) > 0)
		json_object_set(body, "resources", resources);
	/* Hosts are the policy's decision: it refuses this if it names none. */
	if (json_is_true(json_object_get(own, "allow_network")))
		json_object_set_new(body, "network", json_string("allowlist"));
}

static int build_body(const struct sandbox_options *o, const json_t *config, const struct buf *code,
                      json_t *body, struct error *err)
{
	const json_t *own = json_object_get(json_object_get(config, "cli"), "default_timeout");
	const char *script = code->data ? code->data : "";
	json_auto_t *event = NULL, *context = NULL;
	json_int_t limit = json_integer_value(own) > 0 ? json_integer_value(own) : DEFAULT_TIMEOUT;

	if (read_object("event", o->event, o->event_file, &event, err) < 0 ||
	    read_object("context", o->context, o->context_file, &context, err) < 0)
		return -1;
	if (!utf8_is_valid(script, code->len))
		return error_set(err, ERR_INVALID, 0, "the script is not UTF-8 text");
	if (o->timeout_s)
		limit = o->timeout_s < TIMEOUT_MOST ? (json_int_t)o->timeout_s : TIMEOUT_MOST;
	add_resources(config, body);
	json_object_set_new(body, "handler_code", json_stringn(script, code->len));
	json_object_set_new(body, "event", event ? json_incref(event) : json_object());
	if (context)
		json_object_set(body, "context", context);
	/* The event's own time-out overrides the default. */
	if (o->timeout_s || !json_object_get(event, "__timeout"))
		json_object_set_new(body, "timeout", json_integer(limit));
	return 0;
}

static int exit_status(const json_t *result)
{
	const char *name = message_text(json_object_get(result, "error"), "name");
	const char *status = message_text(result, "status");
	int code = (int)json_integer_value(json_object_get(result, "exit_code"));

	if (str_equal(status, "success"))
		return SANDBOX_OK;
	if (str_equal(status, "timeout"))
		return SANDBOX_TIMEOUT;
	if (str_equal(status, "crashed"))
		return SANDBOX_INIT;
	if (str_equal(name, "SyntaxError") || str_equal(name, "IndentationError") ||
	    str_equal(name, "TabError") || str_equal(name, "HandlerNotFound"))
		return SANDBOX_CODE;
	/* An exception is a general failure; a handler's status passes through. */
	return *name || code <= 0 ? SANDBOX_GENERAL : code;
}

/* Printed by all formats. Return: owned. */
static json_t *make_view(const struct show *show, const json_t *result, int status)
{
	static const char *const copied[] = {"duration_ms", "cpu_time_ms", "memory_peak_mb"};
	const json_t *from = json_object_get(result, "metrics");
	json_t *j = json_object(), *metrics = json_object();
	char now[40];

	for (size_t i = 0; i < ARRAY_SIZE(copied); i++)
		json_object_set(metrics, copied[i], json_object_get(from, copied[i]));
	json_object_set_new(j, "exit_code", json_integer(status));
	json_object_set(j, "stdout", json_object_get(result, "stdout"));
	json_object_set(j, "stderr", json_object_get(result, "stderr"));
	json_object_set(j, "result", json_object_get(result, "result"));
	json_object_set_new(j, "metrics", metrics);
	if (status == SANDBOX_TIMEOUT)
		json_object_set_new(j, "error", json_string("Execution timed out"));
	if (show->options->verbose) {
		clock_format_utc(clock_real_ms(), now, sizeof(now));
		json_object_set_new(j, "timestamp", json_string(now));
	}
	return j;
}

static void print_json(FILE *out, const json_t *j, size_t flags)
{
	cleanup_free char *text = json_dump_text(j, flags | JSON_ENSURE_ASCII);

	if (!text)
		abort();
	(void)fputs(text, out);
}

static void print_section(FILE *out, const char *title, const char *text)
{
	if (!*text)
		return;
	(void)fprintf(out, "\n%s:\n", title);
	(void)fputs(text, out);
	if (text[strlen(text) - 1] != '\n')
		(void)fputc('\n', out);
}

static void print_pretty(FILE *out, const struct show *show, const json_t *j)
{
	static const char *const types[] = {
		[JSON_OBJECT] = "dict", [JSON_ARRAY] = "list",    [JSON_STRING] = "str",
		[JSON_INTEGER] = "int", [JSON_REAL] = "float",    [JSON_TRUE] = "bool",
		[JSON_FALSE] = "bool",  [JSON_NULL] = "NoneType",
	};
	const json_t *result = json_object_get(j, "result"),
		     *metrics = json_object_get(j, "metrics");
	int status = (int)json_integer_value(json_object_get(j, "exit_code"));

	color_print(out, show->color, status == SANDBOX_OK ? COLOR_GREEN : COLOR_RED,
	            status == SANDBOX_OK        ? "\u2713 Execution successful"
	            : status == SANDBOX_TIMEOUT ? "\u2717 Execution timed out"
	                                        : "\u2717 Execution failed");
	(void)fputc('\n', out);
	print_section(out, "STDOUT", message_text(j, "stdout"));
	print_section(out, "STDERR", message_text(j, "stderr"));
	if (status == 0) {
		(void)fputs("\nRESULT:\n", out);
		print_json(out, result, JSON_INDENT(2));
		(void)fputc('\n', out);
	}
	if (show->profile || show->options->verbose)
		(void)fprintf(out,
		              "\nMETRICS:\nDuration: %.2f ms\nCPU Time: %.2f ms\n"
		              "Memory Peak: %.2f MB\n",
		              json_number_value(json_object_get(metrics, "duration_ms")),
		              json_number_value(json_object_get(metrics, "cpu_time_ms")),
		              json_number_value(json_object_get(metrics, "memory_peak_mb")));
	if (show->options->verbose)
		(void)fprintf(out, "\nDETAILS:\nTimestamp: %s\nExit Code: %d\nResult Type: %s\n",
		              message_text(j, "timestamp"), status, types[json_typeof(result)]);
}

static void print_format(FILE *out, const struct show *show, json_t *j)
{
	const char *key;
	json_t *value;

	if (str_equal(show->format, "json")) {
		print_json(out, j, JSON_INDENT(2));
		(void)fputc('\n', out);
	} else if (str_equal(show->format, "yaml")) {
		/* JSON values are YAML; only the top level differs. */
		json_object_foreach (j, key, value) {
			(void)fprintf(out, "%s: ", key);
			print_json(out, value, JSON_COMPACT);
			(void)fputc('\n', out);
		}
	} else {
		print_pretty(out, show, j);
	}
}

static int print_view(const struct show *show, json_t *j)
{
	const char *path = show->options->output;
	cleanup_close int fd = path ? fd_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
	cleanup_free char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int r = 0;

	if (!out)
		abort();
	print_format(out, show, j);
	if (fclose(out) != 0)
		abort();
	if (path)
		r = fd < 0 ? fd : fd_write_all(fd, text, len);
	else
		(void)fwrite(text, 1, len, stdout);
	if (r < 0)
		message_show("cannot write %s: %s", path, strerror(-r));
	return r;
}

static int on_result(void *ctx, const json_t *result, const json_t *problem)
{
	const struct show *show = ctx;
	const char *code = message_text(problem, "error_code");
	json_auto_t *j = NULL;
	int status;

	if (problem) {
		message_show_problem(problem);
		return str_equal(code, error_text(ERR_INVALID)) ? SANDBOX_GENERAL : SANDBOX_INIT;
	}
	message_show_warnings(result);
	status = exit_status(result);
	/* Which limit it was; on stderr, also for json and yaml. */
	exit_status_explain(result);
	j = make_view(show, result, status);
	if (print_view(show, j) < 0)
		status = SANDBOX_GENERAL;
	return status;
}

/* Of languages that have handlers; the daemon knows which is whose. */
static bool is_script(const char *path)
{
	static const char *const endings[] = {".py", ".js", ".mjs", ".cjs", ".ts"};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && dot > path && i < ARRAY_SIZE(endings); i++)
		if (str_equal(dot, endings[i]))
			return true;
	return false;
}

static bool is_log_level(const char *word)
{
	static const char *const levels[] = {"DEBUG", "INFO", "WARNING", "ERROR"};

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (str_equal(word, levels[i]))
			return true;
	return false;
}

static int check_options(const struct sandbox_options *o, const struct args *args,
                         const char *format, struct error *err)
{
	const char *path = args->words_count == 1 ? args->words[0] : NULL;

	if (!path)
		return error_set(err, ERR_INVALID, 0, "expected one script");
	if (!is_script(path))
		return error_set(err, ERR_INVALID, 0,
		                 "'%s' does not end in .py, .js, .mjs, .cjs or .ts", path);
	if (!str_equal(format, "pretty") && !str_equal(format, "json") &&
	    !str_equal(format, "yaml"))
		return error_set(err, ERR_INVALID, 0, "--format must be pretty, json or yaml");
	if (o->log_level && !is_log_level(o->log_level))
		return error_set(err, ERR_INVALID, 0,
		                 "--log-level must be DEBUG, INFO, WARNING or ERROR");
	return 0;
}

static int send_body(const struct sandbox_options *o, const struct show *show, const json_t *body,
                     struct error *err)
{
	cleanup_request struct millibox_request *request = daemon_request(body);
	const struct run_send what = {
		.request = request, .report = on_result, .ctx = (void *)(uintptr_t)show};
	cleanup_close int interrupt_fd = interrupt_open(err);
	cleanup_exec_call struct exec_call call = {0};
	int status;

	if (interrupt_fd < 0)
		return SANDBOX_INIT;
	exec_call_init(&call, interrupt_fd, true);
	status = run_send(&what, &o->at, &call, err);
	if (status == CLI_ERROR)
		return SANDBOX_INIT;
	return status == CLI_USAGE ? SANDBOX_GENERAL : status;
}

static int execute_script(const struct sandbox_options *o, const struct show *show,
                          const char *path, const json_t *config, struct error *err)
{
	cleanup_buf struct buf code = BUF_INIT(INPUT_MAX);
	const char *slash = strrchr(path, '/');
	json_auto_t *body = json_object();

	if (read_text(path, &code, err) < 0 || build_body(o, config, &code, body, err) < 0)
		return err->code == ERR_NOT_FOUND ? SANDBOX_FILE : SANDBOX_GENERAL;
	json_object_set_new(body, "file_name", json_string(slash ? slash + 1 : path));
	if (!o->quiet && str_equal(show->format, "pretty") && !o->output)
		(void)printf("Executing: %s\n" RULE "\n", path);
	return send_body(o, show, body, err);
}

static int run_sandbox(const void *values, const struct args *args, struct error *err)
{
	const struct sandbox_options *o = values;
	json_auto_t *config = read_config();
	const json_t *own = json_object_get(config, "cli");
	struct show show = {.options = o, .format = o->format, .profile = o->profile};
	if (!show.format)
		show.format = json_is_string(json_object_get(own, "default_format"))
		                      ? message_text(own, "default_format")
		                      : "pretty";
	show.profile |= json_is_true(json_object_get(own, "show_profile"));
	show.color = !o->output && color_is_on(STDOUT_FILENO) &&
	             !json_is_false(json_object_get(own, "enable_colors"));
	if (o->version) {
		(void)puts("sandbox-run 1.0.0");
		return SANDBOX_OK;
	}
	if (check_options(o, args, show.format, err) < 0)
		return SANDBOX_GENERAL;
	return execute_script(o, &show, args->words[0], config, err);
}

#define AT(member) offsetof(struct sandbox_options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{"event", 'e', OPTION_TEXT, AT(event), "JSON", "event for the handler; default: {}"},
	{"event-file", 'f', OPTION_TEXT, AT(event_file), "FILE", "read the event from a file"},
	{"context", 'c', OPTION_TEXT, AT(context), "JSON", "context fields for the handler"},
	{"context-file", 0, OPTION_TEXT, AT(context_file), "FILE", "read the context from a file"},
	{"timeout", 't', OPTION_NUMBER, AT(timeout_s), "SECONDS", "time limit; default: 300"},
	{"verbose", 'v', OPTION_FLAG, AT(verbose), NULL, "also print metrics, timestamp and result type"},
	{"quiet", 'q', OPTION_FLAG, AT(quiet), NULL, "omit the line before the output"},
	{"profile", 'p', OPTION_FLAG, AT(profile), NULL, "print times and memory"},
	{"output", 'o', OPTION_TEXT, AT(output), "FILE", "write the result to FILE"},
	{"format", 0, OPTION_TEXT, AT(format), "FORMAT", "output format: pretty (default), json or yaml"},
	{"log-level", 0, OPTION_TEXT, AT(log_level), "LEVEL", "log level: DEBUG, INFO, WARNING or ERROR; ignored, for compatibility"},
	{"version", 0, OPTION_FLAG, AT(version), NULL, "print the version of this interface"},
	ISOLATION_ROW(AT(at)),
	ENDPOINT_ROWS(AT(at)),
};
/* clang-format on */

COMMAND(sandbox_run, "sandbox-run", "SCRIPT",
        "Call the handler of a script, like the command sandbox-run of sandbox-runtime",
        run_sandbox, rows, struct sandbox_options,
        .text = "The script is Python, JavaScript or TypeScript, by its name. The exit status "
                "is 0; 1 for a general failure; 2 if a file cannot be read; 3 for a syntax "
                "error or a missing handler; 4 at the time limit; 5 if no box could be "
                "created; 130 after an interrupt; 137 out of memory; or the exit status of the "
                "handler. The program is also installed as sandbox-run.\n");
