/* SPDX-License-Identifier: Apache-2.0 */
#include "api_fixture.h"

#include "base/clock.h"
#include <jansson.h>
#include <time.h>

/* Sessions over a socket. */

static int set_up(void **state)
{
	struct http_server_config http = {.max_connections = 8,
	                                  .max_connections_per_local_peer = 8};

	return open_api(state, &http);
}

/* @headers: whole lines, or "". @body NULL: none. */
static int ask(struct fixture *f, const char *line, const char *headers, const char *body)
{
	cleanup_free char *text = xasprintf(
		"%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%sContent-Length: %zu\r\n"
		"\r\n%s",
		line, headers, body ? "Content-Type: application/json\r\n" : "",
		body ? strlen(body) : 0, body ? body : "");
	int fd = peer_connect(f->port);

	assert_true(peer_say(f->loop, fd, text));
	return fd;
}

/* The whole answer to a request; its body, parsed, is owned. */
static json_t *get(struct fixture *f, const char *line, const char *body, int *ret_status)
{
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = ask(f, line, "", body);
	const char *text;
	json_t *j;

	assert_true(peer_read(f->loop, fd, &b, NULL));
	assert_int_equal(sscanf(b.data, "HTTP/1.1 %d", ret_status), 1);
	text = strstr(b.data, "\r\n\r\n");
	assert_non_null(text);
	j = json_loads(text + 4, 0, NULL);
	if (!j)
		fail_msg("'%s' is not JSON", text);
	return j;
}

static const char *member(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "(none)";
}

static void expect(struct fixture *f, const char *line, const char *body, int status,
                   const char *key, const char *value)
{
	int got = 0;
	json_t *j = get(f, line, body, &got);

	if (got != status || !str_equal(member(j, key), value))
		fail_msg("to '%s' came %d with %s '%s'", line, got, key, member(j, key));
	json_decref(j);
}

/* Its box is not ready yet: what is executed waits. */
static void make_session(struct fixture *f)
{
	expect(f, "POST /api/v1/sessions", "{\"id\":\"s1\",\"mode\":\"persistent\"}", 201,
	       "session_id", "s1");
}

static struct session_info info_of(struct fixture *f)
{
	struct session *session = session_find(f->sessions, TENANT_DEFAULT, "s1");
	struct session_info info = {0};

	assert_non_null(session);
	session_info(session, &info);
	return info;
}

static size_t count_executions(struct fixture *f)
{
	return run_records_count_of(f->executions, TENANT_DEFAULT, "s1");
}

static struct run_record_info latest_of(struct fixture *f)
{
	struct run_record *record = run_records_of(f->executions, TENANT_DEFAULT, "s1", 0);
	struct run_record_info info = {0};

	assert_non_null(record);
	run_record_info(record, &info);
	return info;
}

static bool has_execution(void *ctx)
{
	return count_executions(ctx) > 0;
}

static void a_session_is_encoded_with_the_keys_of_both_dialects(void **state)
{
	static const char *const strings[][2] = {
		{"session_id", "s1"},      {"id", "s1"},
		{"status", "creating"},    {"mode", "persistent"},
		{"agent_id", "bob"},       {"runtime_type", "fake"},
		{"runtime_node", "local"}, {"workspace_path", "/workspace"},
		{"language", "shell"},     {"language_runtime", "shell"},
	};
	struct fixture *f = *state;
	int status = 0;
	json_t *j = get(f, "POST /api/v1/sessions",
	                "{\"id\":\"s1\",\"mode\":\"persistent\",\"agent_id\":\"bob\","
	                "\"language\":\"shell\",\"timeout\":60,\"lifetime\":61.5,"
	                "\"env_vars\":{\"A\":\"x=y\"}}",
	                &status);
	struct session_info info = info_of(f);
	time_t seconds = (time_t)(info.created_ms / 1000);
	char text[32], moment[64];
	struct tm tm;

	assert_int_equal(status, 201);
	assert_non_null(gmtime_r(&seconds, &tm));
	assert_true(strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) > 0);
	(void)snprintf(moment, sizeof(moment), "%s.%03uZ", text,
	               (unsigned)(info.created_ms % 1000));
	assert_string_equal(member(j, "created_at"), moment);
	assert_string_equal(member(j, "container_id"), info.box_id);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		assert_string_equal(member(j, strings[i][0]), strings[i][1]);
	assert_true(json_is_null(json_object_get(j, "pod_name")));
	assert_true(json_is_null(json_object_get(j, "completed_at")));
	assert_int_equal(json_integer_value(json_object_get(j, "timeout")), 60);
	assert_true(json_real_value(json_object_get(j, "lifetime")) == 61.5);
	assert_string_equal(member(json_object_get(j, "env_vars"), "A"), "x=y");
	assert_string_equal(member(json_object_get(j, "resources"), "memory"), "512Mi");
	assert_string_equal(member(json_object_get(j, "resource_limit"), "disk"), "256Mi");
	json_decref(j);
}

