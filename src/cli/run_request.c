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
#include "base/base64.h"
#include "base/file.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/client/api_call.h"
#include "cli/client/program.h"
#include "cli/language.h"
#include "cli/message.h"
#include "cli/resource.h"

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

/* NULL: the daemon takes the session's, or guesses from the code. */
static void choose_language(const struct run_options *options, const char *word,
                            struct run_input *input)
{
	bool is_named = word && !str_equal(word, "-");

	input->language = options->language;
	if (!input->language && is_named)
		input->language = language_of_name(word);
	if (!input->language && input->code.len > 0)
		input->language = language_of_code(input->code.data, input->code.len);
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
	input->language = options->language ? options->language : "python";
	if (read_object("--event", options->event ? options->event : "{}", &input->event, err) < 0)
		return -1;
	return options->context ? read_object("--context", options->context, &input->context, err)
	                        : 0;
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
	if (word && read_input(word, &input->code, err) < 0) {
		if (err->sys != ENOENT)
			return -1;
		/* It may be code. */
		error_clear(err);
		return error_set(err, ERR_NOT_FOUND, 0, "read %.120s: %s; use -c to pass code",
		                 word, strerror(ENOENT));
	}
	choose_language(options, word, input);
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

/* Binary data is sent as {"base64": ...}. */
static json_t *encode_bytes(const struct buf *bytes)
{
	const char *data = bytes->data ? bytes->data : "";
	cleanup_free char *encoded = NULL;

	if (utf8_is_valid(data, bytes->len) && !memchr(data, '\0', bytes->len))
		return json_stringn(data, bytes->len);
	encoded = base64_encode(data, bytes->len);
	return json_pack("{s:s}", "base64", encoded);
}

static int add_file(json_t *files, const char *pair, struct error *err)
{
	cleanup_buf struct buf data = BUF_INIT(RUN_INPUT_MAX);
	const char *equals = strchr(pair, '=');
	cleanup_free char *name = equals ? xstrndup(pair, (size_t)(equals - pair)) : NULL;

	if (!name || !*name || !equals[1])
		return error_set(err, ERR_INVALID, 0, "--file: '%s' is not NAME=PATH", pair);
	if (!utf8_is_valid(name, strlen(name)))
		return error_set(err, ERR_INVALID, 0, "--file: the name is not UTF-8 text");
	if (json_object_get(files, name))
		return error_set(err, ERR_INVALID, 0, "--file: '%s' is given twice", name);
	if (read_input(equals + 1, &data, err) < 0)
		return -1;
	if (json_object_set_new(files, name, encode_bytes(&data)) < 0)
		return error_set(err, ERR_SYSTEM, ENOMEM, "--file: '%s'", name);
	return 0;
}

static int set_files(json_t *body, const struct option_list *list, struct error *err)
{
	json_t *files;

	if (list->count == 0)
		return 0;
	files = json_object();
	if (json_object_set_new(body, "files", files) < 0)
		return error_set(err, ERR_SYSTEM, ENOMEM, "build the request");
	for (size_t i = 0; i < list->count; i++)
		if (add_file(files, list->items[i], err) < 0)
			return -1;
	return 0;
}

static int set_args(json_t *body, const struct args *args, struct error *err)
{
	json_t *list;

	if (args->rest_count == 0)
		return 0;
	list = json_array();
	if (json_object_set_new(body, "args", list) < 0)
		return error_set(err, ERR_SYSTEM, ENOMEM, "build the request");
	for (size_t i = 0; i < args->rest_count; i++) {
		if (json_array_append_new(list, json_string(args->rest[i])) < 0)
			return error_set(err, ERR_INVALID, 0, "an argument is not UTF-8 text");
	}
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
	{"policy", RESOURCE_TEXT, AT(policy), "policy", NULL},
	{"network", RESOURCE_TEXT, AT(network), "network", NULL},
	{"template", RESOURCE_TEXT, AT(template_id), "template_id", NULL},
	{"env", RESOURCE_ENV, AT(env), "env_vars", NULL},
};

static int add_common(json_t *body, const struct run_options *options, struct error *err)
{
	return resource_add_fields(body, common_fields, ARRAY_SIZE(common_fields), options, err);
}

json_t *run_request_common(const struct run_options *options, struct error *err)
{
	json_auto_t *body = json_object();

	return add_common(body, options, err) < 0 ? NULL : TAKE_PTR(body);
}

static int fill_body(json_t *body, const struct run_options *options, const struct run_input *input,
                     const struct args *args, struct error *err)
{
	const char *code = input->code.data ? input->code.data : "";

	if (input->language &&
	    json_object_set_new(body, "language", json_string(input->language)) < 0)
		return error_set(err, ERR_INVALID, 0, "--language: not UTF-8 text");
	if (!utf8_is_valid(code, input->code.len))
		return error_set(err, ERR_BAD_MEDIA, 0, "the program is not UTF-8 text");
	if (json_object_set_new(body, input->event ? "handler_code" : "code",
	                        json_stringn(code, input->code.len)) < 0 ||
	    (input->event && json_object_set(body, "event", input->event) < 0) ||
	    (input->context && json_object_set(body, "context", input->context) < 0) ||
	    (options->stdin_path &&
	     json_object_set_new(body, "stdin", encode_bytes(&input->stdin_data)) < 0))
		return error_set(err, ERR_SYSTEM, ENOMEM, "build the request");
	if (set_args(body, args, err) < 0 || add_common(body, options, err) < 0)
		return -1;
	return set_files(body, &options->files, err);
}

char *run_request_build(const struct run_options *options, const struct run_input *input,
                        const struct args *args, struct error *err)
{
	json_auto_t *body = json_object();

	return fill_body(body, options, input, args, err) < 0 ? NULL : api_body(body, err);
}
