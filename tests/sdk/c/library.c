/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of millibox.h against a real daemon. Usage: library CASE. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <errno.h>
#include <pthread.h>

static void run_with_everything(void)
{
	static const char code[] =
		"import sys, os\n"
		"print(sys.argv[1:], sys.stdin.buffer.read(), os.environ['NAME'])\n"
		"print(open('a.b.txt').read(), open('raw', 'rb').read(), file=sys.stderr)\n"
		"sys.exit(3)\n";
	struct millibox_request *request = millibox_request_new(NULL);
	struct millibox_result *result = NULL;
	size_t len = 0;

	CHECK(millibox_request_set_bytes(request, "code", code, sizeof(code) - 1) == 0);
	CHECK(millibox_request_set(request, "language", "python") == 0);
	CHECK(millibox_request_set_bytes(request, "stdin", "a\0\xff", 3) == 0);
	CHECK(millibox_request_add(request, "args", "one") == 0);
	CHECK(millibox_request_add(request, "args", "two words") == 0);
	CHECK(millibox_request_put(request, "env_vars", "NAME", "value") == 0);
	CHECK(millibox_request_put(request, "files", "a.b.txt", "text") == 0);
	CHECK(millibox_request_put_bytes(request, "files", "raw", "\0\x80", 2) == 0);
	CHECK(millibox_request_set_number(request, "timeout", 10.5) == 0);
	CHECK(millibox_request_set(request, "resources.memory", "64Mi") == 0);
	CHECK(millibox_request_set_number(request, "resources.max_processes", 16) == 0);
	CHECK(millibox_request_set(request, "network", "none") == 0);
	for (int again = 0; again < 2; again++) {
		CHECK(millibox_run(client, request, &result) == 0);
		CHECK(!millibox_result_ok(result) && millibox_result_exit_code(result) == 3);
		SAME(millibox_result_status(result), "failed");
		SAME(millibox_result_stdout(result, &len),
		     "['one', 'two words'] b'a\\x00\\xff' value\n");
		CHECK(len == strlen(millibox_result_stdout(result, NULL)));
		SAME(millibox_result_stderr(result, &len), "text b'\\x00\\x80'\n");
		CHECK(len == strlen("text b'\\x00\\x80'\n"));
		SAME(millibox_result_text(result), millibox_result_stdout(result, NULL));
		HAS(millibox_result_execution_id(result), "exec_");
		HAS(millibox_result_json(result), "\"exit_code\": 3");
		CHECK(millibox_result_json(result) == millibox_result_json(result));
		CHECK(millibox_result_limit(result) == NULL &&
		      millibox_result_value(result) == NULL);
		CHECK(millibox_result_data(result, "image/png", NULL) == NULL);
		CHECK(millibox_result_warning(result, 0) == NULL &&
		      !millibox_result_warning(NULL, 0));
		CHECK(millibox_error_code(client)[0] == '\0' &&
		      millibox_error_message(client)[0] == '\0');
		millibox_result_free(result);
	}
	millibox_request_free(request);
}

static void call_a_handler(void)
{
	struct millibox_request *request = millibox_request_new(NULL);
	struct millibox_result *result = NULL;

	CHECK(millibox_request_set(request, "handler_code",
	                           "def handler(event, context): return {'n': event['n'] + 1}") ==
	      0);
	CHECK(millibox_request_set_json(request, "event", "{\"n\": 41}") == 0);
	CHECK(millibox_run(client, request, &result) == 0);
	SAME(millibox_result_value(result), "{\"n\": 42}");
	millibox_result_free(result);
	millibox_request_free(request);
}