static void an_existing_session_is_not_created_again(void **state)
{
	struct fixture *f = *state;

	expect(f, "POST /api/v1/sessions",
	       "{\"id\":\"s1\",\"mode\":\"persistent\",\"agent_id\":\"bob\"}", 201, "session_id",
	       "s1");
	fake_ready(box_of(f));
	expect(f, "POST /api/v1/sessions",
	       "{\"id\":\"s1\",\"mode\":\"persistent\",\"agent_id\":\"bob\"}", 200, "session_id",
	       "s1");
	expect(f, "POST /api/v1/sessions", "{\"id\":\"s1\"}", 409, "error_code",
	       "Sandbox.StateConflict");
}

#define TOO_LONG "a2345678901234567890123456789012345678901234567890123456789012345"

/* "METHOD before" + id + "after" */
struct with_id {
	const char *before, *after;
};

static void expect_unknown(struct fixture *f, const struct with_id *w, const char *id,
                           const char *code)
{
	char line[256];

	(void)snprintf(line, sizeof(line), "%s%s%s", w->before, id, w->after);
	expect(f, line, NULL, 404, "error_code", code);
	expect(f, line, NULL, 404, "field", "(none)");
}

static void unknown_and_malformed_ids_get_the_same_error(void **state)
{
	static const struct with_id sessions[] = {
		{"GET /api/v1/sessions/", ""},
		{"DELETE /api/v1/sessions/", ""},
		{"POST /api/v1/sessions/", "/terminate"},
		{"POST /api/v1/sessions/", "/pause"},
		{"POST /api/v1/sessions/", "/resume"},
		{"POST /api/v1/sessions/", "/interrupt"},
		{"POST /api/v1/sessions/", "/keepalive"},
		{"GET /api/v1/sessions/", "/stats"},
		{"GET /api/v1/sessions/", "/executions"},
		{"GET /api/v1/sessions/", "/status"},
		{"GET /api/v1/sessions/", "/result"},
		{"GET /api/v1/executions/sessions/", "/executions"},
	};
	static const struct with_id executions[] = {
		{"GET /api/v1/executions/", ""},         {"GET /api/v1/executions/", "/status"},
		{"GET /api/v1/executions/", "/result"},  {"GET /api/v1/executions/", "/events"},
		{"POST /api/v1/executions/", "/cancel"},
	};
	static const char *const ids[] = {"s2", "a%20b", "%2e%2e", "s1x", TOO_LONG};
	struct fixture *f = *state;

	make_session(f);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(sessions); j++)
			expect_unknown(f, &sessions[j], ids[i], "Sandbox.SessionNotFound");
		for (size_t j = 0; j < ARRAY_SIZE(executions); j++)
			expect_unknown(f, &executions[j], ids[i], "Sandbox.ExecutionNotFound");
	}
	expect(f, "POST /api/v1/sessions/s2/execute", "{\"code\":\"x\"}", 404, "error_code",
	       "Sandbox.SessionNotFound");
	expect(f, "POST /api/v1/executions/e/stdin", "{\"data\":\"x\"}", 404, "error_code",
	       "Sandbox.ExecutionNotFound");
	expect(f, "GET /api/v1/sessions/s1/status", NULL, 404, "error_code",
	       "Sandbox.ExecutionNotFound");
}

#define ACTION(name) "POST /api/v1/sessions/s1/" name
#define CONFLICT     409, "error_code", "Sandbox.StateConflict"

static void expect_done(struct fixture *f, const char *line, const char *body)
{
	expect(f, line, "{\"force\":1}", 400, "field", "force");
	expect(f, line, body, 200, "session_id", "s1");
}

