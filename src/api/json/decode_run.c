/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/decode_fields.h"

#include "api/json/json.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"
#include "core/policy/policies.h"
#include "core/request/workpath.h"
#include "json/json_dump.h"
#include <string.h>

/*
 * Theory of operation. A handler is a function in the code that the runner calls with an event and
 * a context (defaults, the caller's members, ids of the call). Both become one JSON text.
 */

#define ID_MAX             64
#define EVENT_MAX          (1u << 20)
#define DECODE_OPTIONS_MAX 32
/* Member of the event: seconds. */
#define TIMEOUT_FIELD   "__timeout"
#define TIMEOUT_DEFAULT 300
#define TIMEOUT_MOST    1e9 /* as of `timeout`: policy decides */

const char *const decode_networks[] = {"none", "allowlist", "bridge", "host", NULL};
static_assert(ARRAY_SIZE(decode_networks) == BOX_NETWORK_COUNT + 1, "every network has a word");

const char *const decode_grades[] = {"namespace", "gvisor", "vm", NULL};
static_assert(ARRAY_SIZE(decode_grades) == BOX_GRADE_COUNT + 1, "every grade has a word");

bool decode_is_id(const char *text)
{
	return id_is_valid(text, ID_MAX);
}

int decode_check_code(const struct field_value *v)
{
	const struct decode_limits *limits = v->ctx;
	char what[64];

	if (json_string_length(v->value) <= limits->max_code_bytes)
		return 0;
	(void)snprintf(what, sizeof(what), "exceeds %zu bytes", limits->max_code_bytes);
	return fields_refuse(v, ERR_TOO_LARGE, what);
}

/* Its content is decoded as a field of its own. */
static int take_file(const struct field_value *v, const char *name, json_t *content)
{
	static const struct field row = {"content", FIELD_BYTES,
	                                 AT_LEN(struct run_request_file, data, len)};
	struct run_request *request = &((struct decoded_run *)v->out)->request;
	struct run_request_file *file = &request->files[request->files_count++];
	char path[sizeof(v->err->field)];
	struct field_value item = *v;

	(void)snprintf(path, sizeof(path), "%s.%s", v->path, name);
	file->name = xstrdup(workpath_inside(name));
	item.field = &row;
	item.path = path;
	item.value = content;
	item.out = file;
	return field_take(&item);
}

int decode_files(const struct field_value *v)
{
	struct decoded_run *d = v->out;
	json_t *files = (json_t *)(uintptr_t)v->value, *content;
	const char *name;

	if (!json_is_object(files))
		return fields_wrong(v, "an object of name: content");
	if (json_object_size(files) == 0)
		return 0;
	d->request.files = xcalloc(json_object_size(files), sizeof(struct run_request_file));
	json_object_foreach (files, name, content)
		if (take_file(v, name, content) < 0)
			return -1;
	return 0;
}

/* NULL: neither text nor a boolean. */
static const char *option_text(const json_t *value)
{
	if (json_is_boolean(value))
		return json_is_true(value) ? "true" : "false";
	if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
		return NULL;
	return json_string_value(value);
}

char **decode_options_object(const char *path, const json_t *object, struct error *err)
{
	json_t *options = (json_t *)(uintptr_t)object, *value;
	cleanup_str_list char **list = NULL;
	char field[sizeof(err->field)];
	const char *name;
	size_t count = 0;

	if (!json_is_object(options) || json_object_size(options) > DECODE_OPTIONS_MAX) {
		(void)error_field(err, path, "must be an object of at most %d options",
		                  DECODE_OPTIONS_MAX);
		return NULL;
	}
	list = xcalloc(json_object_size(options) + 1, sizeof(*list));
	json_object_foreach (options, name, value) {
		const char *text = option_text(value);

		(void)snprintf(field, sizeof(field), "%s.%.32s", path, name);
		if (!text || strchr(name, '=')) {
			(void)error_field(err, field, "%s",
			                  text ? "is not an option"
			                       : "must be a string or a boolean");
			return NULL;
		}
		list[count++] = xasprintf("%s=%s", name, text);
	}
	return TAKE_PTR(list);
}