static void results(void)
{
	static const char figure[] =
		"class F:\n"
		"    def _repr_png_(self): return b'\\x89PNG\\0' + bytes(range(256))\n"
		"    def _repr_html_(self): return '<b>F</b>'\n"
		"F()\n";
	struct millibox_session *session = new_session();
	struct millibox_request *request = python("import time; time.sleep(60)");
	struct millibox_result *result;
	const unsigned char *data;
	size_t len = 0;

	result = run_in(session, figure);
	data = millibox_result_data(result, "image/png", &len);
	CHECK(data && len == 5 + 256 && memcmp(data, "\x89PNG\0\0\1\2", 8) == 0 &&
	      data[len - 1] == 255);
	CHECK(data == millibox_result_data(result, "image/png", NULL));
	SAME(millibox_result_data(result, "text/html", &len), "<b>F</b>");
	CHECK(len == 8);
	millibox_result_free(result);
	result = run_in(session, "1 / 0");
	SAME(millibox_result_error(result), "ZeroDivisionError: division by zero");
	CHECK(millibox_result_exit_code(result) == 1 && !millibox_result_ok(result));
	millibox_result_free(result);
	result = run_in(session, "{'a': [1, 2]}");
	SAME(millibox_result_value(result), "{\"a\": [1, 2]}");
	SAME(millibox_result_text(result), "{'a': [1, 2]}");
	CHECK(millibox_result_error(result) == NULL && millibox_result_ok(result));
	millibox_result_free(result);
	end_session(session);
	CHECK(millibox_request_set_number(request, "timeout", 0.2) == 0);
	CHECK(millibox_run(client, request, &result) == 0);
	SAME(millibox_result_status(result), "timeout");
	SAME(millibox_result_limit(result), "time");
	millibox_result_free(result);
	millibox_request_free(request);
	request = python("import ctypes; ctypes.CDLL(None).unshare(0x10000000)");
	CHECK(millibox_run(client, request, &result) == 0);
	CHECK(millibox_result_denials(result) == 1);
	HAS(millibox_result_denial(result, 0), "unshare");
	CHECK(millibox_result_denial(result, 1) == NULL);
	millibox_result_free(result);
	millibox_request_free(request);
	call_a_handler();
}

struct seen {
	char out[64], err[64], start[64], value[256];
	size_t out_len, err_len;
	int stop;
};

static int on_output(void *ctx, enum millibox_stream stream, const char *data, size_t len)
{
	struct seen *seen = ctx;
	char *place = stream == MILLIBOX_STDOUT ? seen->out : seen->err;
	size_t *used = stream == MILLIBOX_STDOUT ? &seen->out_len : &seen->err_len;

	CHECK(*used + len < sizeof(seen->out));
	memcpy(place + *used, data, len);
	*used += len;
	return seen->stop;
}

static int on_start(void *ctx, const char *id)
{
	struct seen *seen = ctx;

	CHECK(strlen(id) < sizeof(seen->start));
	memcpy(seen->start, id, strlen(id) + 1);
	return 0;
}

static int on_value(void *ctx, const char *json)
{
	struct seen *seen = ctx;

	CHECK(strlen(json) < sizeof(seen->value));
	memcpy(seen->value, json, strlen(json) + 1);
	return 0;
}

static struct millibox_request *watched(const char *code, struct seen *seen)
{
	struct millibox_request *request = python(code);

	memset(seen, 0, sizeof(*seen));
	CHECK(millibox_request_on_output(request, on_output, seen) == 0);
	CHECK(millibox_request_on_start(request, on_start, seen) == 0);
	CHECK(millibox_request_on_value(request, on_value, seen) == 0);
	return request;
}

static void streams(void)
{
	static const char code[] = "import sys\n"
				   "sys.stdout.buffer.write(b'a\\xff\\0z'); sys.stdout.flush()\n"
				   "print('e', file=sys.stderr)\n"
				   "'the end'";
	struct millibox_session *session = new_session();
	struct millibox_result *result = NULL;
	struct seen seen;
	struct millibox_request *request = watched(code, &seen);

	CHECK(millibox_session_run(session, request, &result) == 0);
	CHECK(seen.out_len == 4 && memcmp(seen.out, "a\xff\0z", 4) == 0);
	CHECK(seen.err_len == 2 && memcmp(seen.err, "e\n", 2) == 0);
	SAME(seen.start, millibox_result_execution_id(result));
	HAS(seen.value, "text/plain");
	HAS(seen.value, "the end");
	millibox_result_free(result);
	memset(&seen, 0, sizeof(seen));
	CHECK(millibox_run(client, request, &result) == 0);
	CHECK(seen.out_len == 4);
	millibox_result_free(result);
	millibox_request_free(request);
	/* A callback ends the program, and the session goes on. */
	request = watched("print('x', flush=True)\nwhile True: pass", &seen);
	seen.stop = 1;
	result = NULL;
	CHECK(millibox_session_run(session, request, &result) == -1 && !result);
	CHECK(millibox_error_errno(client) == ECANCELED);
	memset(&seen, 0, sizeof(seen));
	seen.stop = 1;
	CHECK(millibox_run(client, request, &result) == -1 &&
	      millibox_error_errno(client) == ECANCELED);
	millibox_request_free(request);
	expect(session, "6 * 7", "42");
	end_session(session);
}

