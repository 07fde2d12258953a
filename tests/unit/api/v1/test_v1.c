/* SPDX-License-Identifier: Apache-2.0 */
#include "api_fixture.h"

#include "core/run/run_internal.h"

/* Executions without a session, over a socket. */

static int set_up(void **state)
{
	struct http_server_config http = {.max_connections = 8,
	                                  .max_connections_per_local_peer = 2,
	                                  .max_answers_bytes = 1 << 20};

	return open_api(state, &http);
}

static bool has_started(void *ctx)
{
	return fake_box_count(((struct fixture *)ctx)->driver) > 0;
}

static bool was_cancelled(void *ctx)
{
	struct fixture *f = ctx;
	struct run_service_stats stats;

	run_service_stats(f->runs, &stats);
	return fake_box_count(f->driver) == 0 && stats.running == 0;
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

/* The box is ready; the program was not begun. */
static int post_and_start(struct fixture *f, const char *headers)
{
	int fd = post(f, headers, "{\"language\":\"shell\",\"code\":\"true\"}");

	peer_wait(f->loop, has_started, f);
	fake_ready(box_of(f));
	return fd;
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
	const struct fake_exec *run = begin_run(f);

	assert_string_equal(run->argv[1], "-e"); /* shell's */
	assert_string_equal(code_of(run), "true");
	greet_and_end(f, run);
	assert_true(peer_read(f->loop, fd, &b, "\"isolation\""));
	assert_non_null(strstr(b.data, " 200 "));
	assert_non_null(strstr(b.data, "Content-Type: application/json\r\n"));
	assert_non_null(strstr(b.data, "\"stdout\":\"hi\""));
}

#define START "{\"event\":\"start\",\"execution_id\":\""
#define END   "{\"event\":\"end\",\"result\":{\"execution_id\":"

static void a_stream_begins_with_the_start_and_ends_with_the_result(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = post_and_start(f, "Accept: application/x-ndjson\r\n");
	const struct fake_exec *run = begin_run(f);
	char id[64] = "", end[128];

	assert_true(peer_read(f->loop, fd, &b, START));
	assert_true(peer_read(f->loop, fd, &b, "\"}\n"));
	assert_int_equal(sscanf(strstr(b.data, START) + strlen(START), "%63[^\"]", id), 1);
	print(f, run, OUTPUT_STDOUT, "a\xe2\x82");
	assert_true(peer_read(f->loop, fd, &b, "{\"event\":\"stdout\",\"data\":\"a\"}\n"));
	print(f, run, OUTPUT_STDERR, "e");
	assert_true(peer_read(f->loop, fd, &b, "{\"event\":\"stderr\",\"data\":\"e\"}\n"));
	print(f, run, OUTPUT_STDOUT, "\xac\xff\xe2");
	assert_true(peer_read(f->loop, fd, &b,
	                      "{\"event\":\"stdout\",\"data\":\"\xe2\x82\xac\xef\xbf\xbd\","
	                      "\"base64\":\"4oKs/w==\"}\n"));
	end_run(f, run);
	assert_true(peer_read(f->loop, fd, &b, "\r\n0\r\n\r\n"));
	/* What was held back comes before the end. */
	assert_non_null(strstr(
		b.data, "{\"event\":\"stdout\",\"data\":\"\xef\xbf\xbd\",\"base64\":\"4g==\"}\n"));
	(void)snprintf(end, sizeof(end), "%s\"%s\"", END, id);
	assert_non_null(strstr(b.data, end));
	assert_non_null(strstr(b.data, "Content-Type: application/x-ndjson\r\n"));
}

static void a_stream_may_be_of_server_sent_events(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = post_and_start(f, "Accept: text/event-stream\r\n");

	end_run(f, begin_run(f));
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

	fake_lost(box_of(f), &err);
	assert_true(peer_read(f->loop, fd, &b, "\"field\""));
	assert_non_null(strstr(b.data, " 503 "));
	assert_non_null(strstr(b.data, "Should-Retry: false\r\n"));
	assert_null(strstr(b.data, "Retry-After:"));
	assert_non_null(strstr(b.data, "Sandbox.ExecException"));
	assert_null(strstr(b.data, "/secret"));
}

static void a_failure_after_the_start_is_an_event(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = post_and_start(f, "Accept: application/x-ndjson\r\n");
	struct error err = {.code = ERR_AGENT_LOST, .msg = "gone"};

	(void)begin_run(f);
	/* A new box instead of a dead one of the pool may fail after the start was reported. */
	run_fail(LIST_FIRST(&f->runs->all, struct run, node), &err);
	assert_true(peer_read(f->loop, fd, &b, "\r\n0\r\n\r\n"));
	assert_non_null(strstr(b.data, "{\"event\":\"error\",\"error\":{\"error_code\":"));
}

static void a_client_that_leaves_cancels_its_execution(void **state)
{
	struct fixture *f = *state;

	fd_close(post_and_start(f, ""));
	peer_wait(f->loop, was_cancelled, f);
}

static void a_client_that_leaves_its_stream_cancels_its_execution(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	int fd = post_and_start(f, "Accept: application/x-ndjson\r\n");

	(void)begin_run(f);
	assert_true(peer_read(f->loop, fd, &b, "start"));
	fd_close(fd);
	peer_wait(f->loop, was_cancelled, f);
}

static void end_with_too_much(struct fixture *f)
{
	const size_t len = 1 << 18;
	cleanup_free char *zeros = xcalloc(1, len);
	const struct fake_exec *run = begin_run(f);

	/* Less than the limit as bytes, more than it as JSON. */
	print_bytes(f, run, OUTPUT_STDOUT, zeros, len);
	end_run(f, run);
}

static void a_response_that_does_not_fit_is_an_error(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = post_and_start(f, "");

	end_with_too_much(f);
	assert_true(peer_read(f->loop, fd, &b, "its output does not fit"));
	assert_non_null(strstr(b.data, " 503 "));
}

static void a_last_event_that_does_not_fit_is_an_error(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = post_and_start(f, "Accept: application/x-ndjson\r\n");

	end_with_too_much(f);
	assert_true(peer_read(f->loop, fd, &b, "its output does not fit"));
	assert_non_null(strstr(b.data, "{\"event\":\"error\""));
}

static void a_refusal_of_core_is_answered(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int first = -1, fd = -1;

	first = post_and_start(f, "");
	fd = post(f, "", "{\"language\":\"shell\",\"code\":\"true\"}");
	assert_true(peer_read(f->loop, fd, &b, "Too many requests at a time"));
	assert_non_null(strstr(b.data, " 429 "));
	assert_non_null(strstr(b.data, "\r\nRetry-After: 1\r\n"));
	assert_non_null(strstr(b.data, "\r\nShould-Retry: true\r\n"));
	assert_non_null(strstr(b.data, "\"retry_after\":1"));
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
	assert_int_equal(fake_box_count(f->driver), 0);
}

static void health_and_readiness_are_reported(void **state)
{
	struct fixture *f = *state;

	expect(f, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 200 ",
	       "{\"status\":\"ok\"}");
	expect(f, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 200 ", "\"ready\"");
	router_set_unready(f->router, "engine");
	expect(f, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 503 ",
	       "\"reasons\":[\"engine\"]");
	expect(f, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 200 ", "ok");
}

static void on_drained(void *ctx)
{
	(void)ctx;
}

static void a_daemon_that_drains_is_not_ready(void **state)
{
	struct fixture *f = *state;

	run_service_drain(f->runs, false, on_drained, NULL);
	expect(f, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 503 ",
	       "\"reasons\":[\"draining\"]");
	expect(f, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 200 ", "ok");
}

/* Callers whose bodies are awaited: their connections make no room. */
static int begin_post(struct fixture *f)
{
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd,
	                     "POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\n"
	                     "Content-Type: application/json\r\nExpect: 100-continue\r\n"
	                     "Content-Length: 10\r\n\r\n"));
	assert_true(peer_read(f->loop, fd, &b, "100 Continue"));
	return fd;
}

static void over_the_connection_limit_only_health_is_answered(void **state)
{
	struct fixture *f = *state;
	cleanup_close attr_unused int first = begin_post(f);
	cleanup_close attr_unused int second = begin_post(f);

	expect(f, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", " 200 ", "ok");
	expect(f,
	       "POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\n"
	       "Content-Type: application/json\r\nContent-Length: 0\r\n\r\n",
	       " 429 ", "too many connections");
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, close_api)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(an_execution_is_answered_with_its_result),
		UNIT(a_stream_begins_with_the_start_and_ends_with_the_result),
		UNIT(a_stream_may_be_of_server_sent_events),
		UNIT(a_failure_before_the_start_has_its_status_also_for_streams),
		UNIT(a_failure_after_the_start_is_an_event),
		UNIT(a_client_that_leaves_cancels_its_execution),
		UNIT(a_client_that_leaves_its_stream_cancels_its_execution),
		UNIT(a_response_that_does_not_fit_is_an_error),
		UNIT(a_last_event_that_does_not_fit_is_an_error),
		UNIT(a_refusal_of_core_is_answered),
		UNIT(wrong_requests_start_nothing),
		UNIT(health_and_readiness_are_reported),
		UNIT(a_daemon_that_drains_is_not_ready),
		UNIT(over_the_connection_limit_only_health_is_answered),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
