/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/parse.h"
#include "base/str.h"
#include "http/internal.h"
#include "http/ws.h"
#include "io/loop.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>

/*
 * Theory of operation. microhttpd keeps all sockets of a listener in one epoll descriptor; the loop
 * watches that and calls MHD_run. MHD_run must not be entered from microhttpd's callbacks or a
 * handler's, so code that resumes a connection defers it (listener_run_soon).
 */

/* Most bodies fit; grows only with bytes that arrive. */
#define BODY_FIRST 16384u
/* microhttpd's memory for parsed headers: a record per line, argument and cookie, and the response
 * header. Enough for the maximum of the first two and hundreds of cookies. */
#define POOL_RECORDS 65536
/* Of our descriptors, for connections that leave; and as many for those that linger. */
#define REFUSED_PART 8
/*
 * Out of descriptors, microhttpd stops accepting until a connection of the same listener ends,
 * which one idle connection can put off forever. It logs a message that begins like this.
 */
#define STARVED_LOG      "Hit process or system resource limit at %u"
#define STARVED_CHECK_US (USEC_PER_SEC / 5)

static void listener_run(void *arg)
{
	struct http_listener *l = arg;
	MHD_UNSIGNED_LONG_LONG ms;

	l->run_deferred = false;
	(void)MHD_run(l->mhd); /* fails only for daemons with threads */
	if (MHD_get_timeout(l->mhd, &ms) == MHD_NO)
		timer_stop(l->timer);
	else if (ms == 0)
		listener_run_soon(l);
	else
		timer_start(l->timer, ms * 1000);
}

static void on_events(void *ctx, int events)
{
	(void)events;
	listener_run(ctx);
}

void listener_run_soon(struct http_listener *l)
{
	if (l->run_deferred)
		return;
	l->run_deferred = true;
	loop_defer(l->server->config.loop, listener_run, l);
}

static void reply_own_error(struct http_request *req, const struct error *err)
{
	const struct http_handlers *h = &req->conn->server->config.handlers;

	req->close = true;
	h->on_error(h->ctx, req, err);
}

static enum MHD_Result take_header(struct http_request *req, const char *target)
{
	const struct http_handlers *h = &req->conn->server->config.handlers;
	const char *length;
	size_t max = 0;
	uint64_t announced = 0;
	struct error err = {0};

	/* Each header that microhttpd finds was found by framing.h too: see intercept.c. */
	if (++req->conn->heads > req->conn->framing.heads) {
		(void)error_set(&err, ERR_SYSTEM, 0, "the framing of a request was not checked");
		reply_own_error(req, &err);
		return response_queue(req);
	}
	if (request_check(req, target, &err) < 0) {
		reply_own_error(req, &err);
		return response_queue(req);
	}
	if (h->on_headers(h->ctx, req, &max) < 0 || req->phase == REQUEST_ANSWERED)
		return response_queue(req);
	if (req->takes_body) {
		req->phase = REQUEST_BODY;
		return MHD_YES;
	}
	length = http_header(req, MHD_HTTP_HEADER_CONTENT_LENGTH);
	if (length && (parse_u64(length, &announced) < 0 || announced > max)) {
		(void)error_set(&err, ERR_TOO_LARGE, 0, "the body exceeds %zu bytes", max);
		reply_own_error(req, &err);
		return response_queue(req);
	}
	buf_init(&req->body, max);
	/* Content-Length is only a promise. */
	if (buf_reserve(&req->body, announced < BODY_FIRST ? announced : BODY_FIRST) < 0)
		return MHD_NO;
	req->phase = REQUEST_BODY;
	return MHD_YES;
}

/*
 * microhttpd keeps what the sink does not take, and the connection is suspended. The client waits
 * for us, so its timeout stops.
 */
static enum MHD_Result pass_to_sink(struct http_request *req, const char *data, size_t *len)
{
	struct http_conn *c = req->conn;
	size_t taken;

	if (c->hung_up && !req->gone)
		request_gone(req);
	if (req->gone)
		return MHD_NO;
	taken = req->sink.on_data(req->sink.ctx, data, *len);
	if (req->phase != REQUEST_BODY) /* a response was sent meanwhile */
		return MHD_NO;
	assert(taken <= *len);
	*len -= taken;
	req->step_bytes += taken;
	if (req->step_bytes >= HTTP_STEP || *len > 0) {
		req->step_bytes = 0;
		conn_wait(c, WAIT_REQUEST);
	}
	if (*len == 0)
		return MHD_YES;
	req->body_held = true;
	conn_wait_end(c);
	conn_suspend(c);
	return MHD_YES;
}