static void *interrupt_it(void *id)
{
	struct millibox_client *other = millibox_client_new();
	struct millibox_session *session = NULL;

	if (millibox_session_attach(other, id, &session) < 0 ||
	    millibox_session_interrupt(session) < 0)
		abort();
	millibox_session_free(session);
	millibox_client_free(other);
	return NULL;
}

struct started {
	pthread_t thread;
	void *(*work)(void *);
	void *ctx;
	int begun;
};

static int start_thread(void *ctx, enum millibox_stream stream, const char *data, size_t len)
{
	struct started *s = ctx;

	(void)stream, (void)data, (void)len;
	if (!s->begun)
		CHECK(pthread_create(&s->thread, NULL, s->work, s->ctx) == 0);
	s->begun = 1;
	return 0;
}

static void sessions(void)
{
	struct millibox_request *request = millibox_request_new(NULL);
	struct millibox_session *session = NULL, *same = NULL;
	struct started started = {.work = interrupt_it};
	struct millibox_result *result = NULL;
	char *info = NULL, id[64];

	CHECK(millibox_request_set(request, "language", "python") == 0);
	CHECK(millibox_request_set(request, "resources.memory", "96Mi") == 0);
	CHECK(millibox_request_set(request, "colour", "red") == 0);
	CHECK(millibox_session_create(client, request, &session) == 0);
	millibox_request_free(request);
	HAS(millibox_session_warning(session, 0), "colour");
	CHECK(millibox_session_warning(session, 1) == NULL && !millibox_session_warning(NULL, 0));
	expect(session, "x = 41; open('kept', 'w').write('1')", "1");
	expect(session, "x + 1", "42");
	CHECK(millibox_session_attach(client, millibox_session_id(session), &same) == 0);
	expect(same, "x", "41");
	millibox_session_free(same);
	CHECK(millibox_session_info(session, &info) == 0);
	HAS(info, "\"mode\": \"persistent\"");
	millibox_free(info);
	CHECK(millibox_session_pause(session) == 0);
	CHECK(millibox_session_info(session, &info) == 0);
	HAS(info, "\"state\": \"paused\"");
	millibox_free(info);
	CHECK(millibox_session_resume(session) == 0);
	/* From another thread, with a client of its own. */
	snprintf(id, sizeof(id), "%s", millibox_session_id(session));
	started.ctx = id;
	request = python("print('on', flush=True)\nwhile True: pass");
	CHECK(millibox_request_on_output(request, start_thread, &started) == 0);
	CHECK(millibox_session_run(session, request, &result) == 0);
	CHECK(pthread_join(started.thread, NULL) == 0);
	HAS(millibox_result_error(result), "KeyboardInterrupt");
	millibox_result_free(result);
	millibox_request_free(request);
	expect(session, "x", "41");
	CHECK(millibox_session_restart(session) == 0);
	expect(session, "('x' in globals(), open('kept').read())", "(False, '1')");
	CHECK(millibox_session_delete(session) == 0);
	CHECK(millibox_session_delete(session) == -1 && millibox_error_status(client) == 404);
	SAME(millibox_error_code(client), "Sandbox.SessionNotFound");
	millibox_session_free(session);
	CHECK(millibox_call(client, "GET", "/api/v1/health", NULL, &info) == 0);
	HAS(info, "status");
	millibox_free(info);
	CHECK(millibox_call(client, "POST", "/api/v1/policy/explain", "{}", NULL) == 0);
	CHECK(millibox_version()[0] != '\0');
}

