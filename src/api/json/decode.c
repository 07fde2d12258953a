/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/decode_fields.h"

#include "api/json/json.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/suggest.h"
#include "core/policy/policies.h"
#include <math.h>
#include <string.h>

/* A million cores: beyond it the arithmetic, not the policy, would be the limit. */
#define CORES_MAX 1e6

int decode_wrong(struct decode *d, const char *path, const char *what)
{
	return error_field(d->err, path, "must be %s", what);
}

static const char *nearest(const struct fields *fields, const char *name)
{
	struct suggest s = {.word = name};

	for (size_t i = 0; i < fields->count; i++)
		suggest_offer(&s, fields->table[i].name);
	return s.best;
}

static bool is_known(const struct fields *fields, const char *name)
{
	for (size_t i = 0; i < fields->count; i++)
		if (str_equal(fields->table[i].name, name))
			return true;
	return false;
}

int decode_refuse(struct decode *d, enum error_code code, const char *path, const char *what)
{
	(void)error_field(d->err, path, "%s", what);
	d->err->code = code;
	return -1;
}

static bool is_resource(const char *name);

static int unknown_field(struct decode *d, const struct fields *fields, const char *name)
{
	const char *meant = nearest(fields, name);
	char path[sizeof(d->err->field)], what[128] = "no such field";

	(void)snprintf(path, sizeof(path), "%s%s", fields->prefix, name);
	/* Where others have it: it is one level too high. */
	if (is_known(fields, "resources") && is_resource(name))
		(void)snprintf(what, sizeof(what), "no such field; did you mean '%sresources.%s'?",
		               fields->prefix, name);
	else if (meant)
		(void)snprintf(what, sizeof(what), "no such field; did you mean '%s%s'?",
		               fields->prefix, meant);
	return decode_refuse(d, ERR_UNKNOWN_FIELD, path, what);
}

int decode_fields(struct decode *d, const struct fields *fields, const json_t *object)
{
	void *iter = json_object_iter((json_t *)(uintptr_t)object);

	for (; iter; iter = json_object_iter_next((json_t *)(uintptr_t)object, iter))
		if (!d->lenient && !is_known(fields, json_object_iter_key(iter)))
			return unknown_field(d, fields, json_object_iter_key(iter));
	for (size_t i = 0; i < fields->count; i++) {
		const struct field *f = &fields->table[i];
		const json_t *value = json_object_get(object, f->name);
		char path[sizeof(d->err->field)];
		int r = str_format(path, sizeof(path), "%s%s", fields->prefix, f->name);

		assert(r == 0);
		(void)r;
		if (!value && f->required)
			return error_field(d->err, path, "is missing");
		if (value && f->take(d, path, value) < 0)
			return -1;
	}
	return 0;
}

/* A string without NUL, copied. */
int decode_string(struct decode *d, const char *path, const json_t *value, char **ret_text)
{
	const char *text = json_string_value(value);
	size_t len = json_string_length(value);

	if (!text)
		return decode_wrong(d, path, "a string");
	if (memchr(text, '\0', len))
		return error_field(d->err, path,
		                   "must not contain NUL; send bytes as {\"base64\": ...}");
	*ret_text = xmemdup0(text, len);
	return 0;
}

/* Text, or any bytes as {"base64": "..."}. */
int decode_bytes(struct decode *d, const char *path, const json_t *value, char **ret_data,
                 size_t *ret_len)
{
	const json_t *encoded = json_object_get(value, "base64");
	const char *text = json_string_value(encoded);

	if (json_is_string(value)) {
		if (decode_string(d, path, value, ret_data) < 0)
			return -1;
		*ret_len = json_string_length(value);
		return 0;
	}
	if (!text || json_object_size(value) != 1)
		return decode_wrong(d, path, "a string or {\"base64\": \"...\"}");
	*ret_data = base64_decode(text, json_string_length(encoded), ret_len);
	return *ret_data ? 0 : error_field(d->err, path, "is not valid base64");
}

static int take_size(struct decode *d, const char *path, const json_t *value, uint64_t *ret_bytes)
{
	const char *text = json_string_value(value);
	json_int_t number = json_integer_value(value);
	uint64_t bytes = 0;

	if (text && memchr(text, '\0', json_string_length(value)))
		return decode_wrong(d, path, "a size like \"512Mi\" or a number of bytes");
	if (text ? parse_size(text, &bytes) < 0 : !json_is_integer(value))
		return decode_wrong(d, path, "a size like \"512Mi\" or a number of bytes");
	if (!text)
		bytes = number > 0 ? (uint64_t)number : 0;
	if (bytes == 0)
		return decode_wrong(d, path, "greater than 0");
	*ret_bytes = bytes;
	return 0;
}

int decode_language(struct decode *d, const char *path, const json_t *value)
{
	char **language = &d->out->request.language;

	if (decode_string(d, path, value, language) < 0)
		return -1;
	return (*language)[0] ? 0 : error_field(d->err, path, "must not be empty");
}