/* Complete, or resumed. */
static enum MHD_Result proceed_request(struct http_request *req)
{
	const struct http_handlers *h = &req->conn->server->config.handlers;

	if (req->phase == REQUEST_BODY) {
		conn_wait_end(req->conn);
		req->phase = REQUEST_WAITING;
		if (req->takes_body)
			req->sink.on_end(req->sink.ctx);
		else
			h->on_request(h->ctx, req);
	}
	if (req->phase == REQUEST_ANSWERED)
		return response_queue(req);
	if (req->conn->hung_up && !req->gone)
		request_gone(req);
	if (req->gone)
		return MHD_NO;
	conn_suspend(req->conn);
	return MHD_YES;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are microhttpd's */
static enum MHD_Result on_access(void *cls, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *data_len, void **req_cls)
{
	struct http_request *req = *req_cls;
	struct error err = {0};
	int r;

	(void)cls;
	(void)mhd;
	(void)version;
	if (!req)
		return MHD_NO;
	if (req->phase == REQUEST_SENDING && req->conn->unread)
		return MHD_NO; /* a response was sent already */
	if (req->phase == REQUEST_HEAD) {
		req->method = method;
		return take_header(req, url);
	}
	if (*data_len == 0)
		return proceed_request(req);
	if (req->takes_body)
		return pass_to_sink(req, data, data_len);
	r = request_add_body(req, data, *data_len, &err);
	*data_len = 0;
	if (r == 0)
		return MHD_YES;
	/* Without a length we cannot tell how much would come. */
	reply_own_error(req, &err);
	return MHD_NO;
}

static struct http_conn *conn_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void set_crowded(struct error *err)
{
	(void)error_later(err, ERR_BUSY, ERROR_SOON_US, "too many connections");
}

/*
 * microhttpd creates a record per argument, and closes silently without memory. So check the line
 * first and respond here. It may also have read requests before their connection was turned away.
 */
static void reject_request_line(struct http_request *req, const char *target)
{
	struct http_conn *c = req->conn;
	struct error err = {0};

	if (c->leaving)
		set_crowded(&err);
	else if (request_check_line(req, target, &err) == 0)
		return;
	c->refused = c->leaving;
	req->phase = REQUEST_REFUSED;
	reply_own_error(req, &err);
	(void)shutdown(c->fd, SHUT_WR);
}

static void *on_request_line(void *cls, const char *target, struct MHD_Connection *mhd)
{
	struct http_conn *c = conn_of(mhd);

	(void)cls;
	if (!c)
		return NULL;
	c->req = request_new(c, target);
	reject_request_line(c->req, target);
	/* A connection's first timeout runs from its first byte. */
	if (c->served)
		conn_wait(c, WAIT_REQUEST);
	c->served = true;
	return c->req;
}

static void report_done(const struct http_request *req, bool complete)
{
	const struct http_handlers *h = &req->conn->server->config.handlers;
	const struct http_done done = {req->status, req->sent_bytes, clock_us() - req->began_us,
	                               complete};

	if (h->on_done)
		h->on_done(h->ctx, req, &done);
}

/* Before its first line was complete: microhttpd knows no request. */
static void refuse_first_bytes(struct http_conn *c, const struct error *err)
{
	struct http_request *req = request_new(c, "");

	c->req = req;
	req->phase = REQUEST_REFUSED;
	reply_own_error(req, err);
	report_done(req, true);
	c->req = NULL;
	request_free(req);
}

/* Nothing of a response was sent; whatever the client sends now is no request. */
static void refuse_conn(struct http_conn *c, const struct error *err)
{
	struct http_request *req = c->req;

	c->refused = true;
	if (!req) {
		refuse_first_bytes(c, err);
	} else {
		/* The handler of a streamed body has the request. */
		request_gone(req);
		if (req->phase == REQUEST_HEAD)
			req->phase = REQUEST_REFUSED;
		reply_own_error(req, err);
	}
	(void)shutdown(c->fd, SHUT_WR);
}

/*
 * microhttpd has everything up to the bad byte, and waits for more. If a request before it is still
 * in progress, its completion leads here again.
 */
void server_refuse_framing(void *conn)
{
	struct http_conn *c = conn;
	struct http_request *req = c->req;
	struct error err = {0};

	if (c->refused || c->ws)
		return;
	if (req && req->phase != REQUEST_HEAD &&
	    !(req->phase == REQUEST_BODY && framing_is_body(&c->framing)))
		return;
	(void)error_set(&err, ERR_INVALID, 0, "%s", c->framing.bad);
	refuse_conn(c, &err);
}

bool server_can_refuse(const struct http_conn *c)
{
	return !c->refused && tls_is_ready(c) && (!c->req || c->req->phase == REQUEST_HEAD);
}

void server_refuse_crowd(void *conn)
{
	struct http_conn *c = conn;
	struct error err = {0};

	if (!server_can_refuse(c))
		return;
	set_crowded(&err);
	refuse_conn(c, &err);
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **req_cls,
                         enum MHD_RequestTerminationCode code)
{
	struct http_request *req = TAKE_PTR(*req_cls);
	struct http_conn *c;