static void files(void)
{
	struct millibox_session *session = new_session();
	struct millibox_list *list = NULL;
	char *data = NULL;
	size_t len = 0;

	CHECK(millibox_file_write(session, "d/a b?.bin", "a\0b", 3) == 0);
	CHECK(millibox_file_write(session, "empty", NULL, 0) == 0);
	CHECK(millibox_file_read(session, "d/a b?.bin", &data, &len) == 0);
	CHECK(len == 3 && memcmp(data, "a\0b", 4) == 0);
	millibox_free(data);
	CHECK(millibox_file_read(session, "empty", &data, &len) == 0 && len == 0 &&
	      data[0] == '\0');
	millibox_free(data);
	CHECK(millibox_file_mkdir(session, "one/two") == 0);
	CHECK(millibox_file_move(session, "empty", "one/two/full", 0) == 0);
	CHECK(millibox_file_move(session, "d/a b?.bin", "one/two/full", 0) == -1);
	SAME(millibox_error_code(client), "Sandbox.StateConflict");
	CHECK(millibox_file_move(session, "d/a b?.bin", "one/two/full", 1) == 0);
	CHECK(millibox_file_list(session, "", 1, &list) == 0);
	CHECK(millibox_list_count(list) == 4);
	for (size_t i = 0; i < millibox_list_count(list); i++) {
		if (strcmp(millibox_list_path(list, i), "one/two/full") == 0)
			CHECK(millibox_list_size(list, i) == 3 &&
			      strcmp(millibox_list_type(list, i), "file") == 0);
		else
			SAME(millibox_list_type(list, i), "directory");
	}
	CHECK(millibox_list_path(list, 4) == NULL && millibox_list_type(list, 4) == NULL &&
	      millibox_list_size(list, 4) == 0);
	millibox_list_free(list);
	/* More than a page. */
	expect(session,
	       "import os, pathlib; os.mkdir('many'); [pathlib.Path(f'many/{i:04}&').touch() for i "
	       "in range(1234)] and 1",
	       "1");
	CHECK(millibox_file_list(session, "many", 0, &list) == 0);
	CHECK(millibox_list_count(list) == 1234);
	SAME(millibox_list_path(list, 1233), "many/1233&");
	millibox_list_free(list);
	CHECK(millibox_file_remove(session, "one", 0) == -1 &&
	      millibox_error_status(client) >= 400);
	CHECK(millibox_file_remove(session, "one", 1) == 0);
	CHECK(millibox_file_read(session, "one/two/full", &data, &len) == -1);
	SAME(millibox_error_code(client), "Sandbox.FileNotFound");
	CHECK(millibox_file_download(session, "nothing", 1) == -1 &&
	      millibox_error_status(client) == 404);
	/* A session that forbids a mode, a descriptor that cannot be read. */
	CHECK(millibox_file_upload(session, "x", 1000, 0) == -1 &&
	      millibox_error_errno(client) == EBADF);
	CHECK(millibox_file_download(session, "d", 1) == -1 && millibox_error_json(client));
	end_session(session);
}

static void *cancel_it(void *ctx)
{
	millibox_cancel(ctx);
	return NULL;
}

static void cancelling(void)
{
	struct millibox_session *session = new_session();
	struct started started = {.work = cancel_it, .ctx = client};
	struct millibox_request *request = python("print('on', flush=True)\nwhile True: pass");
	struct millibox_result *result = NULL;
	char *id = NULL, *json = NULL, path[128];
	struct seen seen;

	/* Before a call. */
	millibox_cancel(client);
	CHECK(millibox_run(client, request, &result) == -1 &&
	      millibox_error_errno(client) == ECANCELED);
	CHECK(millibox_request_on_output(request, start_thread, &started) == 0);
	CHECK(millibox_run(client, request, &result) == -1 &&
	      millibox_error_errno(client) == ECANCELED);
	CHECK(pthread_join(started.thread, NULL) == 0);
	started.begun = 0;
	memset(&seen, 0, sizeof(seen));
	CHECK(millibox_request_on_start(request, on_start, &seen) == 0);
	CHECK(millibox_session_run(session, request, &result) == -1 &&
	      millibox_error_errno(client) == ECANCELED);
	CHECK(pthread_join(started.thread, NULL) == 0);
	/* The program is dead, the session is not. */
	expect(session, "6 * 7", "42");
	snprintf(path, sizeof(path), "/api/v1/executions/%s", seen.start);
	CHECK(millibox_call(client, "GET", path, NULL, &json) == 0);
	HAS(json, "\"status\": \"cancelled\"");
	millibox_free(json);
	millibox_free(id);
	/* The call gives up; so does the program. */
	CHECK(millibox_request_on_output(request, NULL, NULL) == 0);
	CHECK(millibox_request_deadline(request, 0.3) == 0);
	CHECK(millibox_run(client, request, &result) == -1 &&
	      millibox_error_errno(client) == ETIMEDOUT);
	SAME(millibox_error_code(client), "Sandbox.RequestTimeout");
	CHECK(millibox_session_run(session, request, &result) == -1 &&
	      millibox_error_errno(client) == ETIMEDOUT);
	expect(session, "1 + 1", "2");
	millibox_request_free(request);
	end_session(session);
}

