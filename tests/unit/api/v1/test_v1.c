/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include "api/router.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/pool/pool.h"
#include "core/run/run.h"
#include "daemon/dialects.h"
#include "fake_sessions.h"

/*
 * The whole of api/ over a socket, with an exec service that the test plays: the functions below
 * take the place of core's.
 */

struct run {
	struct run_events events;
	bool used;
};

struct run_service {
	struct run exec;
	char language[32], code[64];
	unsigned started, cancelled;
	bool draining, busy;
};

struct fixture {
	struct run_service runs;
	struct config config;
	struct loop *loop;
	struct router *router;
	struct http_server *server;
	int port;
};

int run_start(struct run_service *s, const struct run_request *request,
              const struct run_events *events, struct run **ret_run, struct error *err)
{
	if (s->busy)
		return error_set(err, ERR_BUSY, 0, "the queue is full");
	assert_false(s->exec.used);
	s->exec = (struct run){*events, true};
	s->started++;
	assert_int_equal(str_copy(s->language, sizeof(s->language), request->language), 0);
	assert_int_equal(str_copy(s->code, sizeof(s->code), request->code), 0);
	*ret_run = &s->exec;
	return 0;
}

/* Policies have tests of their own, with a daemon. */
const struct policies *run_service_policies(const struct run_service *s)
{
	(void)s;
	return NULL;
}

const struct policy *run_service_policy_of(const struct run_service *s, const char *tenant)
{
	(void)s;
	(void)tenant;
	return NULL;
}

void run_service_explain(const struct run_service *s, const struct run_request *request,
                         struct policy_explanation *ret_explanation)
{
	(void)s;
	(void)request;
	(void)ret_explanation;
}

void run_cancel(struct run *e)
{
	CONTAINER_OF(e, struct run_service, exec)->cancelled++;
	e->used = false;
}

void run_service_stats(const struct run_service *s, struct run_service_stats *ret_stats)
{
	*ret_stats = (struct run_service_stats){.draining = s->draining};
}

const struct driver *run_service_driver(const struct run_service *s)
{
	static const struct driver_ops ops = {.name = "fake"};
	static const struct driver driver = {.ops = &ops};

	(void)s;
	return &driver;
}

struct pools *run_service_pools(struct run_service *s)
{
	(void)s;
	return NULL;
}

bool pools_at(const struct pools *p, size_t index, struct pool_info *ret_info)
{
	(void)p;
	(void)index;
	(void)ret_info;
	return false;
}

void pools_forget(struct pools *p, const char *tenant)
{
	(void)p;
	(void)tenant;
}

void pools_totals(const struct pools *p, struct pools_totals *ret_totals)
{
	(void)p;
	*ret_totals = (struct pools_totals){0};
}

unsigned run_service_cores(const struct run_service *s)
{
	(void)s;
	return 2;
}

unsigned run_service_retry_after(const struct run_service *s)
{
	(void)s;
	return 17;
}

static int set_up(void **state)
{
	struct fixture *f = NEW(struct fixture);
	struct http_server_config http = {
		.max_connections = 8,
		.max_connections_per_peer = 2,
		.max_header_bytes = 8192,
		.max_bodies_bytes = 10000,
		.max_answers_bytes = 1 << 20,
		.request_timeout_us = 60 * USEC_PER_SEC,
		.idle_timeout_us = 60 * USEC_PER_SEC,
	};
	struct error err = {0};
	char name[64];
	int fd = -1;

	f->config = (struct config){
		.max_body_bytes = 1000, .max_code_bytes = 50, .max_answers_bytes = 1 << 20};
	http.loop = f->loop = loop_new();
	f->router = router_new(&(struct router_config){
		.dialects = dialects, .config = &f->config, .runs = &f->runs});
	http.handlers = router_handlers(f->router);
	f->server = http_server_new(&http);
	assert_int_equal(http_listen_tcp("127.0.0.1:0", &fd, &err), 0);
	assert_int_equal(http_listen_name(fd, "http", name, sizeof(name)), 0);
	assert_int_equal(sscanf(name, "http://127.0.0.1:%d", &f->port), 1);
	assert_int_equal(http_server_listen(f->server, fd, NULL, &err), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	http_server_free(f->server);
	router_free(f->router);
	loop_free(f->loop);
	free(f);
	return 0;
}

static bool has_started(void *ctx)
{
	return ((struct fixture *)ctx)->runs.started > 0;
}

static bool was_cancelled(void *ctx)
{
	return ((struct fixture *)ctx)->runs.cancelled > 0;
}

static int post(struct fixture *f, const char *headers, const char *body)
{
	cleanup_free char *text = xasprintf("POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\n"
	                                    "Content-Type: application/json\r\n%s"
	                                    "Content-Length: %zu\r\n\r\n%s",
	                                    headers, strlen(body), body);
	int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, text));
	return fd;
}

static int post_and_start(struct fixture *f, const char *headers)
{
	int fd = post(f, headers, "{\"language\":\"shell\",\"code\":\"true\"}");

	peer_wait(f->loop, has_started, f);
	return fd;
}