static void pause_and_resume_reach_the_box(void **state)
{
	static const char *const bodies[] = {NULL, "{}"};
	struct fixture *f = *state;

	make_session(f);
	expect(f, ACTION("pause"), NULL, CONFLICT);
	fake_ready(box_of(f));
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		expect_done(f, ACTION("pause"), bodies[i]);
		assert_true(fake_is_frozen(box_of(f)));
		expect(f, ACTION("pause"), NULL, CONFLICT);
		expect_done(f, ACTION("resume"), bodies[i]);
		assert_false(fake_is_frozen(box_of(f)));
		expect(f, ACTION("resume"), NULL, CONFLICT);
	}
}

static void interrupt_reaches_the_program(void **state)
{
	struct fixture *f = *state;
	const struct fake_exec *run;

	make_session(f);
	fake_ready(box_of(f));
	expect(f, ACTION("interrupt"), NULL, CONFLICT);
	expect(f, "POST /api/v1/sessions/s1/execute", "{\"code\":\"1\"}", 200, "status", "pending");
	run = begin_run(f);
	expect_done(f, ACTION("interrupt"), NULL);
	expect_done(f, ACTION("interrupt"), "{}");
	assert_ptr_equal(fake_exec_last(box_of(f)), run);
	/* The fake agent has not read the first: the second would be the same. */
	assert_int_equal(run->signals, 1);
	assert_int_equal(run->signo, SIGINT);
}

static void keepalive_and_the_end_reach_the_session(void **state)
{
	static const char *const bodies[] = {NULL, "{}"};
	struct fixture *f = *state;

	make_session(f);
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		uint64_t before = info_of(f).last_activity_ms;

		while (clock_real_ms() <= before)
			peer_turn(f->loop);
		expect_done(f, ACTION("keepalive"), bodies[i]);
		assert_true(info_of(f).last_activity_ms > before);
	}
	expect(f, ACTION("terminate"), NULL, 200, "status", "terminated");
	expect(f, ACTION("terminate"), NULL, 200, "status", "terminated");
	expect(f, ACTION("keepalive"), NULL, CONFLICT);
	expect(f, "DELETE /api/v1/sessions/s1", NULL, 200, "message", "The session is deleted.");
	expect(f, "GET /api/v1/sessions/s1", NULL, 404, "error_code", "Sandbox.SessionNotFound");
}

static void unknown_counters_are_null(void **state)
{
	struct fixture *f = *state;
	int status = 0;
	json_t *j;

	make_session(f);
	fake_set_counters(box_of(f), &(struct box_counters){.memory_bytes = 1u << 20,
	                                                    .memory_peak_bytes = 2u << 20,
	                                                    .cpu_us = 1500,
	                                                    .oom_kills = COUNTER_UNKNOWN,
	                                                    .pids_peak = 3,
	                                                    .pids_denied = COUNTER_UNKNOWN});
	j = get(f, "GET /api/v1/sessions/s1/stats", NULL, &status);
	assert_int_equal(status, 200);
	assert_true(json_real_value(json_object_get(j, "cpu_time_ms")) == 1.5);
	assert_true(json_real_value(json_object_get(j, "memory_mb")) == 1);
	assert_true(json_is_null(json_object_get(j, "oom_kills")));
	assert_int_equal(json_integer_value(json_object_get(j, "processes_peak")), 3);
	json_decref(j);
}

static void check_page(struct fixture *f, const char *line, size_t items, int total, int limit)
{
	int status = 0;
	json_t *j = get(f, line, NULL, &status);

	if (status != 200 || json_array_size(json_object_get(j, "items")) != items ||
	    json_integer_value(json_object_get(j, "total")) != total ||
	    json_integer_value(json_object_get(j, "limit")) != limit)
		fail_msg("'%s' gave %d: %s", line, status, json_dumps(j, 0));
	json_decref(j);
}

static void lists_come_in_pages(void **state)
{
	struct fixture *f = *state;

	check_page(f, "GET /api/v1/sessions", 0, 0, 50);
	make_session(f);
	check_page(f, "GET /api/v1/sessions", 1, 1, 50);
	check_page(f, "GET /api/v1/sessions?limit=300", 1, 1, 200);
	check_page(f, "GET /api/v1/sessions?limit=1&offset=1", 0, 1, 1);
	check_page(f, "GET /api/v1/sessions?status=creating", 1, 1, 50);
	check_page(f, "GET /api/v1/sessions?status=paused", 0, 0, 50);
	check_page(f, "GET /api/v1/sessions?offset=1073741824", 0, 1, 50);
	expect(f, "GET /api/v1/sessions?limit=0", NULL, 400, "field", "limit");
	expect(f, "GET /api/v1/sessions?limit=-1", NULL, 400, "field", "limit");
	expect(f, "GET /api/v1/sessions?limit=x", NULL, 400, "field", "limit");
	expect(f, "GET /api/v1/sessions?offset=1073741825", NULL, 400, "field", "offset");
	expect(f, "GET /api/v1/sessions?status=sleeping", NULL, 400, "field", "status");
}

