/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_ports.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "core/observe/audit.h"
#include "core/observe/metrics.h"
#include "core/session/session_build.h"
#include "core/session/session_internal.h"
#include "io/loop.h"
#include <jansson.h>

/*
 * Theory of operation. Unlike a file operation a connection never waits for a box: if there is
 * none, nothing can listen. A listing is kept here as well, so that it ends with the session.
 */

/* The store is written for each change of the time of activity. */
#define TOUCH_US (5 * USEC_PER_SEC)

struct port_conn {
	struct list node; /* session.ports */
	struct session *session;
	uint16_t number;
	char *key_id, *request_id; /* owned; until the outcome is in the audit log */
	struct box_port_events events;
	struct box_port *port;
	struct timer *timer; /* owned; until it is opened, and after port_leave */
	bool finished;
	bool left; /* there is no client: no events */
};

struct port_listing {
	struct list node; /* session.port_listings */
	struct session *session;
	box_port_list_fn *on_listed;
	void *ctx;
	struct box_port_list *list;
	struct timer *timer; /* owned */
};

static struct metrics *metrics_of(const struct session *session)
{
	return session->service ? session->service->config.metrics : NULL;
}

static void note_activity(struct session *session)
{
	if (clock_us() - session->active_us > TOUCH_US)
		session_touch(session);
}

/* Once for each attempt. */
static void record_outcome(struct port_conn *conn, const char *result)
{
	const struct session *session = conn->session;
	struct audit *audit = session->service ? session->service->config.audit : NULL;

	if (!conn->request_id)
		return;
	metrics_count_for(metrics_of(session), METRIC_PORT_OPENS, METRIC_LABELS(result), 1);
	if (audit)
		audit_write(audit, &(struct audit_event){
					   .action = "session.connect",
					   .tenant = session->tenant,
					   .key_id = conn->key_id,
					   .object = session->id,
					   .result = result,
					   .request_id = conn->request_id,
					   .detail = json_pack("{s:i}", "port", conn->number),
				   });
	free(TAKE_PTR(conn->request_id));
}

static void conn_free(struct port_conn *conn)
{
	struct session *session = conn->session;

	list_remove(&conn->node);
	session->ports_count--;
	if (session->service)
		session->service->ports--;
	timer_free(conn->timer);
	free(conn->key_id);
	free(conn->request_id);
	free(conn);
}

static void on_opened(void *ctx)
{
	struct port_conn *conn = ctx;

	timer_stop(conn->timer);
	session_prove(conn->session);
	record_outcome(conn, "ok");
	conn->events.on_opened(conn->events.ctx);
}

static void on_data(void *ctx, const char *data, size_t len)
{
	struct port_conn *conn = ctx;

	note_activity(conn->session);
	metrics_count_for(metrics_of(conn->session), METRIC_PORT_BYTES, METRIC_LABELS("out"),
	                  (double)len);
	if (conn->left)
		box_port_grant(conn->port, len);
	else
		conn->events.on_data(conn->events.ctx, data, len);
}

static void on_room(void *ctx)
{
	struct port_conn *conn = ctx;

	if (!conn->left)
		conn->events.on_room(conn->events.ctx);
}

static void on_finished(void *ctx)
{
	struct port_conn *conn = ctx;

	if (!conn->left)
		conn->events.on_finished(conn->events.ctx);
}

static void on_closed(void *ctx, const struct error *err)
{
	struct port_conn *conn = ctx;
	const struct box_port_events events = conn->events;
	bool left = conn->left;

	if (err)
		record_outcome(conn, error_text(err->code));
	conn_free(conn);
	if (!left)
		events.on_closed(events.ctx, err);
}

static void end_conn(struct port_conn *conn, const struct error *err)
{
	box_port_reset(conn->port);
	on_closed(conn, err);
}

static void on_late(void *ctx)
{
	struct port_conn *conn = ctx;
	struct error err = {0};

	(void)error_set(&err, ERR_UNAVAILABLE, 0,
	                "port %u: the program does not accept connections", conn->number);
	end_conn(conn, &err);
}

static int check_session(const struct session *session, struct error *err)
{
	if (session->service->draining)
		return error_stopping(err);
	if (!session_mode_has_box(session->mode))
		return error_set(err, ERR_CONFLICT, 0,
		                 "session %s is ephemeral: nothing listens between its executions; "
		                 "create it with mode workspace or persistent",
		                 session->id);
	if (session_is_over(session) || session->state == SESSION_PAUSED)
		return error_set(err, ERR_CONFLICT, 0,
		                 "session %s is %s: its ports cannot be reached", session->id,
		                 session_state_name(session->state));
	if (!session->box || session->box_leaving || session->reattaching)
		return error_set(err, ERR_CONFLICT, 0, "session %s is being made ready: retry",
		                 session->id);
	if (session->ports_count >= PORTS_PER_SESSION)
		return error_later(err, ERR_BUSY, ERROR_SOON_US,
		                   "session %s has %d connections to its ports", session->id,
		                   PORTS_PER_SESSION);
	return 0;
}