static void end_exec(struct fixture *f)
{
	struct outcome o = {
		.execution_id = "exec_1", .exited = true, .driver = "fake", .out = BUF_INIT(10)};

	assert_int_equal(buf_add(&o.out, "hi", 2), 0);
	f->runs.exec.used = false;
	f->runs.exec.events.on_end(f->runs.exec.events.ctx, &o);
	outcome_done(&o);
}

static void expect(struct fixture *f, const char *request, const char *status, const char *text)
{
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, request));
	(void)peer_read(f->loop, fd, &b, text);
	if (!b.data || !strstr(b.data, status) || !strstr(b.data, text))
		fail_msg("to '%s' came '%s'", request, b.data ? b.data : "");
}

static void an_execution_is_answered_with_its_result(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = post_and_start(f, "");

	assert_string_equal(f->runs.language, "shell");
	assert_string_equal(f->runs.code, "true");
	end_exec(f);
	assert_true(peer_read(f->loop, fd, &b, "\"isolation\""));
	assert_non_null(strstr(b.data, " 200 "));
	assert_non_null(strstr(b.data, "Content-Type: application/json\r\n"));
	assert_non_null(strstr(b.data, "\"stdout\":\"hi\""));
}

static void a_stream_begins_with_the_start_and_ends_with_the_result(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = post_and_start(f, "Accept: application/x-ndjson\r\n");
	const struct run_events *ev = &f->runs.exec.events;

	ev->on_start(ev->ctx, "exec_1");
	assert_true(
		peer_read(f->loop, fd, &b, "{\"event\":\"start\",\"execution_id\":\"exec_1\"}\n"));
	ev->on_output(ev->ctx, OUTPUT_STDOUT, "a\xe2\x82", 3);
	assert_true(peer_read(f->loop, fd, &b, "{\"event\":\"stdout\",\"data\":\"a\"}\n"));
	ev->on_output(ev->ctx, OUTPUT_STDERR, "e", 1);
	assert_true(peer_read(f->loop, fd, &b, "{\"event\":\"stderr\",\"data\":\"e\"}\n"));
	ev->on_output(ev->ctx, OUTPUT_STDOUT, "\xac\xff\xe2", 3);
	assert_true(peer_read(f->loop, fd, &b,
	                      "{\"event\":\"stdout\",\"data\":\"\xe2\x82\xac\xef\xbf\xbd\"}\n"));
	end_exec(f);
	assert_true(peer_read(f->loop, fd, &b, "\r\n0\r\n\r\n"));
	/* What was held back comes before the end. */
	assert_non_null(strstr(b.data, "{\"event\":\"stdout\",\"data\":\"\xef\xbf\xbd\"}\n"));
	assert_non_null(strstr(b.data, "{\"event\":\"end\",\"result\":{\"execution_id\":"));
	assert_non_null(strstr(b.data, "Content-Type: application/x-ndjson\r\n"));
}

static void a_stream_may_be_of_server_sent_events(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = post_and_start(f, "Accept: text/event-stream\r\n");
	const struct run_events *ev = &f->runs.exec.events;

	ev->on_start(ev->ctx, "exec_1");
	end_exec(f);
	assert_true(peer_read(f->loop, fd, &b, "\r\n0\r\n\r\n"));
	assert_non_null(strstr(b.data, "id: 0\nevent: start\ndata: {\"event\":\"start\""));
	assert_non_null(strstr(b.data, "id: 1\nevent: end\ndata: {"));
}

static void a_failure_before_the_start_has_its_status_also_for_streams(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = post_and_start(f, "Accept: application/x-ndjson\r\n");
	struct error err = {.code = ERR_BOX_FAILED, .msg = "mount /secret"};

	f->runs.exec.used = false;
	f->runs.exec.events.on_error(f->runs.exec.events.ctx, &err);
	assert_true(peer_read(f->loop, fd, &b, "\"field\""));
	assert_non_null(strstr(b.data, " 503 "));
	assert_non_null(strstr(b.data, "Retry-After: 1\r\n"));
	assert_non_null(strstr(b.data, "Sandbox.ExecException"));
	assert_null(strstr(b.data, "/secret"));
}

static void a_failure_after_the_start_is_an_event(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = post_and_start(f, "Accept: application/x-ndjson\r\n");
	const struct run_events *ev = &f->runs.exec.events;
	struct error err = {.code = ERR_AGENT_LOST, .msg = "gone"};

	ev->on_start(ev->ctx, "exec_1");
	f->runs.exec.used = false;
	ev->on_error(ev->ctx, &err);
	assert_true(peer_read(f->loop, fd, &b, "\r\n0\r\n\r\n"));
	assert_non_null(strstr(b.data, "{\"event\":\"error\",\"error\":{\"error_code\":"));
}

static void a_client_that_leaves_cancels_its_execution(void **state)
{
	struct fixture *f = *state;

	fd_close(post_and_start(f, ""));
	peer_wait(f->loop, was_cancelled, f);
	assert_int_equal(f->runs.cancelled, 1);
}