/* An item of a page is brief: a page of them could be as large as all outputs together. */
static void expect_brief(const json_t *item, const char *id, const char *status)
{
	assert_string_equal(member(item, "execution_id"), id);
	assert_string_equal(member(item, "status"), status);
	assert_true(json_is_null(json_object_get(item, "code")));
	assert_true(json_is_null(json_object_get(item, "stdout")));
	assert_true(json_is_null(json_object_get(item, "error")));
	assert_int_equal(json_array_size(json_object_get(item, "results")), 0);
}

static void executions_come_in_pages_newest_first(void **state)
{
	struct fixture *f = *state;
	char first[64] = "", latest[64] = "";
	int status = 0;
	json_t *j;

	make_session(f);
	for (int i = 0; i < 5; i++) {
		char body[32];

		(void)snprintf(body, sizeof(body), "{\"code\":\"%d\"}", i);
		expect(f, "POST /api/v1/sessions/s1/execute", body, 200, "status", "pending");
		assert_int_equal(str_copy(latest, sizeof(latest), latest_of(f).id), 0);
		if (i == 0)
			memcpy(first, latest, sizeof(first));
	}
	fake_ready(box_of(f));
	greet_and_end(f, begin_run(f));
	check_page(f, "GET /api/v1/sessions/s1/executions?limit=2", 2, 5, 2);
	check_page(f, "GET /api/v1/executions/sessions/s1/executions?offset=4", 1, 5, 50);
	check_page(f, "GET /api/v1/sessions/s1/executions?status=pending&limit=3", 3, 4, 3);
	check_page(f, "GET /api/v1/sessions/s1/executions?status=success", 1, 1, 50);
	expect(f, "GET /api/v1/sessions/s1/executions?status=ready", NULL, 400, "field", "status");
	j = get(f, "GET /api/v1/sessions/s1/executions?limit=1", NULL, &status);
	expect_brief(json_array_get(json_object_get(j, "executions"), 0), latest, "pending");
	assert_true(json_is_true(json_object_get(j, "has_more")));
	json_decref(j);
	j = get(f, "GET /api/v1/sessions/s1/executions?offset=4", NULL, &status);
	expect_brief(json_array_get(json_object_get(j, "executions"), 0), first, "success");
	json_decref(j);
}

static void an_execution_is_answered_before_it_runs(void **state)
{
	struct fixture *f = *state;
	const struct fake_exec *run;
	char id[64], line[128];
	int status = 0;
	json_t *j;

	make_session(f);
	j = get(f, "POST /api/v1/sessions/s1/execute",
	        "{\"code\":\"1\",\"stdin\":\"in\",\"stdin_open\":true,\"timeout\":7}", &status);
	assert_int_equal(status, 200);
	assert_string_equal(member(j, "status"), "pending");
	assert_string_equal(member(j, "session_id"), "s1");
	assert_int_equal(str_copy(id, sizeof(id), member(j, "execution_id")), 0);
	json_decref(j);
	assert_string_equal(latest_of(f).language, "python");
	assert_int_equal(latest_of(f).timeout_us, 7000000);

	(void)snprintf(line, sizeof(line), "GET /api/v1/executions/%s/result", id);
	expect(f, line, NULL, 409, "error_code", "Sandbox.StateConflict");
	expect(f, "GET /api/v1/sessions/s1/result", NULL, 409, "error_code",
	       "Sandbox.StateConflict");
	fake_ready(box_of(f));
	run = begin_run(f);
	assert_string_equal(code_of(run), "1");
	assert_string_equal(run->stdin_data, "in");
	assert_true(run->stdin_open);
	expect(f, "GET /api/v1/sessions/s1/status", NULL, 200, "status", "running");
	greet_and_end(f, run);
	expect(f, line, NULL, 200, "stdout", "hi");
	expect(f, line, NULL, 200, "session_id", "s1");
	expect(f, line, NULL, 200, "id", id);
	expect(f, "GET /api/v1/sessions/s1/result", NULL, 200, "execution_id", id);
	expect(f, "POST /api/v1/executions/sessions/s1/execute",
	       "{\"code\":\"1\",\"language\":\"python\"}", 201, "status", "pending");
}

