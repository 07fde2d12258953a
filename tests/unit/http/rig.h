/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a server with small limits whose handlers respond by path: /later waits for the test,
 * /stream starts a stream and waits, /big is large, /refuse is rejected by its header, others echo.
 * A request with X-Known is authenticated.
 */

#include "peer.h"

#include "base/alloc.h"
#include "http/server.h"

#define HOST         "Host: localhost\r\n"
#define MAX_BODY     1000
#define MAX_BODIES   2500
#define BIG_LEN      (4u << 20)
#define MAX_ANSWERS  (9u << 20)
#define TIMEOUT_US   (200 * USEC_PER_MS)
#define LONG_US      (60 * USEC_PER_SEC)
#define MAX_CONNS    8
#define MAX_PER_PEER 6
#define KNOWN        "X-Known: yes\r\n"

struct fixture {
	struct loop *loop;
	struct http_server *server;
	int port;
	struct http_request *waiting; /* of /later and /stream */
	unsigned requests, gone, quiet;
};

static inline void on_gone(void *ctx)
{
	struct fixture *f = ctx;

	f->gone++;
	f->waiting = NULL;
}

static inline void reply(struct http_request *req, int status, const char *text)
{
	http_reply(req, &(struct http_answer){status, "text/plain", text, strlen(text), NULL, 0});
}

static inline int on_headers(void *ctx, struct http_request *req, size_t *ret_max_body)
{
	(void)ctx;
	if (strcmp(http_path(req), "/refuse") == 0) {
		reply(req, 415, "refused");
		return -1;
	}
	if (http_header(req, "X-Known"))
		http_set_known(req, http_header(req, "X-Known"));
	if (http_is_crowded(req)) {
		reply(req, 503, "crowded");
		return -1;
	}
	*ret_max_body = MAX_BODY;
	if (http_header(req, "X-Quota"))
		http_set_body_quota(req, http_header(req, "X-Quota"));
	return 0;
}

static inline void keep(struct fixture *f, struct http_request *req)
{
	assert_null(f->waiting);
	f->waiting = req;
	http_set_gone(req, on_gone, f);
}

static inline void reply_text(struct http_request *req, const char *text)
{
	reply(req, 200, text);
}

static inline void on_request(void *ctx, struct http_request *req)
{
	struct fixture *f = ctx;
	const char *path = http_path(req), *body, *query;
	size_t len;

	f->requests++;
	body = http_body(req, &len);
	if (strcmp(path, "/later") == 0) {
		keep(f, req);
	} else if (strcmp(path, "/stream") == 0) {
		keep(f, req);
		http_stream_begin(req, 200, "text/plain");
	} else if (strcmp(path, "/big") == 0) {
		char *big = xmalloc(BIG_LEN);

		memset(big, 'b', BIG_LEN);
		http_reply_owned(req,
		                 &(struct http_answer){200, "text/plain", big, BIG_LEN, NULL, 0});
	} else if (strcmp(path, "/query") == 0) {
		query = http_query(req, "q");
		reply_text(req, query ? query : "(none)");
	} else if (strcmp(path, "/id") == 0) {
		reply_text(req, http_request_id(req));
	} else if (len > 0) {
		http_reply(req, &(struct http_answer){200, "text/plain", body, len, NULL, 0});
	} else {
		reply_text(req, path);
	}
}

static inline void on_error(void *ctx, struct http_request *req, const struct error *err)
{
	(void)ctx;
	reply(req, error_http(err->code), err->msg);
}

static inline struct fixture *start(uint64_t request_us, uint64_t idle_us)
{
	struct fixture *f = NEW(struct fixture);
	struct http_server_config config = {
		.handlers = {f, on_headers, on_request, on_error},
		.max_connections = MAX_CONNS,
		.max_connections_per_peer = MAX_PER_PEER,
		.max_connections_per_local_peer = MAX_PER_PEER,
		.max_header_bytes = 8192,
		.max_bodies_bytes = MAX_BODIES,
		.max_answers_bytes = MAX_ANSWERS,
		.request_timeout_us = request_us,
		.idle_timeout_us = idle_us,
	};
	struct error err = {0};
	char name[64];
	int fd = -1;

	config.loop = f->loop = loop_new();
	f->server = http_server_new(&config);
	assert_int_equal(http_listen_tcp("127.0.0.1:0", &fd, &err), 0);
	assert_int_equal(http_listen_name(fd, "http", name, sizeof(name)), 0);
	assert_int_equal(sscanf(name, "http://127.0.0.1:%d", &f->port), 1);
	assert_int_equal(http_server_listen(f->server, fd, NULL, &err), 0);
	return f;
}

static inline int set_up(void **state)
{
	*state = start(LONG_US, LONG_US);
	return 0;
}

static inline int set_up_hasty(void **state)
{
	*state = start(TIMEOUT_US, TIMEOUT_US);
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	http_server_free(f->server);
	loop_free(f->loop);
	free(f);
	return 0;
}

/* One connection, one exchange, until the server closes or @until appears. */
static inline void exchange(struct fixture *f, const char *request, struct buf *answer,
                            const char *until)
{
	cleanup_close int fd = peer_connect(f->port);

	(void)peer_say(f->loop, fd, request);
	(void)peer_read(f->loop, fd, answer, until);
}

static inline void expect_answer(struct fixture *f, const char *request, const char *status,
                                 const char *text)
{
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);

	exchange(f, request, &b, text);
	assert_non_null(b.data);
	if (!strstr(b.data, status) || !strstr(b.data, text))
		fail_msg("to '%s' came '%s', not '%s' with '%s'", request, b.data, status, text);
}

static inline bool has_gone(void *ctx)
{
	return ((struct fixture *)ctx)->gone > 0;
}

static inline bool is_waiting(void *ctx)
{
	return ((struct fixture *)ctx)->waiting != NULL;
}

static inline bool is_empty(void *ctx)
{
	return http_server_connections(((struct fixture *)ctx)->server) == 0;
}

#define UNIT(name)  cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define HASTY(name) cmocka_unit_test_setup_teardown(name, set_up_hasty, tear_down)
