/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/decode_fields.h"

#include "api/json/json.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"

/*
 * Theory of operation. A handler is a function in the code that the runner calls with an event and
 * a context (defaults, the caller's members, ids of the call). Both become one JSON text.
 */

#define EVENT_MAX (1u << 20)
/* Member of the event: seconds. */
#define TIMEOUT_FIELD   "__timeout"
#define TIMEOUT_DEFAULT 300
#define TIMEOUT_MAX     3600

/* The code has a handler; its event is empty if none is given. */
int decode_check_handler(const struct field_value *v)
{
	struct decoded_exec *d = v->out;

	if (!d->event)
		d->event = json_object();
	return decode_check_code(v);
}

int decode_event(const struct field_value *v)
{
	struct decoded_exec *d = v->out;
	char what[64];

	if (!json_is_object(v->value))
		return fields_wrong(v, "an object");
	if (json_dumpb(v->value, NULL, 0, JSON_COMPACT) > EVENT_MAX) {
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
	struct decoded_exec *d = v->out;

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
static int take_timeout(struct decoded_exec *d, struct error *err)
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
	if (seconds > TIMEOUT_MAX)
		seconds = TIMEOUT_MAX;
	if (request->timeout_us == 0)
		request->timeout_us = (uint64_t)(seconds * USEC_PER_SEC);
	if (request->timeout_us < USEC_PER_MS)
		request->timeout_us = USEC_PER_MS;
	return 0;
}

int decode_handler_end(struct decoded_exec *d, struct error *err)
{
	struct run_request *request = &d->request;
	json_t *ask;

	if (!request->code)
		return error_field(err, "code", "is missing");
	if (!d->event)
		return d->context ? error_field(err, "context", "needs an event too") : 0;
	if (take_timeout(d, err) < 0)
		return -1;
	if (!request->language)
		request->language = xstrdup("python");
	ask = json_object();
	json_set(ask, "event", json_incref(d->event));
	json_set(ask, "context", make_context(d->context));
	request->ask = json_dumps(ask, JSON_COMPACT);
	json_decref(ask);
	assert(request->ask);
	return 0;
}