static void an_execution_that_could_not_run_has_crashed(void **state)
{
	struct fixture *f = *state;
	struct error failure = {0};

	make_session(f);
	expect(f, "POST /api/v1/sessions/s1/execute", "{\"code\":\"1\"}", 200, "status", "pending");
	(void)error_set(&failure, ERR_BOX_FAILED, 0, "secret words of the host");
	fake_lost(box_of(f), &failure);
	expect(f, "GET /api/v1/sessions/s1/result", NULL, 200, "status", "crashed");
	expect(f, "GET /api/v1/sessions/s1/result", NULL, 200, "error_message",
	       "Sandbox.ExecException");
}

static int post_code(struct fixture *f, const char *headers, const char *body)
{
	int fd = ask(f, "POST /api/v1/sessions/s1/execute", headers, body);

	peer_wait(f->loop, has_execution, f);
	return fd;
}

static void a_waiting_client_gets_the_result(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = -1;

	make_session(f);
	fd = post_code(f, "", "{\"code\":\"1\",\"wait\":true}");
	fake_ready(box_of(f));
	greet_and_end(f, begin_run(f));
	assert_true(peer_read(f->loop, fd, &b, NULL));
	assert_non_null(strstr(b.data, " 200 "));
	assert_non_null(strstr(b.data, "\"stdout\":\"hi\""));
	assert_non_null(strstr(b.data, "\"session_reset\":false"));
}

static void a_waiting_client_gets_the_error_of_a_failed_start(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	struct error failure = {0};
	cleanup_close int fd = -1;

	make_session(f);
	fd = post_code(f, "", "{\"code\":\"1\",\"wait\":true}");
	(void)error_set(&failure, ERR_AGENT_LOST, 0, "secret words of the host");
	fake_lost(box_of(f), &failure);
	assert_true(peer_read(f->loop, fd, &b, NULL));
	assert_non_null(strstr(b.data, " 503 "));
	assert_null(strstr(b.data, "secret"));
}

static void a_stream_sends_its_id_at_once_and_numbers_its_events(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = -1;
	const struct fake_exec *run;

	make_session(f);
	fd = post_code(f, "Accept: application/x-ndjson\r\n", "{\"code\":\"1\"}");
	assert_true(peer_read(f->loop, fd, &b, "{\"event\":\"pending\",\"execution_id\":\""));
	fake_ready(box_of(f));
	run = begin_run(f);
	assert_true(peer_read(f->loop, fd, &b, "{\"event\":\"start\",\"id\":1,"));
	print(f, run, OUTPUT_STDOUT, "a\xe2\x82");
	assert_true(peer_read(f->loop, fd, &b, "{\"event\":\"stdout\",\"id\":2,\"data\":\"a\"}\n"));
	print(f, run, OUTPUT_STDERR, "e");
	assert_true(peer_read(f->loop, fd, &b, "{\"event\":\"stderr\",\"id\":3,\"data\":\"e\"}\n"));
	end_run(f, run);
	assert_true(peer_read(f->loop, fd, &b, "\r\n0\r\n\r\n"));
	/* The rest of a character has no number of its own. */
	assert_non_null(strstr(
		b.data, "{\"event\":\"stdout\",\"data\":\"\xef\xbf\xbd\",\"base64\":\"4oI=\"}\n"));
	assert_non_null(strstr(b.data, "{\"event\":\"end\",\"id\":4,\"result\":{"));
}

/* The events of the latest execution from @query on. */
static char *events(struct fixture *f, const char *query, const char *headers)
{
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	char line[128];
	cleanup_close int fd = -1;
	size_t len;

	(void)snprintf(line, sizeof(line), "GET /api/v1/executions/%s/events%s", latest_of(f).id,
	               query);
	fd = ask(f, line, headers, NULL);
	assert_true(peer_read(f->loop, fd, &b, NULL));
	return buf_take(&b, &len);
}

