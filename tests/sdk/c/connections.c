/* SPDX-License-Identifier: Apache-2.0 */
/* Large files, many threads, and connections that break. Usage: connections CASE [ARGUMENT]. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

/* library large FILE: up and down again, beside itself. */
static void large(const char *path)
{
	struct millibox_session *session = NULL;
	struct millibox_request *request = millibox_request_new(NULL);
	char back[512];
	int fd = open(path, O_RDONLY), out;

	snprintf(back, sizeof(back), "%s.back", path);
	out = open(back, O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0 && out >= 0);
	CHECK(millibox_request_set(request, "resources.memory", "3Gi") == 0);
	CHECK(millibox_request_set(request, "resources.disk", "1200Mi") == 0);
	CHECK(millibox_session_create(client, request, &session) == 0);
	millibox_request_free(request);
	CHECK(millibox_file_upload(session, "large", fd, 0755) == 0);
	expect(session, "import os; oct(os.stat('large').st_mode & 0o777)", "'0o755'");
	CHECK(millibox_file_download(session, "large", out) == 0);
	close(fd);
	close(out);
	end_session(session);
}

/* library silent SOCKET: something listens there and never answers. */
static void silent(const char *path)
{
	CHECK(millibox_set_socket(client, path) == 0);
	CHECK(millibox_set_timeout(client, 0.2) == 0);
	CHECK(millibox_call(client, "GET", "/api/v1/health", NULL, NULL) == -1);
	CHECK(millibox_error_errno(client) == ETIMEDOUT && millibox_error_status(client) == 0);
	CHECK(millibox_error_json(client) == NULL);
}

static void *one_of_many(void *ctx)
{
	struct millibox_client *own = millibox_client_new();
	struct millibox_request *request = millibox_request_new(NULL);
	struct millibox_session *session = NULL;
	struct millibox_result *result = NULL;
	char code[64], expected[64];
	int number = (int)(size_t)ctx, good = 0;

	millibox_request_set(request, "resources.memory", "64Mi");
	if (millibox_session_create(own, request, &session) == 0) {
		snprintf(code, sizeof(code), "x = %d\nx * x", number);
		snprintf(expected, sizeof(expected), "%d", number * number);
		millibox_request_free(request);
		request = millibox_request_new(code);
		good = millibox_session_run(session, request, &result) == 0 &&
		       strcmp(millibox_result_text(result), expected) == 0 &&
		       millibox_session_delete(session) == 0;
	}
	if (!good)
		fprintf(stderr, "%d: %s: %s\n", number, millibox_error_code(own),
		        millibox_error_message(own));
	millibox_result_free(result);
	millibox_session_free(session);
	millibox_request_free(request);
	millibox_client_free(own);
	return good ? ctx : (void *)-1;
}

/* library many COUNT: that many threads, each with a client and a session. */
static void *one_of_a_crowd(void *number)
{
	struct millibox_client *own = millibox_client_new();
	char code[64], expected[32];
	struct millibox_request *request;
	struct millibox_result *result = NULL;
	int right;

	snprintf(code, sizeof(code), "print(%d * 3)", (int)(size_t)number);
	snprintf(expected, sizeof(expected), "%d\n", (int)(size_t)number * 3);
	request = python(code);
	right = millibox_run(own, request, &result) == 0 &&
	        strcmp(millibox_result_stdout(result, NULL), expected) == 0;
	if (!right)
		fprintf(stderr, "%s: %s\n", millibox_error_code(own), millibox_error_message(own));
	millibox_result_free(result);
	millibox_request_free(request);
	millibox_client_free(own);
	return right ? NULL : (void *)-1;
}

static void in_threads(int threads, void *(*work)(void *))
{
	int failed = 0;
	pthread_t *all = calloc((size_t)threads, sizeof(*all));
	void *back;

	CHECK(all);
	for (int i = 0; i < threads; i++)
		CHECK(pthread_create(&all[i], NULL, work, (void *)(size_t)i) == 0);
	for (int i = 0; i < threads; i++) {
		CHECK(pthread_join(all[i], &back) == 0);
		failed += back == (void *)-1;
	}
	free(all);
	CHECK(failed == 0);
}

static void crowd(const char *count)
{
	in_threads(atoi(count), one_of_a_crowd);
}

static void many(const char *count)
{
	in_threads(atoi(count), one_of_many);
}