static void a_client_that_leaves_its_stream_cancels_too(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	int fd = post_and_start(f, "Accept: application/x-ndjson\r\n");
	const struct run_events *ev = &f->runs.exec.events;

	ev->on_start(ev->ctx, "exec_1");
	assert_true(peer_read(f->loop, fd, &b, "start"));
	fd_close(fd);
	peer_wait(f->loop, was_cancelled, f);
	assert_int_equal(f->runs.cancelled, 1);
}

static void end_with_too_much(struct fixture *f)
{
	struct outcome o = {.execution_id = "exec_1", .out = BUF_INIT(1 << 18), .driver = "fake"};

	/* Less than the limit as bytes, more than it as JSON. */
	assert_int_equal(buf_reserve(&o.out, 1 << 18), 0);
	memset(o.out.data, 0, 1 << 18);
	o.out.len = 1 << 18;
	f->runs.exec.used = false;
	f->runs.exec.events.on_end(f->runs.exec.events.ctx, &o);
	outcome_done(&o);
}

static void an_answer_that_has_no_room_is_an_error(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = post_and_start(f, "");

	end_with_too_much(f);
	assert_true(peer_read(f->loop, fd, &b, "its output does not fit"));
	assert_non_null(strstr(b.data, " 503 "));
}

static void a_last_event_that_has_no_room_is_an_error(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = post_and_start(f, "Accept: application/x-ndjson\r\n");

	f->runs.exec.events.on_start(f->runs.exec.events.ctx, "exec_1");
	end_with_too_much(f);
	assert_true(peer_read(f->loop, fd, &b, "its output does not fit"));
	assert_non_null(strstr(b.data, "{\"event\":\"error\""));
}

static void a_refusal_of_core_is_answered(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = -1;

	f->runs.busy = true;
	fd = post(f, "", "{\"language\":\"shell\",\"code\":\"true\"}");
	assert_true(peer_read(f->loop, fd, &b, "queue is full"));
	assert_non_null(strstr(b.data, " 429 "));
	assert_non_null(strstr(b.data, "Retry-After: 17\r\n"));
}

static void wrong_requests_start_nothing(void **state)
{
	static const struct {
		const char *request, *status, *text;
	} rows[] = {
		{"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	         " 415 ", "Sandbox.UnsupportedMediaType"},
		{"POST /api/v1/execute HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n",
	         " 403 ", "Sandbox.Forbidden"},
		{"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil\r\n"
	         "Content-Type: application/json\r\nContent-Length: 0\r\n\r\n",
	         " 403 ", "Sandbox.Forbidden"},
		{"GET /api/v1/execute HTTP/1.1\r\nHost: localhost\r\n\r\n", "Allow: POST\r\n",
	         "Sandbox.MethodNotAllowed"},
		{"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", " 404 ", "Sandbox.NotFound"},
		{"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx", " 413 ",
	         "Sandbox.PayloadTooLarge"},
		{"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
	         "application/json\r\n"
	         "Content-Length: 1001\r\n\r\n",
	         " 413 ", "Sandbox.PayloadTooLarge"},
		{"POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
	         "application/json\r\n"
	         "Content-Length: 1\r\n\r\n{",
	         " 400 ", "Sandbox.InvalidJson"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		expect(f, rows[i].request, rows[i].status, rows[i].text);
	assert_int_equal(f->runs.started, 0);
}

static void health_and_readiness_are_told(void **state)
{
	struct fixture *f = *state;

	expect(f, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 200 ",
	       "{\"status\":\"ok\"}");
	expect(f, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 200 ", "\"ready\"");
	f->runs.draining = true;
	expect(f, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 503 ",
	       "\"reasons\":[\"draining\"]");
	f->runs.draining = false;
	router_set_unready(f->router, "engine");
	expect(f, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 503 ",
	       "\"reasons\":[\"engine\"]");
	expect(f, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 200 ", "ok");
}

static void in_a_crowd_only_health_is_answered(void **state)
{
	struct fixture *f = *state;
	cleanup_close attr_unused int first = peer_connect(f->port);
	cleanup_close attr_unused int second = peer_connect(f->port);

	while (http_server_connections(f->server) < 2)
		peer_turn(f->loop);
	expect(f, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 200 ", "ok");
	expect(f,
	       "POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\n"
	       "Content-Type: application/json\r\nContent-Length: 0\r\n\r\n",
	       " 429 ", "too many connections");
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(an_execution_is_answered_with_its_result),
		UNIT(a_stream_begins_with_the_start_and_ends_with_the_result),
		UNIT(a_stream_may_be_of_server_sent_events),
		UNIT(a_failure_before_the_start_has_its_status_also_for_streams),
		UNIT(a_failure_after_the_start_is_an_event),
		UNIT(a_client_that_leaves_cancels_its_execution),
		UNIT(a_client_that_leaves_its_stream_cancels_too),
		UNIT(an_answer_that_has_no_room_is_an_error),
		UNIT(a_last_event_that_has_no_room_is_an_error),
		UNIT(a_refusal_of_core_is_answered),
		UNIT(wrong_requests_start_nothing),
		UNIT(health_and_readiness_are_told),
		UNIT(in_a_crowd_only_health_is_answered),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
