/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/decode_fields.h"

#include "api/json/json.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"

/*
 * Theory of operation. A program with a handler is code that defines a function and an event that
 * it is called with; what the function gets as its context are defaults, what the caller says, and
 * what is made for each call. All of it becomes one JSON text that the runner reads.
 */

#define EVENT_MAX    (1u << 20)
#define NAME_MAX_LEN 256
/* Seconds; the field of the event that says how long its handler may take. */
#define TIMEOUT_FIELD   "__timeout"
#define TIMEOUT_DEFAULT 300
#define TIMEOUT_MAX     3600

int decode_handler_code(struct decode *d, const char *path, const json_t *value)
{
	if (decode_code(d, path, value) < 0)
		return -1;
	if (!d->out->event)
		d->out->event = json_object();
	return 0;
}

int decode_event(struct decode *d, const char *path, const json_t *value)
{
	size_t len;
	char what[64];

	if (!json_is_object(value))
		return decode_wrong(d, path, "an object");
	len = json_dumpb(value, NULL, 0, JSON_COMPACT);
	if (len > EVENT_MAX) {
		(void)snprintf(what, sizeof(what), "exceeds %u bytes", EVENT_MAX);
		return decode_refuse(d, ERR_TOO_LARGE, path, what);
	}
	json_decref(d->out->event);
	/* Not that of the body: a member is taken out of it. */
	d->out->event = json_copy((json_t *)(uintptr_t)value);
	assert(d->out->event);
	return 0;
}

/* What callers may say of a context; texts have no least and no most. */
static const struct item {
	const char *name;
	const char *text; /* default; NULL: a number */
	json_int_t number, least, most;
} items[] = {
	{"function_name", "unknown-function", 0, 0, 0},
	{"function_version", "$LATEST", 0, 0, 0},
	{"remaining_time_in_millis", NULL, 3000, 100, 300000},
	{"memory_limit_in_mb", NULL, 256, 128, 3008},
	{"log_group_name", "/lambda-sandbox/logs", 0, 0, 0},
};

static const struct item *find_item(const char *path)
{
	const char *name = strrchr(path, '.') + 1; /* all are "context.NAME" */
	const struct item *item = items;

	while (!str_equal(item->name, name))
		item++;
	return item;
}

static int check_text(struct decode *d, const char *path, const json_t *value)
{
	if (!json_is_string(value) || json_string_length(value) == 0 ||
	    json_string_length(value) > NAME_MAX_LEN)
		return decode_wrong(d, path, "a string of 1 to 256 bytes");
	return 0;
}

static int take_item(struct decode *d, const char *path, const json_t *value)
{
	const struct item *item = find_item(path);
	json_int_t number = json_integer_value(value);
	char what[80];

	if (item->text)
		return check_text(d, path, value);
	if (json_is_integer(value) && number >= item->least && number <= item->most)
		return 0;
	(void)snprintf(what, sizeof(what), "a whole number, %lld to %lld", (long long)item->least,
	               (long long)item->most);
	return decode_wrong(d, path, what);
}

int decode_context(struct decode *d, const char *path, const json_t *value)
{
	struct field table[ARRAY_SIZE(items)];
	const struct fields fields = {"context.", table, ARRAY_SIZE(items)};

	if (!json_is_object(value))
		return decode_wrong(d, path, "an object");
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		table[i] = (struct field){items[i].name, take_item, false};
	if (decode_fields(d, &fields, value) < 0)
		return -1;
	d->out->context = json_incref((json_t *)(uintptr_t)value);
	return 0;
}

/* 8-4-4-4-12 hexadecimal digits, version 4. */
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

/* What the handler gets as its context; owned. */
static json_t *make_context(const json_t *given)
{
	json_t *context = json_object();
	json_t *request_id = make_uuid();

	for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
		json_t *value = json_object_get(given, items[i].name);

		if (!value)
			value = items[i].text ? json_string(items[i].text)
			                      : json_integer(items[i].number);
		else
			value = json_incref(value);
		json_set(context, items[i].name, value);
	}
	json_set(context, "request_id", json_incref(request_id));
	json_set(context, "aws_request_id", request_id);
	json_set(context, "log_stream_name", make_uuid());
	json_set(context, "invoked_function_arn",
	         json_sprintf("arn:aws:lambda:local:000000000000:function:%s",
	                      json_string_value(json_object_get(context, "function_name"))));
	return context;
}

/* Out of the event, which the handler gets without it. */
static int take_timeout(struct decode *d)
{
	json_t *value = json_object_get(d->out->event, TIMEOUT_FIELD);
	struct run_request *request = &d->out->request;
	double seconds = TIMEOUT_DEFAULT;

	if (value && !json_is_number(value))
		return decode_wrong(d, "event." TIMEOUT_FIELD, "a number of seconds");
	if (value && json_number_value(value) > 0)
		seconds = json_number_value(value);
	if (value)
		(void)json_object_del(d->out->event, TIMEOUT_FIELD);
	if (seconds > TIMEOUT_MAX)
		seconds = TIMEOUT_MAX;
	if (request->timeout_us == 0)
		request->timeout_us = (uint64_t)(seconds * USEC_PER_SEC);
	if (request->timeout_us < USEC_PER_MS)
		request->timeout_us = USEC_PER_MS;
	return 0;
}

int decode_handler_end(struct decode *d)
{
	struct run_request *request = &d->out->request;
	json_t *ask;

	if (!request->code)
		return error_field(d->err, "code", "is missing");
	if (!d->out->event)
		return d->out->context
		               ? error_field(d->err, "context", "is of a handler: give event too")
		               : 0;
	if (take_timeout(d) < 0)
		return -1;
	if (!request->language)
		request->language = xstrdup("python");
	ask = json_object();
	json_set(ask, "event", json_incref(d->out->event));
	json_set(ask, "context", make_context(d->out->context));
	request->ask = json_dumps(ask, JSON_COMPACT);
	json_decref(ask);
	assert(request->ask);
	return 0;
}