static void a_returning_client_gets_the_rest_in_whole_characters(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *all = NULL, *some = NULL, *last = NULL, *none = NULL, *bad = NULL;
	const struct fake_exec *run;

	make_session(f);
	expect(f, "POST /api/v1/sessions/s1/execute", "{\"code\":\"1\"}", 200, "status", "pending");
	fake_ready(box_of(f));
	run = begin_run(f);
	print(f, run, OUTPUT_STDOUT, "a\xe2");
	print(f, run, OUTPUT_STDERR, "e");
	print(f, run, OUTPUT_STDOUT, "\x82\xac");
	end_run(f, run);
	all = events(f, "", "");
	assert_non_null(strstr(all, "\"id\":1,"));
	assert_non_null(strstr(all, "\"data\":\"a\""));
	some = events(f, "?after=2", "");
	assert_null(strstr(some, "\"event\":\"start\""));
	assert_null(strstr(some, "\"data\":\"a\""));
	assert_non_null(strstr(some, "\"id\":4,\"data\":\"\xe2\x82\xac\""));
	assert_non_null(strstr(some, "{\"event\":\"end\",\"id\":5,"));
	last = events(f, "", "Accept: text/event-stream\r\nLast-Event-ID: 4\r\n");
	assert_null(strstr(last, "id: 4\n"));
	assert_non_null(strstr(last, "id: 5\nevent: end\ndata: {\"event\":\"end\""));
	none = events(f, "?after=5", "");
	assert_null(strstr(none, "\"event\""));
	bad = events(f, "?after=x", "");
	assert_non_null(strstr(bad, " 400 "));
	assert_non_null(strstr(bad, "\"field\":\"after\""));
}

static bool nobody_is_connected(void *ctx)
{
	return http_server_connections(((struct fixture *)ctx)->server) == 0;
}

static bool has_two_executions(void *ctx)
{
	return count_executions(ctx) == 2;
}

static void a_client_that_leaves_does_not_end_its_execution(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	const struct fake_exec *run;
	int fd;

	make_session(f);
	fake_ready(box_of(f));
	fd = post_code(f, "Accept: text/event-stream\r\n", "{\"code\":\"1\"}");
	run = begin_run(f);
	assert_true(peer_read(f->loop, fd, &b, "event: start"));
	fd_close(fd);
	peer_wait(f->loop, nobody_is_connected, f);
	fd = ask(f, "POST /api/v1/sessions/s1/execute", "", "{\"code\":\"2\",\"wait\":true}");
	peer_wait(f->loop, has_two_executions, f);
	fd_close(fd);
	peer_wait(f->loop, nobody_is_connected, f);
	assert_ptr_equal(fake_exec_last(box_of(f)), run);
	assert_int_equal(run->signals, 0);
	end_run(f, run); /* no callback is left, and nothing breaks */
	run = begin_run(f);
	assert_string_equal(code_of(run), "2");
	greet_and_end(f, run);
	assert_int_equal(run->signals, 0);
	expect(f, "GET /api/v1/sessions/s1/result", NULL, 200, "stdout", "hi");
}

static bool one_is_connected(void *ctx)
{
	return http_server_connections(((struct fixture *)ctx)->server) == 1;
}

static void a_stream_that_was_left_is_cleaned_up_beside_an_older_connection(void **state)
{
	static const char health[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
	static const char run[] = "POST /api/v1/sessions/s1/execute HTTP/1.1\r\nHost: localhost\r\n"
				  "Content-Type: application/json\r\nContent-Length: 26\r\n\r\n"
				  "{\"code\":\"1\",\"stream\":true}";
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX), older = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int first = -1;
	int fd;

	make_session(f);
	peer_wait(f->loop, nobody_is_connected, f);
	first = peer_connect(f->port);
	assert_true(peer_say(f->loop, first, health));
	assert_true(peer_read(f->loop, first, &older, "\"ok\""));
	fd = peer_connect(f->port);
	assert_true(peer_say(f->loop, fd, run));
	assert_true(peer_read(f->loop, fd, &b, "pending"));
	fd_close(fd);
	peer_wait(f->loop, one_is_connected, f);
}