int decode_options(const struct field_value *v)
{
	struct decoded_run *d = v->out;

	d->request.options = decode_options_object(v->path, v->value, v->err);
	return d->request.options ? 0 : -1;
}

/* The code has a handler; its event is empty if none is given. */
int decode_check_handler(const struct field_value *v)
{
	struct decoded_run *d = v->out;

	if (!d->event)
		d->event = json_object();
	return decode_check_code(v);
}

int decode_event(const struct field_value *v)
{
	struct decoded_run *d = v->out;
	char what[64];

	if (!json_is_object(v->value))
		return fields_wrong(v, "an object");
	if (json_dump_size(v->value) > EVENT_MAX) {
		(void)snprintf(what, sizeof(what), "exceeds %u bytes", EVENT_MAX);
		return fields_refuse(v, ERR_TOO_LARGE, what);
	}
	json_decref(d->event);
	/* A copy: a member is removed from it. */
	d->event = json_copy((json_t *)(uintptr_t)v->value);
	assert(d->event);
	return 0;
}

/* clang-format off */
const struct field decode_context_rows[] = {
	{"function_name", FIELD_STRING, .min = 1, .max = 256, .fallback = "\"unknown-function\""},
	{"function_version", FIELD_STRING, .min = 1, .max = 256, .fallback = "\"$LATEST\""},
	{"remaining_time_in_millis", FIELD_INTEGER, .min = 100, .max = 300000, .fallback = "3000"},
	{"memory_limit_in_mb", FIELD_INTEGER, .min = 128, .max = 3008, .fallback = "256"},
	{"log_group_name", FIELD_STRING, .min = 1, .max = 256, .fallback = "\"/lambda-sandbox/logs\""},
	FIELDS_END,
};
/* clang-format on */

const struct fields decode_context_fields = {
	.name = "HandlerContext",
	.description = "Fields of the object that the handler may take as its second argument.",
	.rows = decode_context_rows,
};

int decode_keep_context(const struct field_value *v)
{
	struct decoded_run *d = v->out;

	d->context = json_incref((json_t *)(uintptr_t)v->value);
	return 0;
}

/* Version 4. */
static json_t *make_uuid(void)
{
	static const char hex[] = "0123456789abcdef";
	unsigned char bytes[16];
	char text[37];
	size_t n = 0;

	id_random_bytes(bytes, sizeof(bytes));
	bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40);
	bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			text[n++] = '-';
		text[n++] = hex[bytes[i] >> 4];
		text[n++] = hex[bytes[i] & 0x0f];
	}
	text[n] = '\0';
	return json_string(text);
}

/* Of one call. Return: owned. */
static json_t *make_context(const json_t *given)
{
	json_t *context = json_object();
	json_t *request_id = make_uuid();

	for (const struct field *f = decode_context_rows; f->name; f++) {
		json_t *value = json_object_get(given, f->name);

		json_set(context, f->name,
		         value ? json_incref(value)
		               : json_loads(f->fallback, JSON_DECODE_ANY, NULL));
	}
	json_set(context, "request_id", json_incref(request_id));
	json_set(context, "aws_request_id", request_id);
	json_set(context, "log_stream_name", make_uuid());
	json_set(context, "invoked_function_arn",
	         json_sprintf("arn:aws:lambda:local:000000000000:function:%s",
	                      json_string_value(json_object_get(context, "function_name"))));
	return context;
}

/* The handler does not see it. */
static int take_timeout(struct decoded_run *d, struct error *err)
{
	json_t *value = json_object_get(d->event, TIMEOUT_FIELD);
	struct run_request *request = &d->request;
	double seconds = TIMEOUT_DEFAULT;

	if (value && !json_is_number(value))
		return error_field(err, "event." TIMEOUT_FIELD, "must be a number of seconds");
	if (value && json_number_value(value) > 0)
		seconds = json_number_value(value);
	if (value)
		(void)json_object_del(d->event, TIMEOUT_FIELD);
	if (seconds > TIMEOUT_MOST)
		seconds = TIMEOUT_MOST;
	if (request->timeout_us == 0) {
		request->timeout_us = (uint64_t)(seconds * USEC_PER_SEC);
		request->timeout_soft = !value;
	}
	if (request->timeout_us < USEC_PER_MS)
		request->timeout_us = USEC_PER_MS;
	return 0;
}

