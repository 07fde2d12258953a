/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_request.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/client/program.h"
#include "cli/message.h"
#include "cli/package.h"
#include "cli/resource.h"
#include "client/millibox.h"
#include "json/json_dump.h"

#define PIPE_PATIENCE_MS 2000

static int read_input(const char *path, struct buf *b, struct error *err)
{
	bool is_stdin = str_equal(path, "-");
	int r = is_stdin ? program_read_fd(STDIN_FILENO, b) : file_read_at(AT_FDCWD, path, b);

	if (r < 0)
		return error_set(err, ERR_NOT_FOUND, -r, "read %s",
		                 is_stdin ? "standard input" : path);
	return 0;
}

/* Of its file. NULL: standard input has no name. */
static const char *program_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (str_equal(path, "-"))
		return NULL;
	return slash ? slash + 1 : path;
}

/* @word is JSON, or @FILE. */
static int read_object(const char *option, const char *word, json_t **ret_object, struct error *err)
{
	cleanup_buf struct buf text = BUF_INIT(RUN_INPUT_MAX);
	json_error_t why;

	if (word[0] == '@' && read_input(word + 1, &text, err) < 0)
		return -1;
	if (word[0] != '@' && buf_add_str(&text, word) < 0)
		return error_set(err, ERR_TOO_LARGE, 0, "%s is too long", option);
	*ret_object = json_loadb(text.data ? text.data : "", text.len, 0, &why);
	if (!json_is_object(*ret_object))
		return error_set(err, ERR_INVALID, 0, "%s: not a JSON object", option);
	return 0;
}

static int read_handler(const struct run_options *options, struct run_input *input,
                        struct error *err)
{
	if (options->code || options->in_session)
		return error_set(err, ERR_INVALID, 0,
		                 "--handler cannot be combined with another program");
	if (read_input(options->handler, &input->code, err) < 0)
		return -1;
	input->language = options->language;
	input->file_name = program_name(options->handler);
	if (read_object("--event", options->event ? options->event : "{}", &input->event, err) < 0)
		return -1;
	return options->context ? read_object("--context", options->context, &input->context, err)
	                        : 0;
}

/* It may be code, or a path in the directory that the program gets. */
static int refuse_missing(const struct run_options *options, const char *word, struct error *err)
{
	cleanup_free char *inside = options->dir ? xasprintf("%s/%s", options->dir, word) : NULL;

	error_clear(err);
	if (inside && access(inside, F_OK) == 0)
		return error_set(err, ERR_NOT_FOUND, 0,
		                 "read %.60s: %s; did you mean '%.120s'? The program is a path "
		                 "of this machine",
		                 word, strerror(ENOENT), inside);
	return error_set(err, ERR_NOT_FOUND, 0, "read %.120s: %s; use -c to pass code", word,
	                 strerror(ENOENT));
}

static int refuse_directory(const struct run_options *options, const char *word, struct error *err)
{
	const char *way = !options->in_session
	                          ? "; to run a file of it beside all others: 'millibox run --dir "
	                            "DIR DIR/FILE'"
	                  : options->dir ? "; name a file of it"
	                                 : "; name a file of it: 'millibox cp DIR SESSION:' copies "
	                                   "the others";

	error_clear(err);
	return error_set(err, ERR_NOT_FOUND, 0, "read %.120s: %s%s", word, strerror(EISDIR), way);
}

static int read_program(const struct run_options *options, const char *word,
                        struct run_input *input, struct error *err)
{
	if (options->handler)
		return read_handler(options, input, err);
	if (options->event || options->context)
		return error_set(err, ERR_INVALID, 0, "--event and --context require --handler");
	if (!word && buf_add_str(&input->code, options->code) < 0)
		return error_set(err, ERR_TOO_LARGE, 0, "--code is too long");
	if (word && read_input(word, &input->code, err) < 0)
		return err->sys == ENOENT   ? refuse_missing(options, word, err)
		       : err->sys == EISDIR ? refuse_directory(options, word, err)
		                            : -1;
	input->language = options->language;
	if (word)
		input->file_name = program_name(word);
	return 0;
}

bool run_request_has_program(const void *values)
{
	const struct run_options *options = values;

	return options->code || options->handler;
}

