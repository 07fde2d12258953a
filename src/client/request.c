/* SPDX-License-Identifier: Apache-2.0 */
#include "client/handle.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "client/encode_bytes.h"
#include "json/json_dump.h"

/* A request is the body of its call. What is wrong is kept until then, so that a caller may check
 * once. */

struct millibox_request *millibox_request_new(const char *code)
{
	struct millibox_request *request = NEW(struct millibox_request);

	request->body = json_object();
	if (code)
		(void)millibox_request_set(request, "code", code);
	return request;
}

void millibox_request_free(struct millibox_request *request)
{
	if (!request)
		return;
	json_decref(request->body);
	free(request->text);
	free(request);
}

static int fail_request(struct millibox_request *request, const char *field, const char *what)
{
	if (request && !error_is_set(&request->error))
		(void)error_field(&request->error, field ? field : "field", "%s", what);
	return -1;
}

/* The object that has the field, made if it is missing. Return: NULL: not an object. */
static json_t *find_parent(json_t *body, const char *field, const char **ret_key)
{
	const char *dot = strchr(field, '.');
	cleanup_free char *name = dot ? xstrndup(field, (size_t)(dot - field)) : NULL;
	json_t *parent = body;

	*ret_key = dot ? dot + 1 : field;
	if (!name)
		return parent;
	parent = json_object_get(body, name);
	if (!parent && json_object_set_new(body, name, json_object()) == 0)
		parent = json_object_get(body, name);
	return json_is_object(parent) ? parent : NULL;
}

/* Takes @value; NULL: it is not valid. */
static int set_value(struct millibox_request *request, const char *field, json_t *value,
                     const char *what)
{
	const char *key = NULL;
	json_t *parent = request && field ? find_parent(request->body, field, &key) : NULL;

	if (!value)
		return fail_request(request, field, what);
	if (parent && json_object_set(parent, key, value) == 0) {
		json_decref(value);
		return 0;
	}
	json_decref(value);
	return fail_request(request, field, "is not a field that can have this value");
}

int millibox_request_set(struct millibox_request *request, const char *field, const char *text)
{
	return set_value(request, field, text ? json_string(text) : NULL, "must be UTF-8 text");
}

int millibox_request_set_number(struct millibox_request *request, const char *field, double value)
{
	bool whole = fabs(value) < 1e15 && value == (double)(json_int_t)value;
	json_t *number = whole             ? json_integer((json_int_t)value)
	                 : isfinite(value) ? json_real(value)
	                                   : NULL;

	return set_value(request, field, number, "must be a finite number");
}

int millibox_request_set_bytes(struct millibox_request *request, const char *field,
                               const void *data, size_t len)
{
	return set_value(request, field, data || len == 0 ? encode_bytes(data, len) : NULL,
	                 "must be bytes");
}

int millibox_request_set_json(struct millibox_request *request, const char *field, const char *json)
{
	return set_value(request, field,
	                 json ? json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL,
	                 "must be JSON");
}

int millibox_request_add(struct millibox_request *request, const char *field, const char *text)
{
	const char *key = NULL;
	json_t *parent = request && field ? find_parent(request->body, field, &key) : NULL;
	json_t *list = parent ? json_object_get(parent, key) : NULL;

	if (parent && !list && json_object_set_new(parent, key, json_array()) == 0)
		list = json_object_get(parent, key);
	if (!json_is_array(list))
		return fail_request(request, field, "is not a list");
	if (!text || json_array_append_new(list, json_string(text)) < 0)
		return fail_request(request, field, "must be UTF-8 text");
	return 0;
}

/* Names may contain dots: they are no fields. Takes @value. */
static int put_value(struct millibox_request *request, const char *field, const char *name,
                     json_t *value)
{
	json_t *object = request && field ? json_object_get(request->body, field) : NULL;

	if (request && field && !object &&
	    json_object_set_new(request->body, field, json_object()) == 0)
		object = json_object_get(request->body, field);
	if (json_is_object(object) && name && value && json_object_set(object, name, value) == 0) {
		json_decref(value);
		return 0;
	}
	json_decref(value);
	return fail_request(request, field, "must have a name and a value of UTF-8 text");
}

int millibox_request_put(struct millibox_request *request, const char *field, const char *name,
                         const char *text)
{
	return put_value(request, field, name, text ? json_string(text) : NULL);
}

int millibox_request_put_bytes(struct millibox_request *request, const char *field,
                               const char *name, const void *data, size_t len)
{
	return put_value(request, field, name, data || len == 0 ? encode_bytes(data, len) : NULL);
}

int millibox_request_deadline(struct millibox_request *request, double seconds)
{
	if (!request || client_seconds(seconds, &request->deadline_us) < 0)
		return fail_request(request, "seconds", "must be a number of seconds");
	return 0;
}

int millibox_request_on_output(struct millibox_request *request, millibox_output_fn *fn, void *ctx)
{
	if (!request)
		return -1;
	request->on_output = fn;
	request->output_ctx = ctx;
	return 0;
}

int millibox_request_on_start(struct millibox_request *request, millibox_text_fn *fn, void *ctx)
{
	if (!request)
		return -1;
	request->on_start = fn;
	request->start_ctx = ctx;
	return 0;
}

int millibox_request_on_value(struct millibox_request *request, millibox_text_fn *fn, void *ctx)
{
	if (!request)
		return -1;
	request->on_value = fn;
	request->value_ctx = ctx;
	return 0;
}

int millibox_request_on_install(struct millibox_request *request, millibox_output_fn *fn, void *ctx)
{
	if (!request)
		return -1;
	request->on_install = fn;
	request->install_ctx = ctx;
	return 0;
}

const char *millibox_request_json(struct millibox_request *request)
{
	if (!request)
		return NULL;
	free(request->text);
	request->text = json_dump_text(request->body, 0);
	return request->text;
}