	(void)cls;
	(void)mhd;
	if (!req)
		return;
	c = req->conn;
	if (req->ws)
		ws_unborn(TAKE_PTR(req->ws));
	request_gone(req);
	report_done(req, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
	c->req = NULL;
	request_free(req);
	conn_wait(c, WAIT_IDLE);
	if (c->server->quiescing)
		conn_cut(c);
	else if (c->leaving)
		conn_can_answer(c);
	else if (c->framing.bad)
		conn_bad_framing(c);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		*context = conn_opened(cls, mhd);
	else
		conn_closed(TAKE_PTR(*context));
}

/* We decode paths and queries ourselves, once, rejecting NUL and bad escapes. */
static size_t leave_escaped(void *cls, struct MHD_Connection *mhd, char *text)
{
	(void)cls;
	(void)mhd;
	return strlen(text);
}

/* Descriptors come back from boxes and other listeners, too, which microhttpd does not notice. */
static void feed_starved(void *ctx)
{
	struct http_server *s = ctx;
	struct http_listener *l;
	bool any = false;

	LIST_FOREACH (l, &s->listeners, struct http_listener, node) {
		cleanup_close int probe = l->starved && l->fd >= 0 ? fd_dup(l->fd) : -1;

		any = any || l->starved;
		if (probe >= 0)
			conn_make_way(l);
	}
	if (any)
		timer_start(s->starved_timer, STARVED_CHECK_US);
}
__attribute__((format(printf, 2, 0))) static void on_log(void *cls, const char *fmt, va_list args)
{
	struct http_listener *l = cls;
	char text[256];

	/* There is no other sign of it. */
	if (str_has_prefix(fmt, STARVED_LOG)) {
		l->starved = true;
		timer_start(l->server->starved_timer, STARVED_CHECK_US);
	}
	if (!log_is_on(LOG_LEVEL_DEBUG))
		return;
	(void)vsnprintf(text, sizeof(text), fmt, args);
	log_debug("http: %s", text);
}

static void report_quiet(void *arg)
{
	struct http_server *s = arg;

	s->on_quiet(s->quiet_ctx);
}

void server_check_quiet(struct http_server *s)
{
	/* microhttpd is on the stack, and the callback frees the server. */
	if (s->quiescing && s->conns_count == 0)
		loop_defer(s->config.loop, report_quiet, s);
}

static size_t max_refused(void)
{
	struct rlimit files = {0};
	rlim_t part;

	(void)getrlimit(RLIMIT_NOFILE, &files);
	part = files.rlim_cur / REFUSED_PART + 1;
	return part < REFUSED_MAX ? (size_t)part : REFUSED_MAX;
}

struct http_server *http_server_new(const struct http_server_config *config)
{
	struct http_server *s = NEW(struct http_server);