static void wrong_requests(void)
{
	struct millibox_request *request = python("1");
	struct millibox_session *session = NULL;
	struct millibox_result *result = NULL;
	char *data = NULL;

	CHECK(millibox_request_set(request, "resources.memory", "lots") == 0);
	CHECK(millibox_run(client, request, &result) == -1 && !result);
	SAME(millibox_error_code(client), "Sandbox.InvalidParameter");
	SAME(millibox_error_field(client), "resources.memory");
	CHECK(millibox_error_status(client) == 400 && millibox_error_errno(client) == 0);
	HAS(millibox_error_json(client), "\"solution\"");
	CHECK(millibox_request_set(request, "resources.memory", "64Mi") == 0);
	CHECK(millibox_request_set(request, "lanugage", "python") == 0);
	CHECK(millibox_run(client, request, &result) == -1);
	SAME(millibox_error_code(client), "Sandbox.UnknownField");
	HAS(millibox_error_message(client), "did you mean 'language'");
	millibox_request_free(request);
	/* The language is Python unless the code says otherwise. */
	request = millibox_request_new("print(7)");
	CHECK(millibox_run(client, request, &result) == 0);
	SAME(millibox_result_stdout(result, NULL), "7\n");
	millibox_result_free(result);
	result = NULL;
	millibox_request_free(request);
	/* What the library finds itself; the call reports the first. */
	request = millibox_request_new("\xff");
	CHECK(millibox_request_set(request, "language", "python") == 0);
	CHECK(millibox_request_set_json(request, "event", "{") == -1);
	CHECK(millibox_run(client, request, &result) == -1);
	SAME(millibox_error_field(client), "code");
	millibox_request_free(request);
	request = python("1");
	CHECK(millibox_request_set_number(request, "timeout", 1e300 * 1e300) == -1);
	CHECK(millibox_request_deadline(request, -1) == -1);
	CHECK(millibox_request_add(request, "code", "x") == -1);
	CHECK(millibox_request_put(request, "code", "x", "y") == -1);
	CHECK(millibox_request_set(request, "code.x", "y") == -1);
	CHECK(millibox_session_create(client, request, &session) == -1 && !session);
	SAME(millibox_error_field(client), "timeout");
	millibox_request_free(request);
	CHECK(millibox_session_attach(client, "../x", &session) == -1);
	SAME(millibox_error_field(client), "id");
	CHECK(millibox_session_attach(client, "sess_0000000000000000", &session) == -1);
	SAME(millibox_error_code(client), "Sandbox.SessionNotFound");
	CHECK(millibox_call(client, "GET", "nowhere", NULL, &data) == -1 && !data);
	CHECK(millibox_call(client, "GET", "/api/v1/nowhere", NULL, &data) == -1 &&
	      millibox_error_status(client) == 404);
	CHECK(millibox_call(client, "POST", "/api/v1/execute", "{", &data) == -1);
	SAME(millibox_error_code(client), "Sandbox.InvalidJson");
	CHECK(millibox_set_key(client, "not a key") == 0);
	CHECK(millibox_call(client, "GET", "/api/v1/health", NULL, NULL) == -1);
	HAS(millibox_error_message(client), "valid key");
	CHECK(millibox_set_key(client, "key") == 0 && millibox_set_url(client, "ftp://x") == 0);
	CHECK(millibox_call(client, "GET", "/api/v1/health", NULL, NULL) == -1);
	CHECK(millibox_set_socket(client, "/nonexistent/sock") == 0);
	CHECK(millibox_call(client, "GET", "/api/v1/health", NULL, NULL) == -1);
	HAS(millibox_error_message(client), "not both");
	CHECK(millibox_set_url(client, "") == 0 &&
	      millibox_set_ca_file(client, "/nonexistent") == 0);
	CHECK(millibox_call(client, "GET", "/api/v1/health", NULL, NULL) == -1);
	SAME(millibox_error_code(client), "Sandbox.Unavailable");
	CHECK(millibox_error_errno(client) == ENOENT);
	CHECK(millibox_set_timeout(client, -1) == -1 && millibox_set_timeout(client, 0) == 0);
}