int decode_code(struct decode *d, const char *path, const json_t *value)
{
	struct run_request *request = &d->out->request;
	char what[64];

	if (request->code)
		return error_field(d->err, path, "the code is given twice");
	if (json_string_length(value) > d->limits->max_code_bytes) {
		(void)snprintf(what, sizeof(what), "exceeds %zu bytes", d->limits->max_code_bytes);
		return decode_refuse(d, ERR_TOO_LARGE, path, what);
	}
	if (decode_string(d, path, value, &request->code) < 0)
		return -1;
	request->code_len = json_string_length(value);
	return request->code_len > 0 ? 0 : error_field(d->err, path, "must not be empty");
}

int decode_stdin(struct decode *d, const char *path, const json_t *value)
{
	struct run_request *request = &d->out->request;

	return decode_bytes(d, path, value, &request->stdin_data, &request->stdin_len);
}

int decode_args(struct decode *d, const char *path, const json_t *value)
{
	size_t count = json_array_size(value);
	char **args;

	if (!json_is_array(value))
		return decode_wrong(d, path, "an array of strings");
	args = d->out->request.args = xcalloc(count + 1, sizeof(char *));
	for (size_t i = 0; i < count; i++) {
		char item[sizeof(d->err->field)];

		(void)snprintf(item, sizeof(item), "%s[%zu]", path, i);
		if (decode_string(d, item, json_array_get(value, i), &args[i]) < 0)
			return -1;
	}
	return 0;
}

/* Room for the path of a member whose name the caller chose: cut where there is no more. */
static void member_path(char *ret_path, size_t size, const char *path, const char *name)
{
	(void)snprintf(ret_path, size, "%s.%s", path, name);
}

static int take_file(struct decode *d, const char *path, const char *name, const json_t *value)
{
	struct run_request *request = &d->out->request;
	struct run_request_file *file = &request->files[request->files_count++];
	char item[sizeof(d->err->field)];

	member_path(item, sizeof(item), path, name);
	file->name = xstrdup(name);
	return decode_bytes(d, item, value, &file->data, &file->len);
}

int decode_files(struct decode *d, const char *path, const json_t *value)
{
	json_t *object = (json_t *)(uintptr_t)value; /* jansson's iterator lacks the const */
	size_t count = json_object_size(value);

	if (!json_is_object(value))
		return decode_wrong(d, path, "an object of name: content");
	if (count == 0)
		return 0;
	d->out->request.files = xcalloc(count, sizeof(struct run_request_file));
	for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i))
		if (take_file(d, path, json_object_iter_key(i), json_object_iter_value(i)) < 0)
			return -1;
	return 0;
}

/* A scalar as the text a program finds in its environment. */
static int take_scalar(struct decode *d, const char *path, const json_t *value, char **ret_text)
{
	if (json_is_string(value))
		return decode_string(d, path, value, ret_text);
	if (!json_is_number(value) && !json_is_boolean(value))
		return decode_wrong(d, path, "a string, a number or a boolean");
	*ret_text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	assert(*ret_text);
	return 0;
}

static int take_variable(struct decode *d, const char *path, const char *name, const json_t *value,
                         char **ret_assignment)
{
	cleanup_free char *text = NULL;
	char item[sizeof(d->err->field)];

	member_path(item, sizeof(item), path, name);
	/* Joined with '=' below: a name with one would become another variable. */
	if (name[0] == '\0' || strchr(name, '='))
		return error_field(d->err, item, "is not a name of a variable");
	if (take_scalar(d, item, value, &text) < 0)
		return -1;
	*ret_assignment = xasprintf("%s=%s", name, text);
	return 0;
}

int decode_env(struct decode *d, const char *path, const json_t *value)
{
	json_t *object = (json_t *)(uintptr_t)value;
	char **env;
	size_t used = 0;

	if (!json_is_object(value))
		return decode_wrong(d, path, "an object of name: value");
	env = d->out->request.env = xcalloc(json_object_size(value) + 1, sizeof(char *));
	for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i))
		if (take_variable(d, path, json_object_iter_key(i), json_object_iter_value(i),
		                  &env[used++]) < 0)
			return -1;
	return 0;
}

int decode_seconds(struct decode *d, const char *path, const json_t *value, uint64_t *ret_us)
{
	double seconds = json_number_value(value);

	if (!json_is_number(value))
		return decode_wrong(d, path, "a number of seconds");
	if (!(seconds > 0) || seconds > DECODE_SECONDS_MAX)
		return decode_wrong(d, path, "at least 0.001 and at most 1000000000 seconds");
	*ret_us = (uint64_t)ceil(seconds * 1e6);
	return 0;
}

int decode_timeout(struct decode *d, const char *path, const json_t *value)
{
	return decode_seconds(d, path, value, &d->out->request.timeout_us);
}