static struct port_conn *conn_new(struct session *session, uint16_t port,
                                  const struct port_caller *caller,
                                  const struct box_port_events *events)
{
	struct port_conn *conn = NEW(struct port_conn);

	conn->session = session;
	conn->number = port;
	conn->key_id = caller->key_id ? xstrdup(caller->key_id) : NULL;
	conn->request_id = xstrdup(caller->request_id);
	conn->events = *events;
	conn->timer = timer_new(session->service->config.loop, on_late, conn);
	list_append(&session->ports, &conn->node);
	session->ports_count++;
	session->service->ports++;
	return conn;
}

int port_open(struct session *session, uint16_t port, const struct port_caller *caller,
              const struct box_port_events *events, struct port_conn **ret_conn, struct error *err)
{
	struct box_port_events own = {
		.on_opened = on_opened,
		.on_data = on_data,
		.on_room = on_room,
		.on_finished = on_finished,
		.on_closed = on_closed,
	};
	struct port_conn *conn;

	if (check_session(session, err) < 0)
		return -1;
	own.ctx = conn = conn_new(session, port, caller, events);
	if (box_port_open(session->box, port, &own, &conn->port, err) < 0) {
		record_outcome(conn, error_text(err->code));
		conn_free(conn);
		return -1;
	}
	session_touch(session);
	timer_start(conn->timer, PORTS_OPEN_US);
	*ret_conn = conn;
	return 0;
}

size_t port_write(struct port_conn *conn, const char *data, size_t len)
{
	size_t taken = box_port_write(conn->port, data, len);

	note_activity(conn->session);
	metrics_count_for(metrics_of(conn->session), METRIC_PORT_BYTES, METRIC_LABELS("in"),
	                  (double)taken);
	return taken;
}

void port_finish(struct port_conn *conn)
{
	if (conn->finished)
		return;
	conn->finished = true;
	box_port_finish(conn->port);
}

void port_grant(struct port_conn *conn, size_t bytes)
{
	box_port_grant(conn->port, bytes);
}

void port_reset(struct port_conn *conn)
{
	/* The client left before an answer. */
	record_outcome(conn, "cancelled");
	box_port_reset(conn->port);
	conn_free(conn);
}

void port_leave(struct port_conn *conn)
{
	conn->left = true;
	port_finish(conn);
	timer_start(conn->timer, PORTS_LEAVE_US);
}

static void listing_free(struct port_listing *listing)
{
	list_remove(&listing->node);
	listing->session->ports_count--;
	timer_free(listing->timer);
	free(listing);
}

static void on_listed(void *ctx, const struct box_port_rows *rows, const struct error *err)
{
	struct port_listing *listing = ctx;
	box_port_list_fn *fn = listing->on_listed;
	void *owner = listing->ctx;

	listing_free(listing);
	fn(owner, rows, err);
}

static void end_listing(struct port_listing *listing, const struct error *err)
{
	static const struct box_port_rows none;

	box_port_list_cancel(listing->list);
	on_listed(listing, &none, err);
}

static void on_listing_late(void *ctx)
{
	struct error err = {0};

	(void)error_set(&err, ERR_UNAVAILABLE, 0, "the box does not answer");
	end_listing(ctx, &err);
}

int port_list(struct session *session, box_port_list_fn *fn, void *ctx,
              struct port_listing **ret_listing, struct error *err)
{
	struct port_listing *listing;

	if (check_session(session, err) < 0)
		return -1;
	listing = NEW(struct port_listing);
	listing->session = session;
	listing->on_listed = fn;
	listing->ctx = ctx;
	if (box_port_list(session->box, on_listed, listing, &listing->list, err) < 0) {
		free(listing);
		return -1;
	}
	listing->timer = timer_new(session->service->config.loop, on_listing_late, listing);
	timer_start(listing->timer, PORTS_OPEN_US);
	list_append(&session->port_listings, &listing->node);
	session->ports_count++;
	*ret_listing = listing;
	return 0;
}

void port_list_cancel(struct port_listing *listing)
{
	box_port_list_cancel(listing->list);
	listing_free(listing);
}

void session_ports_end(struct session *session, const struct error *err)
{
	struct port_listing *listing;
	struct port_conn *conn;

	/* The analyzer does not see that ended ones leave the list. */
	while ((conn = LIST_FIRST(&session->ports, struct port_conn, node)))
		end_conn(conn, err); // NOLINT
	while ((listing = LIST_FIRST(&session->port_listings, struct port_listing, node)))
		end_listing(listing, err); // NOLINT
}

void session_ports_drop(struct session *session)
{
	struct port_listing *listing;
	struct port_conn *conn;

	while ((conn = LIST_FIRST(&session->ports, struct port_conn, node)))
		port_reset(conn); // NOLINT: as above
	while ((listing = LIST_FIRST(&session->port_listings, struct port_listing, node)))
		port_list_cancel(listing); // NOLINT: as above
}