	s->config = *config;
	s->refused_max = max_refused();
	list_init(&s->listeners);
	list_init(&s->conns);
	list_init(&s->lingering);
	for (int wait = 0; wait < WAIT_COUNT; wait++)
		list_init(&s->waits[wait]);
	room_init(&s->tcp);
	room_init(&s->local);
	s->peers = map_new();
	s->body_quotas = map_new();
	s->timer = timer_new(config->loop, conn_expire, s);
	s->starved_timer = timer_new(config->loop, feed_starved, s);
	s->diag_fd = -1;
	s->hangup_fd = fd_epoll();
	assert(s->hangup_fd >= 0);
	s->hangup_watch = watch_new(config->loop, s->hangup_fd, conn_hangups, s);
	watch_set(s->hangup_watch, WATCH_READ);
	return s;
}

void http_server_identify(struct http_server *s, int fd)
{
	fd_close(s->diag_fd);
	s->diag_fd = fd;
}

static void listener_free(struct http_listener *l);

/* From the loop: microhttpd is not on the stack. */
static void free_retired(void *arg)
{
	listener_free(arg);
}

static void listener_free(struct http_listener *l)
{
	list_remove(&l->node);
	loop_cancel(l->server->config.loop, listener_run, l);
	watch_free(l->watch);
	timer_free(l->timer);
	if (l->mhd)
		MHD_stop_daemon(l->mhd); /* closes its connections; leaves the listening socket */
	loop_cancel(l->server->config.loop, listener_run, l);
	loop_cancel(l->server->config.loop, free_retired, l);
	fd_close(l->fd);
	free(l);
}

void listener_check_retired(struct http_listener *l)
{
	if (l->retired && l->conns_count == 0)
		loop_defer(l->server->config.loop, free_retired, l);
}

void http_server_free(struct http_server *s)
{
	struct http_listener *l;
	struct http_conn *c;

	if (!s)
		return;
	/* microhttpd refuses to stop while connections are suspended. */
	LIST_FOREACH (c, &s->conns, struct http_conn, node) {
		if (c->ws)
			ws_abort(c->ws);
		if (c->req)
			request_gone(c->req);
		conn_resume(c);
	}
	LIST_FOREACH (l, &s->listeners, struct http_listener, node)
		listener_free(l);
	loop_cancel(s->config.loop, report_quiet, s);
	linger_end_all(s);
	watch_free(s->hangup_watch);
	timer_free(s->timer);
	timer_free(s->starved_timer);
	fd_close(s->hangup_fd);
	fd_close(s->diag_fd);
	map_free(s->peers);
	map_free(s->body_quotas);
	free(s);
}

#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

static struct MHD_OptionItem text_option(enum MHD_OPTION option, const char *text)
{
	/* microhttpd's member lacks the const; it only reads. */
	return (struct MHD_OptionItem){option, 0, (void *)(uintptr_t)text};
}

static struct MHD_Daemon *start_mhd(struct http_listener *l, int fd, const struct http_tls *tls)
{
	const struct http_server_config *config = &l->server->config;
	/* Room for all that the server accepts, plus those that conn_opened rejects: microhttpd
	 * would silently stop accepting. */
	unsigned limit = (unsigned)config->max_connections + REFUSED_MAX + 1024;
	/* The header, cookies once more, and half free: microhttpd always wants that much to read
	 * into. */
	size_t pool = 2 * (config->max_header_bytes + REQUEST_LINE_MAX) + config->max_header_bytes +
	              POOL_RECORDS;

	unsigned flags =
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE | MHD_USE_ERROR_LOG;
	struct MHD_OptionItem more[] = {
		{MHD_OPTION_END, 0, NULL},
		text_option(MHD_OPTION_HTTPS_MEM_CERT, tls ? tls->cert : NULL),
		text_option(MHD_OPTION_HTTPS_PRIORITIES, TLS_PRIORITIES),
		{MHD_OPTION_END, 0, NULL},
	};