int decode_cpu(struct decode *d, const char *path, const json_t *value)
{
	static const char what[] = "a number of cores like 0.5, \"0.5\" or \"500m\", at least 0.01";
	const char *text = json_string_value(value);
	double cores = json_number_value(value);
	uint64_t millicores = 0;

	if (text) {
		if (memchr(text, '\0', json_string_length(value)) ||
		    parse_cpu(text, &millicores) < 0 || millicores == 0)
			return decode_wrong(d, path, what);
	} else {
		if (!json_is_number(value) || !(cores >= 0.01) || cores > CORES_MAX)
			return decode_wrong(d, path, what);
		millicores = (uint64_t)llround(cores * 1000);
	}
	d->out->request.cpu_millicores = millicores;
	return 0;
}

int decode_memory(struct decode *d, const char *path, const json_t *value)
{
	return take_size(d, path, value, &d->out->request.memory_bytes);
}

int decode_disk(struct decode *d, const char *path, const json_t *value)
{
	return take_size(d, path, value, &d->out->request.disk_bytes);
}

static int take_output(struct decode *d, const char *path, const json_t *value)
{
	return take_size(d, path, value, &d->out->request.max_output_bytes);
}

static int take_processes(struct decode *d, const char *path, const json_t *value)
{
	json_int_t count = json_integer_value(value);

	if (!json_is_integer(value) || count <= 0)
		return decode_wrong(d, path, "a whole number greater than 0");
	d->out->request.max_processes = (uint64_t)count;
	return 0;
}

static const struct field resource_fields[] = {
	{"cpu", decode_cpu, false},         {"memory", decode_memory, false},
	{"disk", decode_disk, false},       {"max_processes", take_processes, false},
	{"max_output", take_output, false},
};

static bool is_resource(const char *name)
{
	const struct fields fields = {"", resource_fields, ARRAY_SIZE(resource_fields)};

	return is_known(&fields, name);
}

int decode_resources(struct decode *d, const char *path, const json_t *value)
{
	const struct fields fields = {"resources.", resource_fields, ARRAY_SIZE(resource_fields)};

	if (!json_is_object(value))
		return decode_wrong(d, path, "an object");
	return decode_fields(d, &fields, value);
}

int decode_network(struct decode *d, const char *path, const json_t *value)
{
	const char *mode = json_string_value(value);

	if (!mode)
		return decode_wrong(d, path, "a string");
	for (int i = 0; i < BOX_NETWORK_COUNT; i++) {
		const char *name = box_network_name((enum box_network)i);

		if (strlen(name) != json_string_length(value) || !str_equal(name, mode))
			continue;
		d->out->request.network = (enum box_network)i;
		d->out->request.network_asked = true;
		return 0;
	}
	return decode_wrong(d, path, "\"none\", \"allowlist\", \"bridge\" or \"host\"");
}

int decode_policy(struct decode *d, const char *path, const json_t *value)
{
	char **policy = &d->out->request.policy;

	if (decode_string(d, path, value, policy) < 0)
		return -1;
	return policy_is_name(*policy) ? 0 : decode_wrong(d, path, "1 to 63 of a-z 0-9 _ -");
}

int decode_bool(struct decode *d, const char *path, const json_t *value, bool *ret_value)
{
	if (!json_is_boolean(value))
		return decode_wrong(d, path, "true or false");
	*ret_value = json_is_true(value);
	return 0;
}

int decode_stream(struct decode *d, const char *path, const json_t *value)
{
	return decode_bool(d, path, value, &d->out->stream);
}

int decode_template_id(struct decode *d, const char *path, const json_t *value)
{
	char **id = &d->out->request.template_id;

	if (decode_string(d, path, value, id) < 0)
		return -1;
	return (*id)[0] ? 0 : error_field(d->err, path, "must not be empty");
}

static const struct field exec_fields[] = {
	{"language", decode_language, false},
	{"code", decode_code, false},
	{"handler_code", decode_handler_code, false},
	{"event", decode_event, false},
	{"context", decode_context, false},
	{"stdin", decode_stdin, false},
	{"args", decode_args, false},
	{"files", decode_files, false},
	{"env_vars", decode_env, false},
	{"timeout", decode_timeout, false},
	{"resources", decode_resources, false},
	{"template_id", decode_template_id, false},
	{"network", decode_network, false},
	{"policy", decode_policy, false},
	{"stream", decode_stream, false},
};

int decode_exec(const char *body, size_t len, const struct decode_limits *limits,
                struct decoded_exec *ret_run, struct error *err)
{
	cleanup_json json_t *object = json_read_object(body, len, err);

	return object ? decode_exec_object(object, limits, ret_run, err) : -1;
}

int decode_exec_object(const json_t *object, const struct decode_limits *limits,
                       struct decoded_exec *ret_run, struct error *err)
{
	const struct fields fields = {"", exec_fields, ARRAY_SIZE(exec_fields)};
	struct decode d = {.limits = limits, .out = ret_run, .err = err};

	if (decode_fields(&d, &fields, object) < 0)
		return -1;
	/* A handler is Python's. */
	if (!ret_run->request.language && !ret_run->event)
		return error_field(err, "language", "is missing");
	return decode_handler_end(&d);
}

void decoded_exec_done(struct decoded_exec *d)
{
	run_request_done(&d->request);
	json_decref(d->event);
	json_decref(d->context);
	*d = (struct decoded_exec){0};
}
