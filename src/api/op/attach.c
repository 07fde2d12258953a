/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/attach.h"

#include "api/internal.h"
#include "api/json/decode.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/op/message_meter.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/identity/identity.h"
#include "core/observe/metrics.h"
#include "core/run/run_record.h"
#include "http/status.h"
#include "http/ws.h"
#include "io/timer.h"
#include <signal.h>

/*
 * Theory of operation. A WebSocket to an execution: binary messages are its bytes, text messages
 * are JSON. The record has the output; the socket has a place in it (@number).
 *
 * A client that reads slowly: when WAITING_HIGH bytes wait for it, nothing more is taken from the
 * record, and the program of a terminal waits too. When the client has read them it goes on from
 * its place. A program that reads slowly: while UNREAD_HIGH bytes wait for it, nothing is read from
 * the socket. So neither fills the memory. Nor is it read while its tenant is over its quota.
 *
 * The record may be gone after any event: it is looked up again, except while it is watched.
 */

#define MESSAGE_MAX  (64u * 1024)
#define WAITING_HIGH (256u * 1024)
#define WAITING_MAX  (4u * 1024 * 1024)
#define UNREAD_HIGH  (256u * 1024)
#define UNREAD_US    (10 * USEC_PER_MS)

struct attach {
	struct router *router;
	struct http_ws *ws;
	const struct principal *principal; /* of the request, which lives as long as @ws */
	char *execution_id;                /* owned */
	struct run_watch *watch;           /* NULL: the client is behind, or the end was sent */
	uint64_t number;                   /* of the last event that was sent */
	size_t unsent;                     /* output since the client had all of it */
	bool stopped;                      /* the program waits for the client */
	bool ended;
	struct timer *timer; /* the client waits for the program */
	struct message_meter meter;
};

static void count_bytes(const struct attach *a, const char *direction, size_t len)
{
	metrics_count_for(a->router->parts.metrics, METRIC_ATTACH_BYTES, METRIC_LABELS(direction),
	                  (double)len);
}

static void publish_attached(const struct router *r)
{
	metrics_set(r->parts.metrics, METRIC_ATTACHED, (double)r->attached);
}

static struct run_record *find_record(const struct attach *a)
{
	return run_records_find(a->router->parts.executions, a->principal->tenant, a->execution_id);
}

/* @object is released. */
static void send_object(const struct attach *a, json_t *object)
{
	cleanup_buf struct buf b = BUF_INIT(MESSAGE_MAX);

	if (json_add(&b, object) == 0)
		http_ws_send(a->ws, b.data, b.len);
}

static void send_error(const struct attach *a, const struct error *err)
{
	send_object(a, json_pack("{s:o}", "error", reply_error_object(err, "")));
}

static void send_exit(struct attach *a, const struct run_record *record)
{
	struct run_record_info run = {0};
	json_t *exit = json_object();

	run_record_info(record, &run);
	a->ended = true;
	json_set(exit, "status", json_string(encode_run_status_name(&run)));
	json_set(exit, "exit_code",
	         run.outcome && run.outcome->exited ? json_integer(run.outcome->exit_code)
	                                            : json_null());
	json_set(exit, "signal",
	         run.outcome && run.outcome->signal ? json_integer(run.outcome->signal)
	                                            : json_null());
	send_object(a, json_pack("{s:o}", "exit", exit));
	http_ws_close(a->ws, HTTP_WS_NORMAL);
}

static void on_event(void *ctx, struct run_record *record, const struct run_event *event)
{
	struct attach *a = ctx;

	a->number = event->number;
	if (event->kind == RUN_EVENT_END) {
		a->watch = NULL;
		send_exit(a, record);
		return;
	}
	if (event->kind == RUN_EVENT_START)
		return;
	a->unsent += event->len;
	count_bytes(a, "out", event->len);
	http_ws_send_binary(a->ws, event->data, event->len);
	if (a->unsent < WAITING_HIGH)
		return;
	run_unwatch(TAKE_PTR(a->watch));
	if (!a->stopped)
		run_record_stop_output(record);
	a->stopped = true;
}

static void go_on(struct attach *a, struct run_record *record)
{
	if (a->stopped)
		run_record_continue_output(record);
	a->stopped = false;
	if (!a->watch && !a->ended)
		a->watch = run_watch(record, a->number, on_event, a);
}

static void on_sent(void *ctx)
{
	struct attach *a = ctx;
	struct run_record *record = a->watch || a->ended ? NULL : find_record(a);

	a->unsent = 0;
	if (a->watch || a->ended)
		return;
	if (record)
		go_on(a, record);
	else
		http_ws_close(a->ws, HTTP_WS_GOING_AWAY); /* the session was deleted */
}