/* A pipe that stays open is a trap: name the way out. */
static void wait_for_pipe(void)
{
	struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};

	if (poll(&ready, 1, PIPE_PATIENCE_MS) == 0)
		message_show("waiting for the program's standard input, a pipe; "
		             "'--stdin /dev/null' passes none");
}

const char *run_request_stdin(const struct run_options *options, const char *word)
{
	struct stat st = {0};

	if (options->stdin_path)
		return options->stdin_path;
	if (options->handler || (word && str_equal(word, "-")) || fstat(STDIN_FILENO, &st) < 0)
		return NULL;
	if (S_ISFIFO(st.st_mode))
		wait_for_pipe();
	return S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) ? "-" : NULL;
}

int run_request_read(const struct run_options *options, const char *word,
                     struct run_input *ret_input, struct error *err)
{
	const char *stdin_path = options->stdin_path;

	*ret_input = (struct run_input){
		.code = BUF_INIT(RUN_INPUT_MAX),
		.stdin_data = BUF_INIT(RUN_INPUT_MAX),
	};
	if (word && stdin_path && str_equal(word, "-") && str_equal(stdin_path, "-"))
		return error_set(err, ERR_INVALID, 0,
		                 "standard input cannot be both the program and its input");
	if (read_program(options, word, ret_input, err) < 0)
		return -1;
	return stdin_path ? read_input(stdin_path, &ret_input->stdin_data, err) : 0;
}

void run_input_done(struct run_input *input)
{
	buf_done(&input->code);
	buf_done(&input->stdin_data);
	json_decref(input->event);
	json_decref(input->context);
}

/* Of PATH or NAME=PATH. Return: owned. */
static char *file_name(const char *pair, const char **ret_path)
{
	const char *equals = strchr(pair, '='), *slash = strrchr(pair, '/');

	*ret_path = equals ? equals + 1 : pair;
	return equals ? xstrndup(pair, (size_t)(equals - pair)) : xstrdup(slash ? slash + 1 : pair);
}

static int add_file(struct millibox_request *request, const char *pair, struct error *err)
{
	cleanup_buf struct buf data = BUF_INIT(RUN_INPUT_MAX);
	const char *path;
	cleanup_free char *name = file_name(pair, &path);

	if (!*name || !*path)
		return error_set(err, ERR_INVALID, 0, "--file: '%s' is not PATH or NAME=PATH",
		                 pair);
	if (!utf8_is_valid(name, strlen(name)))
		return error_set(err, ERR_INVALID, 0, "--file: the name is not UTF-8 text");
	if (read_input(path, &data, err) < 0)
		return -1;
	return millibox_request_put_bytes(request, "files", name, data.data, data.len);
}

/* ERR_INVALID: an earlier file has the name of file @index. */
static int check_name(const struct option_list *list, size_t index, struct error *err)
{
	const char *path;
	cleanup_free char *name = file_name(list->items[index], &path);

	for (size_t i = 0; i < index; i++) {
		cleanup_free char *other = file_name(list->items[i], &path);

		if (str_equal(name, other))
			return error_set(err, ERR_INVALID, 0, "--file: '%s' is given twice", name);
	}
	return 0;
}

static int set_files(struct millibox_request *request, const struct option_list *list,
                     struct error *err)
{
	for (size_t i = 0; i < list->count; i++)
		if (check_name(list, i, err) < 0 || add_file(request, list->items[i], err) < 0)
			return -1;
	return 0;
}

static int set_args(struct millibox_request *request, const struct args *args, struct error *err)
{
	for (size_t i = 0; i < args->rest_count; i++)
		if (millibox_request_add(request, "args", args->rest[i]) < 0)
			return error_set(err, ERR_INVALID, 0, "an argument is not UTF-8 text");
	return 0;
}

#define AT(member) offsetof(struct run_options, member)

