/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/forward.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/size.h"
#include "cli/client/daemon.h"
#include "cli/client/ws_request.h"
#include "client/transport.h"
#include "http/ws_client.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Theory of operation. Binary messages are bytes, an empty one is the end of its sender's. At most
 * WAITING_MAX bytes wait in either direction; then their source is not read.
 */

#define CHUNK       (64 * KIB)
#define WAITING_MAX (256 * KIB)
#define OPEN_US     (30 * 1000 * 1000ULL)
/* The daemon's messages have less. */
#define MESSAGE_MAX (1 * MIB)

enum {
	CODE_NORMAL = 1000
};

struct forward {
	struct ws_client *ws;
	int local;
	struct buf out;  /* for the local client */
	bool local_end;  /* it sends no more */
	bool remote_end; /* the program sends no more */
	bool shut;       /* and the local client knows */
};

static void on_binary(void *ctx, const char *data, size_t len)
{
	struct forward *f = ctx;

	if (len == 0)
		f->remote_end = true;
	/* Held back before: a message more than fits would be a daemon's fault. */
	else if (buf_add(&f->out, data, len) < 0)
		ws_client_close(f->ws, CODE_NORMAL);
	ws_client_hold(f->ws, f->out.len >= WAITING_MAX);
}

/* Return: 0, or -errno: the local client is gone. */
static int read_local(struct forward *f)
{
	char data[CHUNK];
	ssize_t n = recv(f->local, data, sizeof(data), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	f->local_end = n == 0;
	ws_client_send_binary(f->ws, data, (size_t)n);
	return 0;
}

static int write_local(struct forward *f)
{
	ssize_t n = 0;

	if (f->out.len > 0)
		n = send(f->local, f->out.data, f->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	if (n > 0)
		buf_consume(&f->out, (size_t)n);
	ws_client_hold(f->ws, f->out.len >= WAITING_MAX);
	if (f->remote_end && f->out.len == 0 && !f->shut) {
		f->shut = true;
		(void)shutdown(f->local, SHUT_WR);
	}
	return 0;
}

static int wait_for_either(const struct forward *f, struct pollfd fds[2])
{
	short local =
		(short)((f->out.len > 0 ? POLLOUT : 0) |
	                (!f->local_end && ws_client_waiting(f->ws) < WAITING_MAX ? POLLIN : 0));

	fds[0] = (struct pollfd){.fd = ws_client_fd(f->ws), .events = ws_client_wants(f->ws)};
	/* poll reports errors even where nothing is expected. */
	fds[1] = (struct pollfd){.fd = local ? f->local : -1, .events = local};
	return poll(fds, 2, -1) < 0 && errno != EINTR ? -errno : 0;
}

/* Return: 1: the WebSocket has ended; or -errno. */
static int pump_both(struct forward *f)
{
	struct pollfd fds[2];
	int r = 0, ws = 0;

	while (r == 0) {
		r = wait_for_either(f, fds);
		if (r == 0 && fds[1].revents & (POLLIN | POLLERR | POLLHUP))
			r = read_local(f);
		if (r < 0)
			break;
		ws = ws_client_pump(f->ws);
		r = write_local(f);
		if (r == 0)
			r = ws;
	}
	return r;
}

/* What is left, although the WebSocket has ended. */
static int write_rest(struct forward *f)
{
	struct pollfd p = {.fd = f->local, .events = POLLOUT};
	int r = 0;

	while (r == 0 && f->out.len > 0) {
		r = poll(&p, 1, -1) < 0 && errno != EINTR ? -errno : write_local(f);
	}
	return r;
}

static void close_local(int local, bool reset)
{
	const struct linger none = {.l_onoff = 1, .l_linger = 0};

	if (reset)
		(void)setsockopt(local, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	(void)fd_close(local);
}

static struct ws_client *open_ws(const struct endpoint *endpoint, const char *path,
                                 const struct ws_client_events *events, json_t **ret_problem,
                                 struct error *err)
{
	struct ws_client_request request = {
		.path = path, .max_message = MESSAGE_MAX, .timeout_us = OPEN_US};
	struct ws_client_refusal refusal;
	struct ws_client *ws;

	ws_request_fill(endpoint, &request);
	ws = ws_client_open(&request, events, &refusal, err);
	if (!ws && refusal.body)
		*ret_problem = json_loadb(refusal.body, refusal.body_len, 0, NULL);
	free(refusal.body);
	return ws;
}

int forward_run(struct millibox_client *client, const char *path, int local, json_t **ret_problem,
                struct error *err)
{
	const struct endpoint *endpoint = transport_endpoint(client);
	struct forward f = {.local = local, .out = BUF_INIT(WAITING_MAX + MESSAGE_MAX)};
	const struct ws_client_events events = {.ctx = &f, .on_binary = on_binary};
	const int yes = 1;
	bool whole;
	int r;

	if (!endpoint)
		(void)daemon_fail(client, err);
	else
		f.ws = open_ws(endpoint, path, &events, ret_problem, err);
	if (!f.ws) {
		close_local(local, true);
		return -1;
	}
	(void)setsockopt(local, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	r = pump_both(&f);
	if (r > 0)
		r = write_rest(&f);
	whole = r == 0 && ws_client_code(f.ws) == CODE_NORMAL;
	close_local(local, !whole);
	if (!whole && r == 0)
		(void)error_set(
			err, ERR_UNAVAILABLE, 0,
			"the connection was reset by the program, or its session has ended");
	ws_client_free(f.ws);
	buf_done(&f.out);
	return error_is_set(err) ? -1 : 0;
}
