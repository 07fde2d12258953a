/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/turns.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "http/server.h"
#include "peer.h"
#include <stdio.h>

#define CLIENTS 4

/* A server whose requests name their tenant in a header; answered requests are noted in order. */
struct fixture {
	struct loop *loop;
	struct turns *turns;
	struct http_server *server;
	int port;
	size_t arrived;
	char handled[64]; /* first letters of tenants */
};

static void handle(void *ctx, struct http_request *req)
{
	struct fixture *f = ctx;
	size_t n = strlen(f->handled);

	f->handled[n] = http_header(req, "X-Tenant")[0];
	f->handled[n + 1] = '\0';
	http_reply(req, &(struct http_answer){.status = 200, .content_type = "text/plain"});
}

static int on_headers(void *ctx, struct http_request *req, size_t *ret_max_body)
{
	(void)ctx;
	(void)req;
	*ret_max_body = 0;
	return 0;
}

static void on_request(void *ctx, struct http_request *req)
{
	struct fixture *f = ctx;

	f->arrived++;
	turns_enter(f->turns, req, http_header(req, "X-Tenant"), clock_us());
}

static void on_error(void *ctx, struct http_request *req, const struct error *err)
{
	(void)ctx;
	(void)err;
	http_reply(req, &(struct http_answer){.status = 500, .content_type = "text/plain"});
}

static int open_server(void **state)
{
	struct fixture *f = NEW(struct fixture);
	struct error err = {0};
	char name[64];
	int fd = -1;

	f->loop = loop_new();
	f->turns = turns_new(&(struct turns_config){f->loop, handle, f});
	f->server = http_server_new(&(struct http_server_config){
		.loop = f->loop,
		.handlers = {.ctx = f,
	                     .on_headers = on_headers,
	                     .on_request = on_request,
	                     .on_error = on_error},
		.max_connections = 16,
		.max_connections_per_peer = 16,
		.max_connections_per_local_peer = 16,
		.max_header_bytes = 8192,
		.max_bodies_bytes = 10000,
		.max_answers_bytes = 1u << 20,
		.request_timeout_us = 60 * USEC_PER_SEC,
		.idle_timeout_us = 60 * USEC_PER_SEC,
	});
	assert_int_equal(http_listen_tcp("127.0.0.1:0", &fd, &err), 0);
	assert_int_equal(http_listen_name(fd, "http", name, sizeof(name)), 0);
	assert_int_equal(sscanf(name, "http://127.0.0.1:%d", &f->port), 1);
	assert_int_equal(http_server_listen(f->server, fd, NULL, &err), 0);
	*state = f;
	return 0;
}

static int close_server(void **state)
{
	struct fixture *f = *state;

	http_server_free(f->server);
	turns_free(f->turns);
	loop_free(f->loop);
	free(f);
	return 0;
}

static int send_request(struct fixture *f, char tenant)
{
	int fd = peer_connect(f->port);
	char text[128];

	(void)snprintf(text, sizeof(text),
	               "GET / HTTP/1.1\r\nHost: localhost\r\nX-Tenant: %c\r\n\r\n", tenant);
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	return fd;
}

static void run_until_handled(struct fixture *f, size_t count)
{
	uint64_t deadline = clock_us() + PEER_PATIENCE_US;

	while (strlen(f->handled) < count) {
		assert_true(clock_us() < deadline);
		peer_turn(f->loop);
	}
}

static void a_tenant_that_is_alone_never_waits(void **state)
{
	struct fixture *f = *state;
	int fds[CLIENTS];

	for (int i = 0; i < CLIENTS; i++)
		fds[i] = send_request(f, 'a');
	while (f->arrived < CLIENTS) {
		peer_turn(f->loop);
		assert_int_equal(strlen(f->handled), f->arrived);
	}
	for (int i = 0; i < CLIENTS; i++)
		fd_close(fds[i]);
}

static void many_requests_of_one_do_not_delay_another(void **state)
{
	struct fixture *f = *state;
	int first = send_request(f, 'b'), fds[CLIENTS], last;

	run_until_handled(f, 1);
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = send_request(f, 'a');
	last = send_request(f, 'b');
	run_until_handled(f, CLIENTS + 2);
	/* All five may not be seen in one round; after b's request at most one of a's is first. */
	assert_int_equal(strlen(f->handled), CLIENTS + 2);
	assert_true(strchr(f->handled + 1, 'b') < f->handled + CLIENTS + 1);
	for (int i = 0; i < CLIENTS; i++)
		fd_close(fds[i]);
	fd_close(first);
	fd_close(last);
}

static void a_client_that_leaves_loses_its_turn(void **state)
{
	struct fixture *f = *state;
	int first = send_request(f, 'b'), kept, left;

	run_until_handled(f, 1);
	kept = send_request(f, 'a');
	left = send_request(f, 'a');
	while (f->arrived < 3)
		loop_run_once(f->loop, true);
	fd_close(left);
	run_until_handled(f, 2);
	for (int i = 0; i < 20; i++)
		peer_turn(f->loop);
	/* Either it was handled before it left, or never; the server frees what waits. */
	assert_true(strlen(f->handled) <= 3);
	fd_close(first);
	fd_close(kept);
}

static void waiting_requests_end_with_the_server(void **state)
{
	struct fixture *f = *state;
	int first = send_request(f, 'b'), fds[CLIENTS];

	run_until_handled(f, 1);
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = send_request(f, 'a');
	while (f->arrived < 3)
		loop_run_once(f->loop, true);
	for (int i = 0; i < CLIENTS; i++)
		fd_close(fds[i]);
	fd_close(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_tenant_that_is_alone_never_waits, open_server,
	                                        close_server),
		cmocka_unit_test_setup_teardown(many_requests_of_one_do_not_delay_another,
	                                        open_server, close_server),
		cmocka_unit_test_setup_teardown(a_client_that_leaves_loses_its_turn, open_server,
	                                        close_server),
		cmocka_unit_test_setup_teardown(waiting_requests_end_with_the_server, open_server,
	                                        close_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
