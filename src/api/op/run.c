/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/run.h"

#include "api/internal.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/report.h"
#include "api/json/text_stream.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/utf8.h"
#include "core/config/config.h"
#include "core/language/options.h"
#include "core/language/runners.h"
#include "core/run/run.h"
#include "core/run/run_record.h"
#include "core/run/run_service.h"
#include "core/session/session.h"
#include "core/template/toolchains.h"
#include "http/server.h"
#include "http/status.h"
#include "io/timer.h"
#include <string.h>

/*
 * Theory of operation. A waiter ends with, and is freed by, whichever comes first: the program's
 * end, the client leaving, or the end of its patience.
 *
 * Without a session a stream begins with its first event, so that earlier failures get their own
 * HTTP status; its events are numbered here. A session's events keep the record's numbers, so that
 * a client that was cut off continues after the last one it has. A character may be split between
 * two events: its beginning is held back and sent with the later one. A client that comes back in
 * between must get the whole character, so all events are read again from the first, and those that
 * it has are dropped then.
 *
 * Events derived from the last one (the rest of a split character, rich results) have no number: a
 * client that missed the end requests all of them again.
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

bool op_run_is_paused(const struct session *session)
{
	struct session_info info = {0};

	session_info(session, &info);
	return info.state == SESSION_PAUSED;
}

static const char *language_of(const struct op_run_start *start)
{
	struct session_info info = {0};

	if (start->request->language || !start->session)
		return start->request->language;
	session_info(start->session, &info);
	return info.language;
}

/* Of the toolchain, if it is known; else the runner compares. Valid until the next verdict. */
static const char *known_version(const struct router *r, const struct op_run_start *start,
                                 const struct runner *runner)
{
	const struct template *t =
		start->session ? session_template(start->session) : start->request->template;
	struct toolchain_view view;

	toolchains_view(run_service_toolchains(r->runs), t, runner, &view);
	return view.version;
}

/* Options that choose another language or add lines to the code. @ret_code: owned, for the changed
 * request. */
static int apply_options(const struct router *r, const struct op_run_start *start,
                         struct run_request *request, char **ret_code, struct error *err)
{
	const char *language = language_of(start), *other;
	const struct runner *runner =
		r->parts.runners && language ? runners_find(r->parts.runners, language) : NULL;
	cleanup_free char *prefix = NULL;

	/* Core refuses an unknown language. */
	if (!request->options || !*request->options || !runner)
		return 0;
	if (options_check(runner, request->options, err) < 0 ||
	    options_check_version(runner, request->options, known_version(r, start, runner), err) <
	            0)
		return -1;
	prefix = options_prefix(runner, request->options);
	if (prefix && request->code) {
		*ret_code = xasprintf("%s%s", prefix, request->code);
		request->code = *ret_code;
		request->code_len = strlen(*ret_code);
	}
	other = options_of_type(runner, request->options, RUNNER_OPTION_LANGUAGE);
	if (other && runners_find(r->parts.runners, other) != runner) {
		request->language = (char *)(uintptr_t)other; /* core copies it */
		request->options = NULL;
	}
	return 0;
}

int op_run_start(struct router *r, const struct op_run_start *start, struct run_record **ret_record,
                 struct error *err)
{
	struct run_request request = *start->request; /* what it owns stays the caller's */
	cleanup_free char *code = NULL;

	request.tenant = start->who->tenant;
	request.key_id = start->who->key_id;
	request.request_id = (char *)(uintptr_t)start->request_id; /* core copies it */
	if (apply_options(r, start, &request, &code, err) < 0)
		return -1;
	return start->session ? session_execute(start->session, &request, ret_record, err)
	                      : run_start(r->runs, &request, ret_record, err);
}

