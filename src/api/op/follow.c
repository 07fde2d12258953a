/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/follow.h"

#include "api/json/encode.h"
#include "api/json/encode_result.h"
#include "api/json/json.h"
#include "api/json/report.h"
#include "api/json/text_stream.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/log.h"
#include "core/run/run_record.h"
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
	struct run_record *execution;
	struct run_watch *watch;
	struct timer *patience; /* NULL: endless */
	enum event_form form;
	uint64_t after;
	size_t max_bytes; /* of one event or answer */
	struct text_stream text[OUTPUT_COUNT];
};

static const struct {
	const char *name;
	enum output_stream stream;
} outputs[RUN_EVENT_COUNT] = {
	[RUN_EVENT_STDOUT] = {"stdout", OUTPUT_STDOUT},
	[RUN_EVENT_STDERR] = {"stderr", OUTPUT_STDERR},
};

static void release(struct follower *f)
{
	timer_free(f->patience);
	free(f);
}

/* The begin of an event, up to its first member. @number 0: it has none of its own. */
static int open_event(const struct follower *f, struct buf *b, const char *name, uint64_t number)
{
	if (f->form == EVENT_FORM_SSE && number > 0 && buf_addf(b, "id: %" PRIu64 "\n", number) < 0)
		return -1;
	if (f->form == EVENT_FORM_SSE && buf_addf(b, "event: %s\ndata: ", name) < 0)
		return -1;
	if (buf_addf(b, "{\"event\":\"%s\"", name) < 0)
		return -1;
	return number > 0 ? buf_addf(b, ",\"id\":%" PRIu64, number) : 0;
}

static void send_event(struct follower *f, struct buf *b)
{
	if (event_close(b, f->form) < 0 || http_stream_write(f->req, b->data, b->len) < 0)
		reply_log(f->req, LOG_LEVEL_DEBUG,
		          "the client does not read, it is cut off"); /* on_gone follows */
}

/* An event with the members of @object, which is released. */
static void emit(struct follower *f, const char *name, uint64_t number, json_t *object)
{
	cleanup_buf struct buf b = BUF_INIT(f->max_bytes);
	size_t joint;

	if (open_event(f, &b, name, number) < 0) {
		json_decref(object);
		return;
	}
	joint = b.len;
	if (json_add(&b, object) < 0)
		return;
	b.data[joint] = ','; /* for the brace that begins the object */
	b.len--;             /* and without the one that ends it */
	send_event(f, &b);
}

static void emit_ids(struct follower *f, const char *name, uint64_t number)
{
	emit(f, name, number, encode_run_ticket(f->execution));
}

/* @text is released. */
static void emit_text(struct follower *f, const char *name, uint64_t number, char *text, size_t len)
{
	cleanup_buf struct buf b = BUF_INIT(f->max_bytes);

	if (len > 0 && open_event(f, &b, name, number) == 0 && buf_add_str(&b, ",\"data\":") == 0 &&
	    json_add_text(&b, text, len) == 0)
		send_event(f, &b);
	free(text);
}

static void take_output(struct follower *f, const struct run_event *event)
{
	struct text_stream *stream = &f->text[outputs[event->kind].stream];
	size_t len;
	char *text = text_stream_feed(stream, event->data, event->len, &len);

	if (event->number > f->after)
		emit_text(f, outputs[event->kind].name, event->number, text, len);
	else
		free(text);
}

static void emit_rest(struct follower *f, enum run_event_kind kind)
{
	size_t len;
	char *text = text_stream_end(&f->text[outputs[kind].stream], &len);

	emit_text(f, outputs[kind].name, 0, text, len);
}

/* It was never run. */
static void emit_failure(struct follower *f, uint64_t number, const struct error *failure)
{
	json_t *object = json_object();

	json_set(object, "error", reply_error_object(failure, http_request_id(f->req)));
	emit(f, "error", number, object);
}