/* Takes @ask. Return: owned. */
static char *end_ask(json_t *ask, const struct decoded_run *d)
{
	const char *name = d->file_name ? d->file_name : "", *slash = strrchr(name, '/');
	char *text;

	name = slash ? slash + 1 : name;
	if (*name)
		json_set(ask, "name", json_string(name));
	text = json_dump_text(ask, JSON_COMPACT);
	json_decref(ask);
	assert(text);
	return text;
}

/* Return: owned. */
static char *make_ask(const struct decoded_run *d, json_t *event, bool optional)
{
	json_t *ask = json_object();

	json_set(ask, "event", event);
	json_set(ask, "context", make_context(d->context));
	if (optional)
		json_set(ask, "optional", json_true());
	return end_ask(ask, d);
}

void decode_offer_event(struct decoded_run *d)
{
	if (!d->request.ask)
		d->request.ask = make_ask(d, json_object(), true);
}

void decode_name_program(struct decoded_run *d)
{
	if (d->file_name && !d->request.ask && !d->request.name_ask)
		d->request.name_ask = end_ask(json_object(), d);
}

int decode_handler_end(struct decoded_run *d, struct error *err)
{
	struct run_request *request = &d->request;

	if (!request->code)
		return error_field(err, "code", "is missing");
	if (!d->event)
		return d->context ? error_field(err, "context", "needs an event too") : 0;
	if (take_timeout(d, err) < 0)
		return -1;
	/* Else that of the file. */
	if (!request->language && !d->file_name)
		request->language = xstrdup("python");
	request->ask = make_ask(d, json_incref(d->event), false);
	return 0;
}

static int take_receipt(const struct field_value *v)
{
	static const char *const words[] = {
		[RECEIPT_NONE] = "none", [RECEIPT_PLAIN] = "plain", [RECEIPT_SIGNED] = "signed"};
	struct decoded_run *run = v->out;
	const char *word = json_string_value(v->value);

	for (size_t i = 0; word && i < ARRAY_SIZE(words); i++)
		if (str_equal(word, words[i])) {
			run->request.receipt = i;
			return 0;
		}
	return fields_wrong(v, "\"none\", \"plain\" or \"signed\"");
}

static int take_async(const struct field_value *v)
{
	struct decoded_run *run = v->out;

	run->wait |= !json_is_true(v->value);
	return 0;
}

#define TTY_ROWS 24
#define TTY_COLS 80

static int take_side(const struct field_value *v, const json_t *tty, const char *name,
                     uint64_t *ret_side)
{
	const json_t *value = json_object_get(tty, name);
	json_int_t n = json_integer_value(value);
	char path[32];

	if (!value)
		return 0;
	if (json_is_integer(value) && n >= 1 && n <= DECODE_TTY_MAX) {
		*ret_side = (uint64_t)n;
		return 0;
	}
	(void)snprintf(path, sizeof(path), "%.16s.%.8s", v->path, name);
	return error_field(v->err, path, "must be a number from 1 to %d", DECODE_TTY_MAX);
}

/* Implies what a terminal needs. */
static int take_tty(const struct field_value *v)
{
	struct run_request *request = &((struct decoded_run *)v->out)->request;
	json_t *tty = (json_t *)(uintptr_t)v->value, *value;
	const char *name;

	if (!json_is_object(tty))
		return fields_wrong(v, "an object with rows and cols");
	json_object_foreach (tty, name, value)
		if (!str_equal(name, "rows") && !str_equal(name, "cols"))
			return fields_wrong(v, "an object with rows and cols only");
	request->tty_rows = TTY_ROWS;
	request->tty_cols = TTY_COLS;
	request->background = request->stdin_open = true;
	if (take_side(v, tty, "rows", &request->tty_rows) < 0)
		return -1;
	return take_side(v, tty, "cols", &request->tty_cols);
}