/* A full daemon refuses, and nothing was begun: without patience that is the answer. */
static void impatient(void)
{
	struct millibox_request *request = python("print(1)");
	struct millibox_result *result = NULL;

	CHECK(millibox_set_busy_timeout(client, 0) == 0);
	CHECK(millibox_run(client, request, &result) == -1);
	CHECK(millibox_error_status(client) == 429);
	HAS(millibox_error_json(client), "\"retry_after\": 1");
	CHECK(millibox_set_busy_timeout(client, -1) == -1);
	millibox_request_free(request);
}

/* The daemon is killed and started again when we ask for it, with a line, and answers with one. */
static void ask_for_a_restart(void)
{
	printf("restart\n");
	fflush(stdout);
	CHECK(getchar() == '\n');
}

static int restart_in_callback(void *ctx, enum millibox_stream stream, const char *data, size_t len)
{
	(void)stream, (void)data, (void)len;
	if (!*(int *)ctx)
		ask_for_a_restart();
	*(int *)ctx = 1;
	return 0;
}

static void restart(void)
{
	struct millibox_session *session = new_session();
	struct millibox_request *request =
		python("import time; print('on', flush=True); time.sleep(60)");
	struct millibox_result *result = NULL;
	int asked = 0;

	expect(session, "x = 41\nx", "41");
	ask_for_a_restart();
	expect(session, "x + 1", "42");
	/* In the middle of a program: an error, and not another run of it. */
	CHECK(millibox_request_on_output(request, restart_in_callback, &asked) == 0);
	CHECK(millibox_run(client, request, &result) == -1 && asked);
	CHECK(millibox_error_status(client) == 0 && millibox_error_code(client)[0]);
	expect(session, "x + 2", "43");
	millibox_request_free(request);
	/* In a session: all of it, or the loss is an error. */
	asked = 0;
	request = python("import time\nfor i in range(9): print(i, flush=True); time.sleep(0.1)");
	CHECK(millibox_request_on_output(request, restart_in_callback, &asked) == 0);
	if (millibox_session_run(session, request, &result) == 0) {
		SAME(millibox_result_stdout(result, NULL), "0\n1\n2\n3\n4\n5\n6\n7\n8\n");
		millibox_result_free(result);
	} else {
		SAME(millibox_error_code(client), "Sandbox.ExecutionNotFound");
		HAS(millibox_error_message(client), "lost the program");
	}
	millibox_request_free(request);
	expect(session, "x + 3", "44");
	end_session(session);
}

static char gathered[65536];

static int gather(void *ctx, enum millibox_stream stream, const char *data, size_t len)
{
	size_t *used = ctx;

	CHECK(stream == MILLIBOX_STDOUT && *used + len < sizeof(gathered));
	memcpy(gathered + *used, data, len);
	*used += len;
	return 0;
}

static int count_values(void *ctx, const char *json)
{
	HAS(json, "the end");
	++*(int *)ctx;
	return 0;
}

/* The connection breaks while the program runs: nothing is lost or repeated. */
static void cut(void)
{
	struct millibox_session *session = new_session();
	struct millibox_request *request =
		python("import time\n"
	               "for i in range(600): print('line', i, flush=True); time.sleep(0.002)\n"
	               "'the end'");
	struct millibox_result *result = NULL;
	size_t used = 0;
	int values = 0;

	CHECK(millibox_request_on_output(request, gather, &used) == 0);
	CHECK(millibox_request_on_value(request, count_values, &values) == 0);
	CHECK(millibox_session_run(session, request, &result) == 0);
	CHECK(strlen(gathered) == used && values == 1);
	SAME(gathered, millibox_result_stdout(result, NULL));
	HAS(gathered, "line 0\n");
	HAS(gathered, "line 599\n");
	millibox_result_free(result);
	millibox_request_free(request);
	end_session(session);
}

/* Without patience: an error, and the program is killed. */
static void lose(void)
{
	struct millibox_session *session = new_session();
	/* The first event is a small one: it is whole before the cut. */
	struct millibox_request *request = python("import time\n"
	                                          "print('x', flush=True); time.sleep(3)\n"
	                                          "while True: print('x' * 100)");
	struct millibox_result *result = NULL;
	size_t used = 0;

	CHECK(millibox_set_reattach(client, 0) == 0);
	CHECK(millibox_request_on_output(request, gather, &used) == 0);
	CHECK(millibox_session_run(session, request, &result) == -1 && !result);
	CHECK(used > 0 && millibox_error_status(client) == 0);
	expect(session, "6 * 7", "42");
	millibox_request_free(request);
	end_session(session);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{"large", NULL, large}, {"silent", NULL, silent},
		{"many", NULL, many},   {"restart", restart, NULL},
		{"cut", cut, NULL},     {"lose", lose, NULL},
		{"crowd", NULL, crowd}, {"impatient", impatient, NULL},
	};

	return run_case(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