/* Figures and the like, each as an event, for who shows them as they come. */
static void emit_results(struct follower *f)
{
	cleanup_report struct report report = {0};
	struct run_record_info info = {0};

	run_record_info(f->execution, &info);
	if (!info.outcome)
		return;
	encode_result_report(info.outcome, &report);
	for (size_t i = 0; i < json_array_size(report.results); i++) {
		json_t *object = json_object();

		json_set(object, "data", json_incref(json_array_get(report.results, i)));
		emit(f, "result", 0, object);
	}
}

static const struct error no_room = {
	.code = ERR_UNAVAILABLE,
	.msg = "the program ran, but there is no room for its output in an answer",
};

static void emit_end(struct follower *f, uint64_t number)
{
	cleanup_buf struct buf b = BUF_INIT(f->max_bytes);

	emit_rest(f, RUN_EVENT_STDOUT);
	emit_rest(f, RUN_EVENT_STDERR);
	emit_results(f);
	if (open_event(f, &b, "end", number) == 0 && buf_add_str(&b, ",\"result\":") == 0 &&
	    encode_run_add(&b, f->execution) == 0)
		send_event(f, &b);
	else
		emit_failure(f, number, &no_room);
}

static void finish_stream(struct follower *f, uint64_t number)
{
	struct run_record_info info = {0};

	run_record_info(f->execution, &info);
	if (number > f->after && info.failure)
		emit_failure(f, number, info.failure);
	else if (number > f->after)
		emit_end(f, number);
	http_stream_end(f->req);
}

void follow_answer(struct http_request *req, const struct run_record *e, size_t max_bytes)
{
	cleanup_buf struct buf text = BUF_INIT(max_bytes);

	if (encode_run_add(&text, e) == 0)
		reply_text(req, 200, &text);
	else
		reply_error(req, &no_room);
}

static void finish_answer(struct follower *f)
{
	struct run_record_info info = {0};

	run_record_info(f->execution, &info);
	if (info.failure)
		reply_error(f->req, info.failure);
	else
		follow_answer(f->req, f->execution, f->max_bytes);
}

static void on_event(void *ctx, struct run_record *e, const struct run_event *event)
{
	struct follower *f = ctx;

	(void)e;
	if (event->kind == RUN_EVENT_END) {
		if (f->form == EVENT_FORM_NONE)
			finish_answer(f);
		else
			finish_stream(f, event->number);
		release(f);
		return;
	}
	if (f->form == EVENT_FORM_NONE)
		return;
	if (event->kind == RUN_EVENT_START && event->number > f->after)
		emit_ids(f, "start", event->number);
	if (outputs[event->kind].name)
		take_output(f, event);
}

static void on_gone(void *ctx)
{
	struct follower *f = ctx;

	reply_log(f->req, LOG_LEVEL_DEBUG, "the client left");
	run_unwatch(f->watch);
	release(f);
}

static void on_impatient(void *ctx)
{
	struct follower *f = ctx;
	struct error err = {0};

	run_unwatch(f->watch);
	(void)error_set(&err, ERR_WAIT_TIMEOUT, 0, "the execution has not ended yet");
	reply_error(f->req, &err);
	release(f);
}

void follow(struct http_request *req, struct run_record *e, const struct follow_config *config)
{
	struct follower *f = NEW(struct follower);

	f->req = req;
	f->execution = e;
	f->form = config->form;
	f->after = config->after;
	f->max_bytes = config->max_bytes;
	http_set_gone(req, on_gone, f);
	if (f->form != EVENT_FORM_NONE)
		http_stream_begin(req, 200, event_form_type(f->form));
	if (f->form != EVENT_FORM_NONE && config->announce)
		emit_ids(f, "pending", 0);
	if (config->patience_us > 0) {
		f->patience = timer_new(config->loop, on_impatient, f);
		timer_start(f->patience, config->patience_us);
	}
	f->watch = run_watch(e, 0, on_event, f);
}