/* clang-format off */
static const struct fields resources = {
	.description = "Requested resources. Below the minimum is a 400. Beyond the maximum of policy and operator they are clamped to it, or it is a 403 where the policy says so: see `/api/v1/policy/explain`.",
	.rows = (const struct field[]){
		RESOURCE_ROWS(struct decoded_run, request.),
		{"max_output", FIELD_SIZE, AT(struct decoded_run, request.max_output_bytes)},
		FIELDS_END,
	},
};

#define RECEIPT_ROW \
	{"receipt", FIELD_CUSTOM, .check = take_receipt, .schema = "{\"type\": \"string\", \"enum\": [\"none\", \"plain\", \"signed\"], \"default\": \"none\"}", \
	 .description = "How much the result says about its isolation. none: engine, mode and missing layers. plain: also the layers, the start, policies, filter, network, limits and versions. signed: the same, and a `receipt`, which binds code, output, outcome and isolation to this execution, signed with the key of the installation."}

const struct fields decode_exec_fields = {
	.name = "ExecuteRequest",
	.description = "`code`, or `handler_code` of Python.",
	.rows = (const struct field[]){
		{"language", FIELD_STRING, AT(struct decoded_run, request.language), .min = 1, .schema = "{\"minLength\": null, \"examples\": [\"python\", \"shell\"]}",
		 .description = "Default: that of `file_name`, of a `#!` line, or of typical text in the code. The result names it. If it is not certain: `default_language`, or a 400 that lists the candidates."},
		{"default_language", FIELD_STRING, AT(struct decoded_run, default_language), .min = 1, .schema = "{\"minLength\": null}", .description = "Language of code whose language is not certain."},
		PROGRAM_ROWS,
		{"timeout", FIELD_SECONDS, AT(struct decoded_run, request.timeout_us), .schema = "{\"minimum\": 0.001, \"maximum\": 1000000000}",
		 .description = "Seconds. Beyond the maximum of policy and operator it is clamped to it, or it is a 403 where the policy says so."},
		{"resources", FIELD_OBJECT, .fields = &resources},
		{"template_id", FIELD_STRING, AT(struct decoded_run, request.template_id), .min = 1, .schema = NAME_SCHEMA, .description = "Default: the root of the host and the defaults of the operator."},
		PACKAGE_ROWS(struct decoded_run, request.),
		POLICY_ROWS(struct decoded_run, request.),
		RECEIPT_ROW,
		{"stream", FIELD_BOOL, AT(struct decoded_run, stream), .schema = "{\"default\": false}"},
		FIELDS_END,
	},
};

const struct fields decode_run_fields = {
	.name = "RunRequest",
	.flags = FIELDS_LOOSE,
	.rows = (const struct field[]){
		PROGRAM_ROWS,
		{"language", FIELD_STRING, AT(struct decoded_run, request.language), .min = 1, .schema = NAME_SCHEMA, .description = "Default: that of `file_name` or of a `#!` line, else that of the session."},
		{"default_language", FIELD_STRING, AT(struct decoded_run, default_language), .min = 1, .schema = "{\"minLength\": null}", .description = "Instead of the session's: the language is that of typical text in the code, or this one if that is not certain."},
		{"stdin_open", FIELD_BOOL, AT(struct decoded_run, request.stdin_open), .schema = "{\"default\": false}", .description = "Keep standard input open for `/executions/{id}/stdin`."},
		{"timeout", FIELD_SECONDS, AT(struct decoded_run, request.timeout_us), .min = 1, .max = DECODE_RUN_MAX, .schema = "{\"default\": 30}", .description = "Seconds. In the background the default is limits.background_time, or the rest of the session's lifetime."},
		{"background", FIELD_BOOL, AT(struct decoded_run, request.background), .schema = "{\"default\": false}",
		 .description = "Start at once in a process of its own, beside the queue of a session that keeps its box; 16 at most at a time."},
		{"tty", FIELD_CUSTOM, .check = take_tty, .schema = "{\"type\": \"object\", \"properties\": {\"rows\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000, \"default\": 24}, \"cols\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000, \"default\": 80}}}",
		 .description = "Run on a terminal of this size: in the background, with standard input open and all output in `stdout`."},
		RECEIPT_ROW,
		{"wait", FIELD_BOOL, AT(struct decoded_run, wait), .schema = "{\"default\": false}"},
		{"async_mode", FIELD_BOOL, .check = take_async, .schema = "{\"default\": true}", .description = "The opposite of wait."},
		{"stream", FIELD_BOOL, AT(struct decoded_run, stream), .schema = "{\"default\": false}"},
		FIELDS_END,
	},
};

