/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/run_reply.h"

#include "api/internal.h"
#include "api/json/encode.h"
#include "api/json/encode_result.h"
#include "api/json/json.h"
#include "api/json/report.h"
#include "api/json/text_stream.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/log.h"
#include "core/config/config.h"
#include "core/run/run_record.h"
#include "http/server.h"
#include "http/status.h"
#include "io/timer.h"

/*
 * Theory of operation. A waiter ends with whichever comes first: the end of the program, the client
 * leaving, or the end of its patience. Each of the three frees it.
 *
 * Without a session a stream begins with its first event, so that what fails earlier gets its own
 * HTTP status; its events are numbered here. Events of a session keep the numbers of the record, so
 * that a client that was cut off names the last one it has and continues from there. Output is
 * bytes and events are text, and a character may be split between two events: its beginning is held
 * back and sent with the later one. A client that comes back after the earlier one must get the
 * whole character, so all events are read again from the first, and those that it has are dropped
 * only then.
 *
 * Events derived from the last one (the rest of a split character, rich results) have no number of
 * their own: a client that got some of them but not the end requests all of them again.
 */

static const char *const stream_names[] = {
	[OUTPUT_STDOUT] = "stdout",
	[OUTPUT_STDERR] = "stderr",
};
static_assert(ARRAY_SIZE(stream_names) == OUTPUT_COUNT, "every stream has its name");

static const struct error no_room = {
	.code = ERR_UNAVAILABLE,
	.msg = "the program ran, but its output does not fit into a response",
};

struct waiter {
	struct pending pending;
	struct op_run *run;
	struct run_record *record; /* NULL: without a session */
	struct run_reply how;
	struct timer *patience; /* NULL: none */
	size_t max_bytes;       /* of one event or response */
	bool began;             /* the stream */
	uint64_t next_id;       /* without a session */
	struct text_stream text[OUTPUT_COUNT];
};

static void waiter_free(struct waiter *w)
{
	timer_free(w->patience);
	free(w->how.ctx);
	free(w);
}

static bool is_stream(const struct waiter *w)
{
	return w->how.form != EVENT_FORM_NONE;
}

/* Events. */

static void begin_stream(struct waiter *w)
{
	if (!w->began)
		http_stream_begin(w->pending.req, HTTP_OK, event_form_type(w->how.form));
	w->began = true;
}

/* @number 0: derived from another event. */
static int open_event(const struct waiter *w, struct buf *b, const char *name, uint64_t number)
{
	const struct event event = {
		.form = w->how.form,
		.name = name,
		.id = w->record ? number : w->next_id,
		.has_id = !w->record || number > 0,
		.shows_id = w->record && number > 0,
	};

	return event_open(b, &event);
}

static int send_event(struct waiter *w, struct buf *b)
{
	if (event_close(b, w->how.form) < 0)
		return -1;
	w->next_id++;
	begin_stream(w);
	if (http_stream_write(w->pending.req, b->data, b->len) < 0)
		reply_log(w->pending.req, LOG_LEVEL_DEBUG,
		          "the client does not read: cut off"); /* on_left follows */
	return 0;
}

/* An event with the members of @object, which is released. */
static void send_object(struct waiter *w, const char *name, uint64_t number, json_t *object)
{
	cleanup_buf struct buf b = BUF_INIT(w->max_bytes);
	size_t joint;

	if (open_event(w, &b, name, number) < 0) {
		json_decref(object);
		return;
	}
	joint = b.len;
	if (json_add(&b, object) == 0) {
		b.data[joint] = ','; /* over the opening brace */
		b.len--;             /* the closing one */
		if (send_event(w, &b) == 0)
			return;
	}
	reply_log(w->pending.req, LOG_LEVEL_WARN, "no room for event %s", name);
}

static void send_text(struct waiter *w, enum output_stream stream, uint64_t number,
                      const char *text, size_t len)
{
	cleanup_buf struct buf b = BUF_INIT(w->max_bytes);

	if (len > 0 && (open_event(w, &b, stream_names[stream], number) < 0 ||
	                buf_add_str(&b, ",\"data\":") < 0 || json_add_text(&b, text, len) < 0 ||
	                send_event(w, &b) < 0))
		reply_log(w->pending.req, LOG_LEVEL_WARN, "no room for output");
}

static void on_start(void *ctx, const char *execution_id, uint64_t number)
{
	struct waiter *w = ctx;

	if (!w->record)
		send_object(w, "start", 0, json_pack("{s:s}", "execution_id", execution_id));
	else if (number > w->how.after)
		send_object(w, "start", number, encode_run_ticket(w->record));
}

static void on_output(void *ctx, enum output_stream stream, const char *data, size_t len,
                      uint64_t number)
{
	struct waiter *w = ctx;
	size_t text_len;
	cleanup_free char *text = text_stream_feed(&w->text[stream], data, len, &text_len);

	if (!w->record || number > w->how.after)
		send_text(w, stream, number, text, text_len);
}

/* The end. */

static void send_derived(struct waiter *w, const struct outcome *outcome)
{
	cleanup_report struct report report = {0};

	for (int stream = 0; stream < OUTPUT_COUNT; stream++) {
		size_t len;
		cleanup_free char *text = text_stream_end(&w->text[stream], &len);

		send_text(w, (enum output_stream)stream, 0, text, len);
	}
	encode_result_report(outcome, &report);
	for (size_t i = 0; i < json_array_size(report.results); i++)
		send_object(w, "result", 0,
		            json_pack("{s:O}", "data", json_array_get(report.results, i)));
}