static void on_closed(void *ctx)
{
	struct attach *a = ctx;
	struct run_record *record = a->stopped ? find_record(a) : NULL;

	if (a->watch)
		run_unwatch(a->watch);
	if (record)
		run_record_continue_output(record);
	if (a->ws) {
		a->router->attached--;
		publish_attached(a->router);
	}
	meter_close(&a->meter);
	timer_free(a->timer);
	free(a->execution_id);
	free(a);
}

static bool may_write(struct attach *a)
{
	if (a->ended)
		return false;
	if (identity_key_holds(a->router->parts.identity, a->principal->key_id))
		return true;
	http_ws_close(a->ws, HTTP_WS_POLICY);
	return false;
}

static void check_unread(void *ctx)
{
	struct attach *a = ctx;
	const struct run_record *record = find_record(a);
	bool full = record && run_record_unread(record) > UNREAD_HIGH;

	http_ws_hold(a->ws, full || meter_is_over(&a->meter));
	if (full)
		timer_start(a->timer, UNREAD_US);
}

static void write_input(struct attach *a, const char *data, size_t len, bool end)
{
	struct run_record *record = find_record(a);
	struct error err = {0};

	if (!record)
		return;
	if (run_record_stdin(record, data, len, end, &err) < 0)
		send_error(a, &err);
}

static void on_binary(void *ctx, const char *data, size_t len)
{
	struct attach *a = ctx;

	if (!may_write(a))
		return;
	meter_count(&a->meter);
	count_bytes(a, "in", len);
	if (len > 0)
		write_input(a, data, len, false);
	check_unread(a);
}

static const struct {
	const char *name;
	int number;
} signals[] = {
	{"INT", SIGINT},   {"TERM", SIGTERM}, {"HUP", SIGHUP},
	{"QUIT", SIGQUIT}, {"KILL", SIGKILL}, {"USR1", SIGUSR1},
	{"USR2", SIGUSR2}, {"TSTP", SIGTSTP}, {"CONT", SIGCONT},
};

static int take_signal(const json_t *value, struct run_record *record, struct error *err)
{
	const char *name = json_string_value(value);

	for (size_t i = 0; name && i < ARRAY_SIZE(signals); i++)
		if (str_equal(signals[i].name, name))
			return run_record_signal(record, signals[i].number, err);
	return error_field(err, "signal",
	                   "must be INT, TERM, HUP, QUIT, KILL, USR1, USR2, TSTP or CONT");
}

static int take_resize(const json_t *value, struct run_record *record, struct error *err)
{
	struct decoded_resize size = {0};

	if (decode_resize_object(value, &size, err) < 0)
		return -1;
	return run_record_resize(record, (uint16_t)size.rows, (uint16_t)size.cols, err);
}

static void take_order(struct attach *a, const json_t *order)
{
	bool is_one = json_object_size(order) == 1;
	const json_t *resize = is_one ? json_object_get(order, "resize") : NULL;
	const json_t *signal = is_one ? json_object_get(order, "signal") : NULL;
	struct run_record *record = find_record(a);
	struct error err = {0};
	int r = 0;

	if (!record)
		return;
	if (resize)
		r = take_resize(resize, record, &err);
	else if (signal)
		r = take_signal(signal, record, &err);
	else if (is_one && json_is_true(json_object_get(order, "eof")))
		write_input(a, "", 0, true);
	else
		r = error_set(&err, ERR_INVALID, 0, "one of resize, signal and eof");
	if (r < 0)
		send_error(a, &err);
}

static void on_message(void *ctx, const char *text, size_t len)
{
	struct attach *a = ctx;
	struct error err = {0};
	cleanup_json json_t *order = NULL;

	if (!may_write(a))
		return;
	meter_count(&a->meter);
	order = json_read_object(text, len, &err);
	if (order)
		take_order(a, order);
	else
		send_error(a, &err);
	check_unread(a);
}

static void on_timer(void *ctx)
{
	check_unread(ctx);
}

/* Nothing can be sent before. */
static void on_opened(void *ctx)
{
	on_sent(ctx);
}

void op_attach(struct router *r, struct http_request *req, const struct op_attach *what)
{
	const struct http_ws_config config = {MESSAGE_MAX, WAITING_MAX, "millibox"};
	const struct http_ws_events events = {.on_message = on_message,
	                                      .on_closed = on_closed,
	                                      .on_binary = on_binary,
	                                      .on_sent = on_sent,
	                                      .on_opened = on_opened,
	                                      .ctx = NEW(struct attach)};
	struct attach *a = events.ctx;
	struct error err = {0};

	a->router = r;
	a->principal = what->who;
	a->number = what->after;
	a->execution_id = xstrdup(what->execution_id);
	a->timer = timer_new(r->parts.loop, on_timer, a);
	meter_open(&a->meter, r, what->who->tenant, on_timer, a);
	if (http_ws_accept(req, &config, &events, &a->ws, &err) == 0) {
		r->attached++;
		publish_attached(r);
		return;
	}
	a->ws = NULL;
	on_closed(a);
	reply_upgrade_error(req, &err);
}