const struct fields decode_input_fields = {
	.name = "Input",
	.rows = (const struct field[]){
		{"data", FIELD_BYTES, AT_LEN(struct decoded_input, data, len)},
		{"end", FIELD_BOOL, AT(struct decoded_input, end), .schema = "{\"default\": false}", .description = "Close standard input after the data."},
		FIELDS_END,
	},
};
/* clang-format on */

/* clang-format off */
const struct fields decode_resize_fields = {
	.name = "TerminalSize",
	.rows = (const struct field[]){
		{"rows", FIELD_INTEGER, AT(struct decoded_resize, rows), .min = 1, .max = DECODE_TTY_MAX, .required = true},
		{"cols", FIELD_INTEGER, AT(struct decoded_resize, cols), .min = 1, .max = DECODE_TTY_MAX, .required = true},
		FIELDS_END,
	},
};
/* clang-format on */

int decode_exec(const char *body, size_t len, const struct decode_limits *limits,
                struct decoded_run *ret_exec, struct error *err)
{
	cleanup_json json_t *object = json_read_object(body, len, err);

	return object ? decode_exec_object(object, limits, ret_exec, err) : -1;
}

int decode_exec_object(const json_t *object, const struct decode_limits *limits,
                       struct decoded_run *ret_exec, struct error *err)
{
	if (fields_decode(&decode_exec_fields, object, limits, ret_exec, err) < 0)
		return -1;
	return decode_handler_end(ret_exec, err);
}

void decoded_run_done(struct decoded_run *d)
{
	run_request_done(&d->request);
	json_decref(d->event);
	json_decref(d->context);
	free(d->file_name);
	free(d->default_language);
	*d = (struct decoded_run){0};
}

int decode_run(const char *body, size_t len, const struct decode_limits *limits,
               struct decoded_run *ret_run, struct error *err)
{
	cleanup_json json_t *object = json_read_object(body, len, err);

	if (!object || fields_decode_open(&decode_run_fields, object, limits, limits->warnings,
	                                  ret_run, err) < 0)
		return -1;
	/* Whichever came first. */
	if (ret_run->request.tty_rows > 0)
		ret_run->request.background = ret_run->request.stdin_open = true;
	if (ret_run->needs_language && !ret_run->request.language)
		return error_field(err, "language", "is missing");
	return decode_handler_end(ret_run, err);
}

int decode_input(const char *body, size_t len, struct decoded_input *ret_input, struct error *err)
{
	if (fields_decode_text(&decode_input_fields, body, len, NULL, ret_input, err) < 0)
		return -1;
	if (!ret_input->data && !ret_input->end)
		return error_field(err, "data", "is missing");
	return 0;
}

int decode_resize(const char *body, size_t len, struct decoded_resize *ret_size, struct error *err)
{
	return fields_decode_text(&decode_resize_fields, body, len, NULL, ret_size, err);
}

int decode_resize_object(const json_t *object, struct decoded_resize *ret_size, struct error *err)
{
	if (!json_is_object(object))
		return error_field(err, "resize", "must be an object with rows and cols");
	return fields_decode(&decode_resize_fields, object, NULL, ret_size, err);
}

void decoded_input_done(struct decoded_input *d)
{
	free(d->data);
	*d = (struct decoded_input){0};
}