/* NULL for each argument that is a pointer. */
static void nulls(void)
{
	struct millibox_request *request = millibox_request_new(NULL);
	struct millibox_session *session = new_session();
	struct millibox_result *result = NULL;
	struct millibox_list *list = NULL;
	char *text = NULL;
	size_t len;

	millibox_client_free(NULL), millibox_request_free(NULL), millibox_result_free(NULL);
	millibox_session_free(NULL), millibox_list_free(NULL), millibox_free(NULL),
		millibox_cancel(NULL);
	CHECK(millibox_set_socket(NULL, "x") == -1 && millibox_set_socket(client, NULL) == -1);
	SAME(millibox_error_field(client), "path");
	CHECK(millibox_set_url(NULL, "x") == -1 && millibox_set_url(client, NULL) == -1);
	CHECK(millibox_set_key(NULL, "x") == -1 && millibox_set_key(client, NULL) == -1);
	CHECK(millibox_set_ca_file(NULL, "x") == -1 && millibox_set_ca_file(client, NULL) == -1);
	CHECK(millibox_set_timeout(NULL, 1) == -1 && millibox_set_reattach(NULL, 1) == -1);
	CHECK(millibox_call(NULL, "GET", "/", NULL, &text) == -1 &&
	      millibox_call(client, NULL, "/", NULL, &text) == -1);
	CHECK(millibox_call(client, "GET", NULL, NULL, &text) == -1 && !text);
	SAME(millibox_error_code(NULL), "Sandbox.InvalidParameter");
	CHECK(*millibox_error_message(NULL) && *millibox_error_field(NULL) &&
	      millibox_error_errno(NULL) == EINVAL);
	CHECK(millibox_error_status(NULL) == 0 && millibox_error_json(NULL) == NULL);
	CHECK(millibox_request_set(NULL, "a", "b") == -1 &&
	      millibox_request_set_number(NULL, "a", 1) == -1);
	CHECK(millibox_request_set_bytes(NULL, "a", "b", 1) == -1 &&
	      millibox_request_set_json(NULL, "a", "1") == -1);
	CHECK(millibox_request_add(NULL, "a", "b") == -1 &&
	      millibox_request_put(NULL, "a", "b", "c") == -1);
	CHECK(millibox_request_put_bytes(NULL, "a", "b", "c", 1) == -1 &&
	      millibox_request_deadline(NULL, 1) == -1);
	CHECK(millibox_request_on_output(NULL, NULL, NULL) == -1 &&
	      millibox_request_on_start(NULL, NULL, NULL) == -1);
	CHECK(millibox_request_on_value(NULL, NULL, NULL) == -1);
	CHECK(millibox_request_set(request, NULL, "b") == -1 &&
	      millibox_request_set(request, "a", NULL) == -1);
	CHECK(millibox_request_set_bytes(request, "a", NULL, 1) == -1 &&
	      millibox_request_set_json(request, "a", NULL) == -1);
	CHECK(millibox_request_add(request, NULL, "b") == -1 &&
	      millibox_request_add(request, "a", NULL) == -1);
	CHECK(millibox_request_put(request, NULL, "b", "c") == -1 &&
	      millibox_request_put(request, "a", NULL, "c") == -1);
	CHECK(millibox_request_put(request, "a", "b", NULL) == -1 &&
	      millibox_request_put_bytes(request, "a", "b", NULL, 1) == -1);
	CHECK(millibox_run(NULL, request, &result) == -1 &&
	      millibox_run(client, NULL, &result) == -1);
	CHECK(millibox_run(client, request, NULL) == -1 && !result);
	SAME(millibox_error_field(client), "ret_result");
	CHECK(!millibox_result_ok(NULL) && millibox_result_exit_code(NULL) == -1 &&
	      !*millibox_result_status(NULL));
	CHECK(!*millibox_result_execution_id(NULL) && !*millibox_result_text(NULL) &&
	      !millibox_result_value(NULL));
	CHECK(!*millibox_result_stdout(NULL, &len) && len == 0 &&
	      !*millibox_result_stderr(NULL, &len) && len == 0);
	CHECK(!millibox_result_data(NULL, "a", &len) && !millibox_result_error(NULL) &&
	      !millibox_result_limit(NULL));
	CHECK(millibox_result_denials(NULL) == 0 && !millibox_result_denial(NULL, 0) &&
	      !millibox_result_json(NULL));
	CHECK(millibox_session_create(NULL, NULL, &session) == -1 &&
	      millibox_session_create(client, NULL, NULL) == -1);
	CHECK(millibox_session_attach(NULL, "a", &session) == -1 &&
	      millibox_session_attach(client, NULL, &session) == -1);
	CHECK(millibox_session_attach(client, "a", NULL) == -1 && !*millibox_session_id(NULL));
	CHECK(millibox_session_info(NULL, &text) == -1 &&
	      millibox_session_info(session, NULL) == -1);
	CHECK(millibox_session_run(NULL, request, &result) == -1 &&
	      millibox_session_run(session, NULL, &result) == -1);
	CHECK(millibox_session_run(session, request, NULL) == -1 &&
	      millibox_session_interrupt(NULL) == -1);
	CHECK(millibox_session_pause(NULL) == -1 && millibox_session_resume(NULL) == -1);
	CHECK(millibox_session_restart(NULL) == -1 && millibox_session_delete(NULL) == -1);
	CHECK(millibox_file_read(NULL, "a", &text, &len) == -1 &&
	      millibox_file_read(session, NULL, &text, &len) == -1);
	CHECK(millibox_file_read(session, "a", NULL, &len) == -1 &&
	      millibox_file_write(NULL, "a", "b", 1) == -1);
	CHECK(millibox_file_write(session, NULL, "b", 1) == -1 &&
	      millibox_file_write(session, "a", NULL, 1) == -1);
	CHECK(millibox_file_download(NULL, "a", 1) == -1 &&
	      millibox_file_download(session, NULL, 1) == -1);
	CHECK(millibox_file_download(session, "a", -1) == -1 &&
	      millibox_file_upload(NULL, "a", 0, 0) == -1);
	CHECK(millibox_file_upload(session, NULL, 0, 0) == -1 &&
	      millibox_file_upload(session, "a", -1, 0) == -1);
	CHECK(millibox_file_upload(session, "a", 0, 077777) == -1);
	CHECK(millibox_file_remove(NULL, "a", 0) == -1 &&
	      millibox_file_remove(session, NULL, 0) == -1);
	CHECK(millibox_file_mkdir(NULL, "a") == -1 && millibox_file_mkdir(session, NULL) == -1);
	CHECK(millibox_file_move(NULL, "a", "b", 0) == -1 &&
	      millibox_file_move(session, NULL, "b", 0) == -1);
	CHECK(millibox_file_move(session, "a", NULL, 0) == -1 &&
	      millibox_file_list(NULL, "", 0, &list) == -1);
	CHECK(millibox_file_list(session, NULL, 0, &list) == -1 &&
	      millibox_file_list(session, "", 0, NULL) == -1);
	CHECK(millibox_list_count(NULL) == 0 && !millibox_list_path(NULL, 0) &&
	      !millibox_list_type(NULL, 0));
	CHECK(millibox_list_size(NULL, 0) == 0 && !result && !list && !text);
	/* The client still works. */
	expect(session, "6 * 7", "42");
	millibox_request_free(request);
	end_session(session);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{"run", run_with_everything, NULL},
		{"results", results, NULL},
		{"streams", streams, NULL},
		{"sessions", sessions, NULL},
		{"files", files, NULL},
		{"cancel", cancelling, NULL},
		{"wrong", wrong_requests, NULL},
		{"nulls", nulls, NULL},
	};

	return run_case(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
