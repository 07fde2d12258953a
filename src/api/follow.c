/* SPDX-License-Identifier: Apache-2.0 */
#include "api/follow.h"

#include "api/json.h"
#include "api/reply.h"
#include "api/text_stream.h"
#include "api/view.h"
#include "base/alloc.h"
#include "base/log.h"
#include "core/execution.h"
#include "http/server.h"
#include "io/timer.h"
#include <inttypes.h>

/*
 * Theory of operation. A follower ends with whichever comes first: the last event, the client's
 * leaving, or the end of its patience. Each of the three releases it.
 *
 * Events keep the numbers that the execution gave them, so that a client that was cut off says the
 * last one it saw and goes on from there. Output is bytes and events are text, and a character may
 * be cut in two by the border of two events: its beginning is held back, and told in the later one.
 * Who comes back after the earlier one must get the whole character, so all events are gone through
 * again from the first, and those the client has are left out only then.
 *
 * What is derived from the last event (the rest of a cut character, rich results) has no number of
 * its own: a client that saw some of it and not the end asks for all of it again.
 */

struct follower {
	struct http_request *req; /* the server's */
	struct execution *execution;
	struct execution_watch *watch;
	struct timer *patience; /* NULL: endless */
	enum event_form form;
	uint64_t after;
	struct text_stream text[OUTPUT_COUNT];
};

static const struct {
	const char *name;
	enum output_stream stream;
} outputs[EXECUTION_EVENT_COUNT] = {
	[EXECUTION_EVENT_STDOUT] = {"stdout", OUTPUT_STDOUT},
	[EXECUTION_EVENT_STDERR] = {"stderr", OUTPUT_STDERR},
};

static void release(struct follower *f)
{
	timer_free(f->patience);
	free(f);
}

/* One event. @number 0: none of its own. @object is released. */
static char *render(enum event_form form, const char *name, uint64_t number, json_t *object,
                    size_t *ret_len)
{
	json_t *event = json_object();
	cleanup_free char *text = NULL;
	char *line;
	int r;

	json_set(event, "event", json_string(name));
	if (number > 0)
		json_set(event, "id", json_integer((json_int_t)number));
	r = json_object_update(event, object);
	assert(r == 0);
	json_decref(object);
	text = json_write(event, ret_len);
	if (form == EVENT_FORM_NDJSON)
		line = xasprintf("%s\n", text);
	else if (number > 0)
		line = xasprintf("id: %" PRIu64 "\nevent: %s\ndata: %s\n\n", number, name, text);
	else
		line = xasprintf("event: %s\ndata: %s\n\n", name, text);
	*ret_len = strlen(line);
	return line;
}

/* @object is released. */
static void emit(struct follower *f, const char *name, uint64_t number, json_t *object)
{
	size_t len;
	cleanup_free char *line = render(f->form, name, number, object, &len);

	if (http_stream_write(f->req, line, len) < 0)
		log_debug("request %s: the client does not read, it is cut off",
		          http_request_id(f->req)); /* on_gone follows */
}

static void emit_ids(struct follower *f, const char *name, uint64_t number)
{
	emit(f, name, number, view_execution_ticket(f->execution));
}

/* @text is released. */
static void emit_text(struct follower *f, const char *name, uint64_t number, char *text, size_t len)
{
	json_t *object;

	if (len > 0) {
		object = json_object();
		json_set(object, "data", json_text(text, len));
		emit(f, name, number, object);
	}
	free(text);
}

static void take_output(struct follower *f, const struct execution_event *event)
{
	struct text_stream *stream = &f->text[outputs[event->kind].stream];
	size_t len;
	char *text = text_stream_feed(stream, event->data, event->len, &len);

	if (event->number > f->after)
		emit_text(f, outputs[event->kind].name, event->number, text, len);
	else
		free(text);
}

static void emit_rest(struct follower *f, enum execution_event_kind kind)
{
	size_t len;
	char *text = text_stream_end(&f->text[outputs[kind].stream], &len);

	emit_text(f, outputs[kind].name, 0, text, len);
}

static void emit_end(struct follower *f, uint64_t number)
{
	json_t *end = json_object(), *result = view_execution(f->execution);
	const json_t *results = json_object_get(result, "results");

	emit_rest(f, EXECUTION_EVENT_STDOUT);
	emit_rest(f, EXECUTION_EVENT_STDERR);
	for (size_t i = 0; i < json_array_size(results); i++) {
		json_t *object = json_object();

		json_set(object, "data", json_incref(json_array_get(results, i)));
		emit(f, "result", 0, object);
	}
	json_set(end, "result", result);
	emit(f, "end", number, end);
}

/* It was never run. */
static void emit_failure(struct follower *f, uint64_t number, const struct error *failure)
{
	json_t *object = json_object();

	json_set(object, "error", reply_error_object(failure, http_request_id(f->req)));
	emit(f, "error", number, object);
}

static void finish_stream(struct follower *f, uint64_t number)
{
	struct execution_info info = {0};

	execution_info(f->execution, &info);
	if (number > f->after && info.failure)
		emit_failure(f, number, info.failure);
	else if (number > f->after)
		emit_end(f, number);
	http_stream_end(f->req);
}

static void finish_answer(struct follower *f)
{
	struct execution_info info = {0};

	execution_info(f->execution, &info);
	if (info.failure)
		reply_error(f->req, info.failure);
	else
		reply_json(f->req, 200, view_execution(f->execution));
}

static void on_event(void *ctx, struct execution *e, const struct execution_event *event)
{
	struct follower *f = ctx;

	(void)e;
	if (event->kind == EXECUTION_EVENT_END) {
		if (f->form == EVENT_FORM_NONE)
			finish_answer(f);
		else
			finish_stream(f, event->number);
		release(f);
		return;
	}
	if (f->form == EVENT_FORM_NONE)
		return;
	if (event->kind == EXECUTION_EVENT_START && event->number > f->after)
		emit_ids(f, "start", event->number);
	if (outputs[event->kind].name)
		take_output(f, event);
}

static void on_gone(void *ctx)
{
	struct follower *f = ctx;

	log_debug("request %s: the client left", http_request_id(f->req));
	execution_unwatch(f->watch);
	release(f);
}

static void on_impatient(void *ctx)
{
	struct follower *f = ctx;
	struct error err = {0};

	execution_unwatch(f->watch);
	(void)error_set(&err, ERR_WAIT_TIMEOUT, 0, "the execution has not ended yet");
	reply_error(f->req, &err);
	release(f);
}

void follow(struct http_request *req, struct execution *e, const struct follow_config *config)
{
	struct follower *f = NEW(struct follower);

	f->req = req;
	f->execution = e;
	f->form = config->form;
	f->after = config->after;
	http_set_gone(req, on_gone, f);
	if (f->form != EVENT_FORM_NONE)
		http_stream_begin(req, 200, event_form_type(f->form));
	if (f->form != EVENT_FORM_NONE && config->announce)
		emit_ids(f, "pending", 0);
	if (config->patience_us > 0) {
		f->patience = timer_new(config->loop, on_impatient, f);
		timer_start(f->patience, config->patience_us);
	}
	f->watch = execution_watch(e, 0, on_event, f);
}