struct waiter {
	struct pending pending;
	struct run_watch *watch;
	bool in_session; /* its events are numbered */
	struct run_reply how;
	struct timer *patience; /* NULL: none */
	size_t max_bytes;       /* of one event or response */
	bool began;
	uint64_t next_id; /* without a session */
	uint64_t last;    /* past_only: the last event */
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

static void begin_stream(struct waiter *w)
{
	if (!w->began)
		http_stream_begin(w->pending.req, HTTP_OK, event_form_type(w->how.form));
	w->began = true;
}

/* @number 0: derived. */
static int open_event(const struct waiter *w, struct buf *b, const char *name, uint64_t number)
{
	const struct event event = {
		.form = w->how.form,
		.name = name,
		.id = w->in_session ? number : w->next_id,
		.has_id = !w->in_session || number > 0,
		.shows_id = w->in_session && number > 0,
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

/* With the members of @object, which is released. */
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

/* Bytes that are no text are sent twice: as text that a reader can show, and unchanged. */
static int add_bytes(struct buf *b, const char *data, size_t len)
{
	cleanup_free char *encoded = utf8_is_valid(data, len) ? NULL : base64_encode(data, len);

	if (buf_add_str(b, ",\"data\":") < 0 || json_add_text(b, data, len) < 0)
		return -1;
	return encoded ? buf_addf(b, ",\"base64\":\"%s\"", encoded) : 0;
}

static void send_bytes(struct waiter *w, enum output_stream stream, uint64_t number,
                       const char *data, size_t len)
{
	cleanup_buf struct buf b = BUF_INIT(w->max_bytes);

	if (len > 0 && (open_event(w, &b, stream_names[stream], number) < 0 ||
	                add_bytes(&b, data, len) < 0 || send_event(w, &b) < 0))
		reply_log(w->pending.req, LOG_LEVEL_WARN, "no room for output");
}

/* The client has it already. */
static bool is_past(const struct waiter *w, const struct run_event *event)
{
	return w->in_session && event->number <= w->how.after;
}

static void send_start(struct waiter *w, const struct run_record *record, uint64_t number)
{
	struct run_record_info run = {0};

	run_record_info(record, &run);
	send_object(w, "start", number,
	            w->in_session ? encode_run_ticket(record)
	                          : json_pack("{s:s}", "execution_id", run.id));
}

static void send_output(struct waiter *w, const struct run_event *event)
{
	enum output_stream stream = event->kind == RUN_EVENT_STDOUT ? OUTPUT_STDOUT : OUTPUT_STDERR;
	size_t len;
	cleanup_free char *data = text_stream_take(&w->text[stream], event->data, event->len, &len);

	if (!is_past(w, event))
		send_bytes(w, stream, event->number, data, len);
}

/* Of a character that was cut. */
static void send_rest(struct waiter *w)
{
	for (int stream = 0; stream < OUTPUT_COUNT; stream++) {
		size_t len;
		cleanup_free char *rest = text_stream_rest(&w->text[stream], &len);

		send_bytes(w, (enum output_stream)stream, 0, rest, len);
	}
}

static void send_derived(struct waiter *w, const struct outcome *outcome)
{
	cleanup_report struct report report = {0};

	send_rest(w);
	encode_result_report(outcome, &report);
	for (size_t i = 0; i < json_array_size(report.results); i++)
		send_object(w, "result", 0,
		            json_pack("{s:O}", "data", json_array_get(report.results, i)));
}

/* A response, or the last event of a stream that has begun. */
static void finish_with_error(struct waiter *w, const struct error *err, uint64_t number)
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

static void finish_stream(struct waiter *w, const struct run_record_info *run, uint64_t number)
{
	cleanup_buf struct buf b = BUF_INIT(w->max_bytes);

	send_derived(w, run->outcome);
	if (open_event(w, &b, "end", number) < 0 || buf_add_str(&b, ",\"result\":") < 0 ||
	    w->how.encoder->add_result(w->how.ctx, &b, run) < 0 ||
	    reply_add_warnings(w->pending.req, &b) < 0 || send_event(w, &b) < 0)
		finish_with_error(w, &no_room, number);
	else
		http_stream_end(w->pending.req);
}

static void finish(struct waiter *w, const struct run_record *record, const struct run_event *end)
{
	cleanup_buf struct buf text = BUF_INIT(w->max_bytes);
	struct run_record_info run = {0};

	run_record_info(record, &run);
	(void)pending_resume(&w->pending);
	if (is_stream(w) && is_past(w, end))
		http_stream_end(w->pending.req);
	else if (!run.outcome)
		finish_with_error(w, run.failure, end->number);
	else if (is_stream(w))
		finish_stream(w, &run, end->number);
	else if (w->how.encoder->answer)
		w->how.encoder->answer(w->how.ctx, w->pending.req, &run);
	else if (w->how.encoder->add_result(w->how.ctx, &text, &run) == 0)
		reply_text(w->pending.req, HTTP_OK, &text);
	else
		reply_error(w->pending.req, &no_room);
	waiter_free(w);
}

/* The client has all past events and wants no other. */
static void finish_past(struct waiter *w)
{
	run_unwatch(w->watch);
	send_rest(w);
	http_stream_end(pending_resume(&w->pending));
	waiter_free(w);
}

static void on_event(void *ctx, struct run_record *record, const struct run_event *event)
{
	struct waiter *w = ctx;

	if (event->kind == RUN_EVENT_END)
		finish(w, record, event);
	else if (!is_stream(w))
		return;
	else if (event->kind != RUN_EVENT_START)
		send_output(w, event);
	else if (!is_past(w, event))
		send_start(w, record, event->number);
	if (event->kind != RUN_EVENT_END && event->number == w->last && w->how.past_only)
		finish_past(w);
}

static void on_left(struct pending *p)
{
	struct waiter *w = CONTAINER_OF(p, struct waiter, pending);

	run_unwatch(w->watch);
	waiter_free(w);
}

static void on_impatient(void *ctx)
{
	struct waiter *w = ctx;
	struct error err = {0};

	run_unwatch(w->watch);
	(void)error_set(&err, ERR_WAIT_TIMEOUT, 0, "the execution has not ended yet");
	reply_error(pending_resume(&w->pending), &err);
	waiter_free(w);
}

void run_reply(struct router *r, struct http_request *req, struct run_record *record,
               const struct run_reply *how)
{
	struct waiter *w = NEW(struct waiter);
	struct run_record_info run = {0};

	http_drop_body(req); /* it was decoded */
	run_record_info(record, &run);
	if (run.cuts && run.state != RUN_RECORD_ENDED)
		encode_cuts_warn(run.cuts, NULL, reply_warnings(req));
	w->in_session = run.session_id;
	w->how = *how;
	w->began = how->began;
	w->next_id = how->next_id;
	w->max_bytes = r->config->max_answers_bytes;
	pending_wait(&w->pending, req, on_left);
	w->watch = run_watch(record, 0, on_event, w);
	if (is_stream(w) && w->in_session)
		begin_stream(w);
	if (is_stream(w) && how->announce)
		send_object(w, "pending", 0, encode_run_ticket(record));
	if (is_stream(w) && how->paused)
		send_object(w, "paused", 0,
		            json_pack("{s:s, s:s}", "session_id", run.session_id, "data",
		                      "the execution waits: the session is paused until "
		                      "POST /api/v1/sessions/{id}/resume"));
	if (how->patience_us > 0) {
		w->patience = timer_new(r->parts.loop, on_impatient, w);
		timer_start(w->patience, how->patience_us);
	}
	w->last = run_record_events(record);
	if (how->past_only && w->last == 0)
		finish_past(w);
}

static int add_record(void *ctx attr_unused, struct buf *b, const struct run_record_info *run)
{
	return encode_run_add(b, run);
}

const struct run_encoder run_encode_record = {.add_result = add_record};

void run_reply_record(struct router *r, struct http_request *req, const struct run_record *record)
{
	cleanup_buf struct buf text = BUF_INIT(r->config->max_answers_bytes);
	struct run_record_info run = {0};

	run_record_info(record, &run);
	if (encode_run_add(&text, &run) == 0)
		reply_text(req, HTTP_OK, &text);
	else
		reply_error(req, &no_room);
}

struct ticket {
	struct pending pending;
	struct run_record *record;
	int status;
};

/* The program runs anyway, once its record is persisted. */
static void on_ticket_left(struct pending *p)
{
	struct ticket *t = CONTAINER_OF(p, struct ticket, pending);

	run_record_when_stored(t->record, NULL, NULL);
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
	free(t);
}

void run_reply_ticket(struct http_request *req, struct run_record *record, int status)
{
	struct ticket *t = NEW(struct ticket);
	struct run_record_info run = {0};

	http_drop_body(req); /* it was decoded */
	run_record_info(record, &run);
	if (run.cuts)
		encode_cuts_warn(run.cuts, NULL, reply_warnings(req));
	t->record = record;
	t->status = status;
	pending_wait(&t->pending, req, on_ticket_left);
	run_record_when_stored(record, on_stored, t);
}