/* A response of its own, or the last event of a stream that has begun. */
static void fail(struct waiter *w, const struct error *err, uint64_t number)
{
	struct http_request *req = w->pending.req;

	if (!w->began) {
		reply_error(req, err);
		return;
	}
	if (error_is_internal(err))
		reply_log_error(req, err);
	send_object(w, "error", number,
	            json_pack("{s:o}", "error", reply_error_object(err, http_request_id(req))));
	http_stream_end(req);
}

static void finish_stream(struct waiter *w, const struct op_run_end *end)
{
	cleanup_buf struct buf b = BUF_INIT(w->max_bytes);

	send_derived(w, end->outcome);
	if (open_event(w, &b, "end", end->number) < 0 || buf_add_str(&b, ",\"result\":") < 0 ||
	    w->how.encoder->add_result(w->how.ctx, &b, end) < 0 || send_event(w, &b) < 0)
		fail(w, &no_room, end->number);
	else
		http_stream_end(w->pending.req);
}

static void finish_response(struct waiter *w, const struct op_run_end *end)
{
	cleanup_buf struct buf text = BUF_INIT(w->max_bytes);

	if (w->how.encoder->answer)
		w->how.encoder->answer(w->how.ctx, w->pending.req, end);
	else if (w->how.encoder->add_result(w->how.ctx, &text, end) == 0)
		reply_text(w->pending.req, HTTP_OK, &text);
	else
		reply_error(w->pending.req, &no_room);
}

static void on_end(void *ctx, const struct op_run_end *end)
{
	struct waiter *w = ctx;

	(void)pending_resume(&w->pending);
	if (is_stream(w) && w->record && end->number <= w->how.after)
		http_stream_end(w->pending.req);
	else if (!end->outcome)
		fail(w, end->failure, end->number);
	else if (is_stream(w))
		finish_stream(w, end);
	else
		finish_response(w, end);
	waiter_free(w);
}

static void on_left(struct pending *p)
{
	struct waiter *w = CONTAINER_OF(p, struct waiter, pending);

	op_run_leave(w->run);
	waiter_free(w);
}

static void on_impatient(void *ctx)
{
	struct waiter *w = ctx;
	struct error err = {0};

	op_run_leave(w->run);
	(void)error_set(&err, ERR_WAIT_TIMEOUT, 0, "the execution has not ended yet");
	reply_error(pending_resume(&w->pending), &err);
	waiter_free(w);
}

int run_reply_start(struct router *r, struct http_request *req, const struct op_run_start *start,
                    struct op_run **ret_run, struct error *err)
{
	struct op_run_start named = *start;

	named.request_id = http_request_id(req);
	if (op_run_start(r, &named, ret_run, err) < 0)
		return -1;
	http_drop_body(req);
	return 0;
}

void run_reply(struct router *r, struct http_request *req, struct op_run *run,
               const struct run_reply *how)
{
	struct waiter *w = NEW(struct waiter);
	struct op_run_events events = {.ctx = w, .on_end = on_end};

	w->run = run;
	w->record = op_run_record(run);
	w->how = *how;
	w->max_bytes = r->config->max_answers_bytes;
	pending_wait(&w->pending, req, on_left);
	if (is_stream(w)) {
		events.on_start = on_start;
		events.on_output = on_output;
	}
	if (is_stream(w) && w->record)
		begin_stream(w);
	if (is_stream(w) && how->announce)
		send_object(w, "pending", 0, encode_run_ticket(w->record));
	if (how->patience_us > 0) {
		w->patience = timer_new(r->parts.loop, on_impatient, w);
		timer_start(w->patience, how->patience_us);
	}
	op_run_watch(run, &events);
}

static int add_record(void *ctx, struct buf *b, const struct op_run_end *end)
{
	(void)ctx;
	return encode_run_add(b, end->record);
}

const struct run_encoder run_encode_record = {.add_result = add_record};

void run_reply_record(struct router *r, struct http_request *req, const struct run_record *record)
{
	cleanup_buf struct buf text = BUF_INIT(r->config->max_answers_bytes);

	if (encode_run_add(&text, record) == 0)
		reply_text(req, HTTP_OK, &text);
	else
		reply_error(req, &no_room);
}

/* Tickets. */

struct ticket {
	struct pending pending;
	struct op_run *run;
	int status;
};

/* The program runs all the same, once its record is persisted. */
static void on_ticket_left(struct pending *p)
{
	struct ticket *t = CONTAINER_OF(p, struct ticket, pending);

	run_record_when_stored(op_run_record(t->run), NULL, NULL);
	op_run_leave(t->run);
	free(t);
}

static void on_stored(void *ctx, struct run_record *record, const struct error *err)
{
	struct ticket *t = ctx;
	struct http_request *req = pending_resume(&t->pending);

	if (err)
		reply_error(req, err);
	else
		reply_json(req, t->status, encode_run_ticket(record));
	op_run_leave(t->run);
	free(t);
}

void run_reply_ticket(struct http_request *req, struct op_run *run, int status)
{
	struct ticket *t = NEW(struct ticket);

	t->run = run;
	t->status = status;
	pending_wait(&t->pending, req, on_ticket_left);
	run_record_when_stored(op_run_record(run), on_stored, t);
}