static void cancel_and_input_reach_the_execution(void **state)
{
	struct fixture *f = *state;
	const struct fake_exec *run;
	char cancel[128], input[128];

	make_session(f);
	fake_ready(box_of(f));
	expect(f, "POST /api/v1/sessions/s1/execute", "{\"code\":\"1\",\"stdin_open\":true}", 200,
	       "status", "pending");
	run = begin_run(f);
	(void)snprintf(cancel, sizeof(cancel), "POST /api/v1/executions/%s/cancel",
	               latest_of(f).id);
	(void)snprintf(input, sizeof(input), "POST /api/v1/executions/%s/stdin", latest_of(f).id);
	expect(f, input, "{\"data\":\"abc\",\"end\":true}", 200, "status", "running");
	assert_ptr_equal(fake_exec_last(box_of(f)), run);
	assert_string_equal(run->stdin_data, "abc");
	assert_false(run->stdin_open);
	expect(f, input, "{}", 400, "field", "data");
	assert_int_equal(run->signals, 0);
	expect(f, cancel, NULL, 200, "status", "running");
	assert_ptr_equal(fake_exec_last(box_of(f)), run);
	assert_int_equal(run->signals, 1);
	end_run(f, run);
	expect(f, cancel, NULL, 409, "error_code", "Sandbox.StateConflict");
	expect(f, input, "{\"data\":\"x\"}", 409, "error_code", "Sandbox.StateConflict");
}

static void the_wait_is_limited(void **state)
{
#define SYNC "POST /api/v1/executions/sessions/s1/execute-sync"
	struct fixture *f = *state;

	make_session(f);
	expect(f, SYNC "?sync_timeout=9", "{\"code\":\"1\"}", 422, "field", "sync_timeout");
	expect(f, SYNC "?sync_timeout=3601", "{\"code\":\"1\"}", 422, "field", "sync_timeout");
	expect(f, SYNC "?sync_timeout=10s", "{\"code\":\"1\"}", 422, "field", "sync_timeout");
	expect(f, SYNC "?poll_interval=0.05", "{\"code\":\"1\"}", 422, "field", "poll_interval");
	expect(f, SYNC "?poll_interval=11", "{\"code\":\"1\"}", 422, "field", "poll_interval");
	assert_int_equal(count_executions(f), 0); /* nothing was begun */
}

static void a_deleted_session_ends_its_streams(void **state)
{
	struct fixture *f = *state;
	cleanup_buf struct buf b = BUF_INIT(PEER_BUF_MAX);
	cleanup_close int fd = -1;

	make_session(f);
	fd = post_code(f, "Accept: application/x-ndjson\r\n", "{\"code\":\"1\"}");
	fake_ready(box_of(f));
	(void)begin_run(f);
	assert_true(peer_read(f->loop, fd, &b, "\"start\""));
	expect(f, "DELETE /api/v1/sessions/s1", NULL, 200, "session_id", "s1");
	assert_true(peer_read(f->loop, fd, &b, NULL));
}

static void wrong_bodies_start_nothing(void **state)
{
	struct fixture *f = *state;

	make_session(f);
	expect(f, "POST /api/v1/sessions/s1/execute", "{}", 400, "field", "code");
	expect(f, "POST /api/v1/sessions/s1/execute", "{\"code\":\"1\",\"wait\":1}", 400, "field",
	       "wait");
	expect(f, "POST /api/v1/sessions/s1/execute", NULL, 415, "error_code",
	       "Sandbox.UnsupportedMediaType");
	expect(f, "PUT /api/v1/sessions/s1", NULL, 405, "error_code", "Sandbox.MethodNotAllowed");
	assert_int_equal(count_executions(f), 0);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, close_api)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_session_is_encoded_with_the_keys_of_both_dialects),
		UNIT(an_existing_session_is_not_created_again),
		UNIT(unknown_and_malformed_ids_get_the_same_error),
		UNIT(pause_and_resume_reach_the_box),
		UNIT(interrupt_reaches_the_program),
		UNIT(keepalive_and_the_end_reach_the_session),
		UNIT(unknown_counters_are_null),
		UNIT(lists_come_in_pages),
		UNIT(executions_come_in_pages_newest_first),
		UNIT(an_execution_is_answered_before_it_runs),
		UNIT(an_execution_that_could_not_run_has_crashed),
		UNIT(a_waiting_client_gets_the_result),
		UNIT(a_waiting_client_gets_the_error_of_a_failed_start),
		UNIT(a_stream_sends_its_id_at_once_and_numbers_its_events),
		UNIT(a_returning_client_gets_the_rest_in_whole_characters),
		UNIT(a_client_that_leaves_does_not_end_its_execution),
		UNIT(a_stream_that_was_left_is_cleaned_up_beside_an_older_connection),
		UNIT(cancel_and_input_reach_the_execution),
		UNIT(the_wait_is_limited),
		UNIT(a_deleted_session_ends_its_streams),
		UNIT(wrong_bodies_start_nothing),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