/* Only given limits: the policy has the defaults. */
static const struct resource_field common_fields[] = {
	{"cpu", RESOURCE_CORES, AT(cpu_millicores), "cpu", "resources"},
	{"memory", RESOURCE_SIZE, AT(memory_bytes), "memory", "resources"},
	{"disk", RESOURCE_SIZE, AT(disk_bytes), "disk", "resources"},
	{"processes", RESOURCE_NUMBER, AT(processes), "max_processes", "resources"},
	{"max-output", RESOURCE_NUMBER, AT(output_bytes), "max_output", "resources"},
	{"timeout", RESOURCE_SECONDS, AT(timeout_us), "timeout", NULL},
	{"receipt", RESOURCE_TEXT, AT(receipt), "receipt", NULL},
	{"engine", RESOURCE_TEXT, AT(engine), "engine", NULL},
	{"min-isolation", RESOURCE_TEXT, AT(min_isolation), "min_isolation", NULL},
	{"policy", RESOURCE_TEXT, AT(policy), "policy", NULL},
	{"network", RESOURCE_TEXT, AT(network), "network", NULL},
	{"allow", RESOURCE_LIST, AT(network_allow), "network_allow", NULL},
	{"secret", RESOURCE_LIST, AT(secrets), "secrets", NULL},
	{"mcp", RESOURCE_LIST, AT(mcp), "mcp", NULL},
	{"template", RESOURCE_TEXT, AT(template_id), "template_id", NULL},
	{"package", RESOURCE_LIST, AT(packages), "packages", NULL},
	{"packages", RESOURCE_WORDS, AT(package_names), "packages", NULL},
	{"env", RESOURCE_ENV, AT(env), "env_vars", NULL},
};

/* Not of sessions: these are of one program. */
static const struct resource_field program_fields[] = {
	{"option", RESOURCE_ENV, AT(language_options), "options", NULL},
};

json_t *run_request_common(const struct run_options *options, struct error *err)
{
	json_auto_t *body = json_object();
	cleanup_free char *lock = NULL;

	if (package_read_lock(options->lock, &lock, err) < 0 ||
	    resource_add_fields(body, common_fields, ARRAY_SIZE(common_fields), options, err) < 0)
		return NULL;
	if (lock && json_object_set_new(body, "lock", json_string(lock)) < 0) {
		(void)error_set(err, ERR_INVALID, 0, "--lock: not UTF-8 text");
		return NULL;
	}
	return TAKE_PTR(body);
}

/* The daemon knows the languages: without a name it chooses, by these. */
static int set_language(struct millibox_request *request, const struct run_options *options,
                        const struct run_input *input, struct error *err)
{
	const char *file = input->file_name;

	if (file && *file && utf8_is_valid(file, strlen(file)))
		(void)millibox_request_set(request, "file_name", file);
	if (input->language)
		return millibox_request_set(request, "language", input->language) < 0
		               ? error_set(err, ERR_INVALID, 0, "--language: not UTF-8 text")
		               : 0;
	/* A session has its own, but for the one that is made for this program. */
	if (!options->in_session || options->guess)
		(void)millibox_request_set(request, "default_language", "python");
	return 0;
}

static void set_object(struct millibox_request *request, const char *field, const json_t *object)
{
	cleanup_free char *text = object ? json_dump_text(object, JSON_COMPACT) : NULL;

	if (text)
		(void)millibox_request_set_json(request, field, text);
}

/* What is read from files and may be long is not copied through JSON text. */
static int fill_request(struct millibox_request *request, const struct run_options *options,
                        const struct run_input *input, const struct args *args, struct error *err)
{
	const char *code = input->code.data ? input->code.data : "";

	if (set_language(request, options, input, err) < 0)
		return -1;
	if (!utf8_is_valid(code, input->code.len))
		return error_set(err, ERR_BAD_MEDIA, 0, "the program is not UTF-8 text");
	(void)millibox_request_set_bytes(request, input->event ? "handler_code" : "code", code,
	                                 input->code.len);
	set_object(request, "event", input->event);
	set_object(request, "context", input->context);
	if (options->stdin_path)
		(void)millibox_request_set_bytes(request, "stdin", input->stdin_data.data,
		                                 input->stdin_data.len);
	if (options->background)
		(void)millibox_request_set_json(request, "background", "true");
	return set_args(request, args, err) < 0 ? -1 : set_files(request, &options->files, err);
}

struct millibox_request *run_request_build(const struct run_options *options,
                                           const struct run_input *input, const struct args *args,
                                           struct error *err)
{
	json_auto_t *fields = run_request_common(options, err);
	struct millibox_request *request;

	if (!fields || resource_add_fields(fields, program_fields, ARRAY_SIZE(program_fields),
	                                   options, err) < 0)
		return NULL;
	request = daemon_request(fields);
	if (fill_request(request, options, input, args, err) == 0)
		return request;
	millibox_request_free(request);
	return NULL;
}