	if (tls) {
		flags |= MHD_USE_TLS;
		more[0] = text_option(MHD_OPTION_HTTPS_MEM_KEY, tls->key);
	}
	return MHD_start_daemon(
		flags, 0, NULL, NULL, on_access, l, MHD_OPTION_EXTERNAL_LOGGER, on_log, l,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, limit,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, pool, MHD_OPTION_CONNECTION_TIMEOUT, 0U,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
		MHD_OPTION_URI_LOG_CALLBACK, on_request_line, l, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, l, MHD_OPTION_NOTIFY_CONNECTION, on_connection, l,
		MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL, MHD_OPTION_ARRAY, more,
		MHD_OPTION_END);
}

int http_server_listen(struct http_server *s, int fd, const struct http_tls *tls, struct error *err)
{
	struct http_listener *l = NEW(struct http_listener);
	struct sockaddr_storage addr = {0};
	socklen_t len = sizeof(addr);
	const union MHD_DaemonInfo *info;

	l->server = s;
	l->fd = fd;
	list_append(&s->listeners, &l->node);
	l->is_unix =
		getsockname(fd, (struct sockaddr *)&addr, &len) == 0 && addr.ss_family == AF_UNIX;
	l->is_tls = tls;
	l->mhd = start_mhd(l, fd, tls);
	if (!l->mhd) {
		int sys = errno;

		listener_free(l);
		return error_set(err, ERR_SYSTEM, sys, "start the HTTP server");
	}
	info = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	assert(info);
	l->timer = timer_new(s->config.loop, listener_run, l);
	l->watch = watch_new(s->config.loop, info->epoll_fd, on_events, l);
	watch_set(l->watch, WATCH_READ);
	return 0;
}

/* Its connections continue; the last one frees it. */
static void listener_retire(struct http_listener *l)
{
	(void)MHD_quiesce_daemon(l->mhd); /* returns l->fd, which is ours already */
	l->fd = fd_close(l->fd);
	l->retired = true;
	listener_check_retired(l);
}

static struct http_listener *find_tls(struct http_server *s)
{
	struct http_listener *l;

	LIST_FOREACH (l, &s->listeners, struct http_listener, node)
		if (l->is_tls && !l->retired)
			return l;
	return NULL;
}

/*
 * microhttpd cannot change a certificate. A new daemon takes over the socket and its accept queue
 * before the old one lets go, so no connection is refused.
 */
int http_server_renew_tls(struct http_server *s, const struct http_tls *tls, struct error *err)
{
	struct http_listener *old = find_tls(s);
	int fd;

	if (s->quiescing || !old)
		return 0;
	fd = fd_dup(old->fd);
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, -fd, "duplicate the listening socket");
	if (http_server_listen(s, fd, tls, err) < 0)
		return -1;
	listener_retire(old);
	return 0;
}

void http_server_quiesce(struct http_server *s, void (*on_quiet)(void *ctx), void *ctx)
{
	struct http_listener *l;
	struct http_conn *c;

	if (s->quiescing)
		return;
	s->quiescing = true;
	s->on_quiet = on_quiet;
	s->quiet_ctx = ctx;
	LIST_FOREACH (l, &s->listeners, struct http_listener, node) {
		if (l->retired)
			continue;
		(void)MHD_quiesce_daemon(l->mhd);
		l->fd = fd_close(l->fd);
	}
	/* Idle connections would delay the end. */
	LIST_FOREACH (c, &s->conns, struct http_conn, node)
		if (c->ws)
			http_ws_close(c->ws, HTTP_WS_GOING_AWAY);
		else if (!c->req)
			conn_cut(c);
	server_check_quiet(s);
}

static void cut_matching(struct http_server *s, const struct http_request *kept,
                         bool (*fn)(void *ctx, const struct http_request *other), void *ctx)
{
	struct http_conn *c;

	LIST_FOREACH (c, &s->conns, struct http_conn, node) {
		if (!c->req || c->req == kept || c->req->phase < REQUEST_WAITING ||
		    !fn(ctx, c->req))
			continue;
		if (c->ws)
			http_ws_close(c->ws, HTTP_WS_POLICY);
		else
			conn_cut(c);
	}
}

void http_cut_others(const struct http_request *req,
                     bool (*fn)(void *ctx, const struct http_request *other), void *ctx)
{
	cut_matching(req->conn->server, req, fn, ctx);
}

void http_server_cut(struct http_server *s, bool (*fn)(void *ctx, const struct http_request *req),
                     void *ctx)
{
	cut_matching(s, NULL, fn, ctx);
}

size_t http_server_connections(const struct http_server *s)
{
	return s->conns_count;
}

double http_server_usage(const struct http_server *s)
{
	size_t most = s->tcp.count > s->local.count ? s->tcp.count : s->local.count;

	return (double)most / (double)s->config.max_connections;
}

size_t http_server_take_evicted(struct http_server *s)
{
	size_t count = s->evicted_count;

	s->evicted_count = 0;
	return count;
}
