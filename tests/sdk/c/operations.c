/* SPDX-License-Identifier: Apache-2.0 */
/* What programs such as the command line need: finding a daemon, executions by id, trees, progress.
 * Usage: operations CASE [ARGUMENT]. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <errno.h>
#include <unistd.h>

static void find_the_daemon(void)
{
	struct millibox_client *other = millibox_client_new();
	const char *address = NULL;

	CHECK(millibox_find(client, &address) == 1);
	SAME(address, getenv("MILLIBOX_SOCKET"));
	CHECK(millibox_find(client, NULL) == 1 && millibox_ready(client) == 1);
	/* Named, though nothing listens. */
	CHECK(millibox_set_socket(other, "/nonexistent/sock") == 0);
	CHECK(millibox_find(other, &address) == 1 && millibox_ready(other) == -1);
	SAME(address, "/nonexistent/sock");
	CHECK(millibox_error_errno(other) == ENOENT);
	CHECK(millibox_set_url(other, "http://127.0.0.1:1") == 0 &&
	      millibox_find(other, &address) == -1);
	HAS(millibox_error_message(other), "not both");
	millibox_client_free(other);
	/* Not named: the default place of a user who has no daemon. */
	other = millibox_client_new();
	CHECK(unsetenv("MILLIBOX_SOCKET") == 0);
	CHECK(setenv("XDG_RUNTIME_DIR", "/nonexistent", 1) == 0);
	if (millibox_find(other, &address) == 0) {
		CHECK(address[0] == '/' && millibox_call(other, "GET", "/x", NULL, NULL) == -1);
		HAS(millibox_error_message(other), "no daemon listens at ");
	}
	/* One that is started meanwhile is used. */
	CHECK(millibox_set_socket(other, millibox_find(client, &address) == 1 ? address : "") == 0);
	CHECK(millibox_ready(other) == 1);
	millibox_client_free(other);
}

static int add_output(void *ctx, enum millibox_stream stream, const char *data, size_t len)
{
	char *text = ctx;

	CHECK(stream == MILLIBOX_STDOUT && strlen(text) + len < 64);
	strncat(text, data, len);
	return 0;
}

/* A program that waits for a file, started in the background. */
static void executions(void)
{
	struct millibox_session *session = new_session(), *same = NULL;
	struct millibox_request *request =
		python("import os, time\nprint('on', flush=True)\n"
	               "while not os.path.exists('go'): time.sleep(0.01)\nprint('off')");
	struct millibox_request *callbacks = millibox_request_new(NULL);
	struct millibox_result *result = NULL;
	char *id = NULL, *json = NULL, seen[64] = "";

	CHECK(millibox_request_set_json(request, "background", "true") == 0);
	HAS(millibox_request_json(request), "\"background\": true");
	CHECK(millibox_session_start(session, request, &id) == 0);
	HAS(millibox_answer(client), id);
	CHECK(millibox_request_on_output(callbacks, add_output, seen) == 0);
	/* What there is so far. */
	while (!seen[0])
		CHECK(millibox_follow(client, id, callbacks, 0, &result) == 0 && !result);
	SAME(seen, "on\n");
	CHECK(millibox_execution_info(client, id, &json) == 0);
	HAS(json, "\"status\": \"running\"");
	millibox_free(json);
	CHECK(millibox_session_open(client, millibox_session_id(session), &same) == 0);
	CHECK(millibox_execution_list(same, "running", 5, &json) == 0);
	HAS(json, id);
	millibox_free(json);
	CHECK(millibox_execution_list(same, "failed", 0, NULL) == 0);
	CHECK(!strstr(millibox_answer(client), id));
	CHECK(millibox_file_write(same, "go", "", 0) == 0);
	millibox_session_free(same);
	/* Until the end. */
	seen[0] = '\0';
	CHECK(millibox_follow(client, id, callbacks, 1, &result) == 0);
	SAME(seen, "on\noff\n");
	CHECK(millibox_result_ok(result));
	SAME(millibox_result_field(result, "exit_code"), "0");
	SAME(millibox_result_field(result, "status"), "\"success\"");
	CHECK(!millibox_result_field(result, "limit") && !millibox_result_field(result, "none"));
	CHECK(millibox_result_field(result, "status") == millibox_result_field(result, "status"));
	millibox_result_free(result);
	millibox_free(id);
	/* Cancelled by its id. */
	CHECK(millibox_file_remove(session, "go", 0) == 0);
	CHECK(millibox_session_start(session, request, &id) == 0);
	CHECK(millibox_execution_cancel(client, id) == 0);
	CHECK(millibox_follow(client, id, callbacks, 1, &result) == 0);
	SAME(millibox_result_status(result), "cancelled");
	millibox_result_free(result);
	CHECK(millibox_execution_cancel(client, id) == -1 && millibox_error_status(client) == 409);
	millibox_free(id);
	CHECK(millibox_session_list(client, NULL, 200, &json) == 0);
	HAS(json, millibox_session_id(session));
	millibox_free(json);
	CHECK(millibox_session_terminate(session) == 0);
	CHECK(millibox_session_list(client, "ready", 200, NULL) == 0);
	CHECK(!strstr(millibox_answer(client), millibox_session_id(session)));
	end_session(session);
	millibox_request_free(request);
	millibox_request_free(callbacks);
}

static void keep_bytes(void *ctx, uint64_t bytes)
{
	*(uint64_t *)ctx = bytes;
}

static FILE *file_with(const char *bytes, size_t len)
{
	FILE *file = tmpfile();

	CHECK(file && fwrite(bytes, 1, len, file) == len && fflush(file) == 0);
	CHECK(lseek(fileno(file), 0, SEEK_SET) == 0);
	return file;
}

static void trees(void)
{
	static char large[300000];
	struct millibox_session *session = new_session();
	FILE *file = file_with(large, sizeof(large)), *archive = tmpfile();
	uint64_t bytes = 0;
	char *json = NULL;

	CHECK(millibox_set_progress(client, keep_bytes, &bytes) == 0);
	CHECK(millibox_file_upload(session, "d/a", fileno(file), 0750) == 0);
	CHECK(bytes == sizeof(large));
	CHECK(millibox_file_stat(session, "d/a", &json) == 0);
	HAS(json, "\"mode\": \"0750\"");
	HAS(json, "\"size\": 300000");
	millibox_free(json);
	CHECK(lseek(fileno(file), 0, SEEK_SET) == 0);
	CHECK(millibox_file_upload(session, "d/b", fileno(file), MILLIBOX_MODE_NONE) == 0);
	CHECK(millibox_file_stat(session, "d/b", NULL) == 0);
	HAS(millibox_answer(client), "\"mode\": \"0000\"");
	CHECK(millibox_file_remove(session, "d/b", 0) == 0);
	/* Out and in again. */
	CHECK(millibox_tree_download(session, "d", fileno(archive)) == 0);
	CHECK(bytes > sizeof(large) && !millibox_answer(client));
	CHECK(lseek(fileno(archive), 0, SEEK_SET) == 0);
	CHECK(millibox_tree_upload(session, "e", fileno(archive)) == 0);
	CHECK(millibox_set_progress(client, NULL, NULL) == 0);
	CHECK(millibox_file_stat(session, "e/a", NULL) == 0);
	HAS(millibox_answer(client), "\"size\": 300000");
	CHECK(millibox_file_page(session, "", 0, 1, NULL, &json) == 0);
	HAS(json, "\"name\": \"d\"");
	HAS(json, "\"truncated\": true");
	millibox_free(json);
	CHECK(millibox_file_page(session, "", 0, 0, "d", &json) == 0);
	CHECK(!strstr(json, "\"name\": \"d\"") && strstr(json, "\"name\": \"e\""));
	millibox_free(json);
	CHECK(millibox_file_page(session, "", 1, 0, NULL, NULL) == 0);
	HAS(millibox_answer(client), "\"path\": \"e/a\"");
	CHECK(millibox_file_stat(session, "nothing", &json) == -1 &&
	      millibox_error_status(client) == 404);
	CHECK(!millibox_answer(client));
	json = millibox_escape("a b/c&d\xc3\xa9");
	SAME(json, "a%20b/c%26d%C3%A9");
	millibox_free(json);
	/* Bytes that are no JSON, and are refused as such. */
	CHECK(millibox_send(client, "POST", "/api/v1/execute", "\0\1", 2, NULL) == -1);
	SAME(millibox_error_code(client), "Sandbox.InvalidJson");
	CHECK(millibox_send(client, "POST", "/api/v1/policy/explain", "{}", 2, &json) == 0);
	HAS(json, "\"allowed\": true");
	millibox_free(json);
	fclose(file);
	fclose(archive);
	end_session(session);
}

static int press_key(void *ctx, enum millibox_stream stream, const char *data, size_t len)
{
	(void)stream, (void)data, (void)len;
	CHECK(write(*(int *)ctx, "x", 1) == 1);
	return 0;
}

/* A pipe that becomes readable stops calls until it is read. */
static void cancel_by_descriptor(void)
{
	struct millibox_session *session = new_session();
	struct millibox_request *request = python("print('on', flush=True)\nwhile True: pass");
	struct millibox_result *result = NULL;
	int ends[2];
	char byte;

	CHECK(pipe(ends) == 0);
	CHECK(millibox_cancel_on(client, ends[0]) == 0);
	CHECK(millibox_request_on_output(request, press_key, &ends[1]) == 0);
	CHECK(millibox_session_run(session, request, &result) == -1 && !result);
	CHECK(millibox_error_errno(client) == ECANCELED);
	CHECK(millibox_session_list(client, NULL, 1, NULL) == -1 &&
	      millibox_error_errno(client) == ECANCELED);
	CHECK(read(ends[0], &byte, 1) == 1);
	expect(session, "6 * 7", "42");
	/* The other way still works. */
	millibox_cancel(client);
	CHECK(millibox_session_list(client, NULL, 1, NULL) == -1 &&
	      millibox_error_errno(client) == ECANCELED);
	/* No longer watched. */
	CHECK(write(ends[1], "x", 1) == 1 && millibox_cancel_on(client, -1) == 0);
	expect(session, "1 + 1", "2");
	CHECK(millibox_cancel_on(client, 1000) == -1 && millibox_error_errno(client) == EBADF);
	close(ends[0]), close(ends[1]);
	millibox_request_free(request);
	end_session(session);
}

static int count_output(void *ctx, enum millibox_stream stream, const char *data, size_t len)
{
	(void)data;
	CHECK(stream == MILLIBOX_STDERR);
	*(size_t *)ctx += len;
	return 0;
}

/* Without a network the package manager fails; what it prints arrives all the same. */
static void install(void)
{
	struct millibox_request *request = millibox_request_new(NULL);
	char *layer = NULL;
	size_t printed = 0;

	CHECK(millibox_request_add(request, "packages", "millibox-no-such-package") == 0);
	CHECK(millibox_request_set(request, "language", "python") == 0);
	CHECK(millibox_request_on_install(request, count_output, &printed) == 0);
	CHECK(millibox_install(client, request, &layer) == -1 && !layer);
	CHECK(millibox_error_json(client) != NULL);
	millibox_request_free(request);
	request = millibox_request_new(NULL);
	CHECK(millibox_request_set(request, "language", "klingon") == 0);
	CHECK(millibox_install(client, request, &layer) == -1 &&
	      millibox_error_status(client) == 400);
	millibox_request_free(request);
}

/* The interpreter of the session runs already. */
static void install_into_a_session(void)
{
	struct millibox_session *session = new_session();
	struct millibox_request *use = python("import tinypkg\ntinypkg.VALUE");
	struct millibox_request *request = millibox_request_new(NULL);
	struct millibox_result *result = NULL;
	char *installed = NULL;
	size_t printed = 0;

	CHECK(millibox_session_run(session, use, &result) == 0 && !millibox_result_ok(result));
	millibox_result_free(result);
	CHECK(millibox_session_install(session, request, &installed) == -1 && !installed);
	SAME(millibox_error_field(client), "packages");
	CHECK(millibox_request_add(request, "packages", "tinypkg==1.0") == 0);
	CHECK(millibox_request_on_install(request, count_output, &printed) == 0);
	CHECK(millibox_session_install(session, request, &installed) == 0);
	HAS(installed, "tinypkg==1.0 --hash=");
	CHECK(printed > 0);
	millibox_free(installed);
	CHECK(millibox_session_run(session, use, &result) == 0);
	SAME(millibox_result_text(result), "'1.0'");
	millibox_result_free(result);
	millibox_request_free(request);
	millibox_request_free(use);
	CHECK(millibox_session_delete(session) == 0);
	millibox_session_free(session);
}

/* The daemon of this case has a registry with tinypkg. */
static void install_from_a_registry(void)
{
	struct millibox_request *request = millibox_request_new(NULL);
	struct millibox_result *result = NULL;
	char *layer = NULL;
	size_t printed = 0;

	CHECK(millibox_request_add(request, "packages", "tinypkg==1.0") == 0);
	CHECK(millibox_request_set(request, "language", "python") == 0);
	CHECK(millibox_request_on_install(request, count_output, &printed) == 0);
	CHECK(millibox_install(client, request, &layer) == 0);
	HAS(layer, "\"tinypkg==1.0\"");
	HAS(layer, "\"id\"");
	CHECK(printed > 0);
	millibox_free(layer);
	/* It is there already; the caller does not want to see it. */
	CHECK(millibox_install(client, request, NULL) == 0);
	millibox_request_free(request);
	request = python("import tinypkg\ntinypkg.VALUE");
	CHECK(millibox_request_add(request, "packages", "tinypkg==1.0") == 0);
	CHECK(millibox_run(client, request, &result) == 0);
	SAME(millibox_result_text(result), "'1.0'");
	millibox_result_free(result);
	millibox_request_free(request);
	install_into_a_session();
}

static void nulls(void)
{
	struct millibox_request *request = millibox_request_new(NULL);
	struct millibox_session *session = new_session(), *same = NULL;
	struct millibox_result *result = NULL;
	const char *address = NULL;
	char *text = NULL;

	CHECK(millibox_find(NULL, &address) == -1 && millibox_ready(NULL) == -1);
	CHECK(millibox_cancel_on(NULL, 0) == -1 && millibox_set_progress(NULL, NULL, NULL) == -1);
	CHECK(millibox_send(NULL, "GET", "/", "", 0, &text) == -1 &&
	      millibox_send(client, NULL, "/", "", 0, &text) == -1 &&
	      millibox_send(client, "GET", NULL, "", 0, &text) == -1 &&
	      millibox_send(client, "GET", "/", NULL, 1, &text) == -1);
	SAME(millibox_error_field(client), "data");
	CHECK(!millibox_escape(NULL) && !millibox_answer(NULL) && !millibox_request_json(NULL) &&
	      millibox_request_on_install(NULL, NULL, NULL) == -1);
	CHECK(!millibox_result_field(NULL, "a"));
	CHECK(millibox_session_open(NULL, "a", &same) == -1 &&
	      millibox_session_open(client, NULL, &same) == -1 &&
	      millibox_session_open(client, "a", NULL) == -1 &&
	      millibox_session_open(client, "../a", &same) == -1 && !same);
	SAME(millibox_error_field(client), "id");
	CHECK(millibox_session_list(NULL, NULL, 0, &text) == -1 &&
	      millibox_session_terminate(NULL) == -1);
	CHECK(millibox_session_start(NULL, request, &text) == -1 &&
	      millibox_session_start(session, NULL, &text) == -1 &&
	      millibox_session_start(session, request, NULL) == -1);
	CHECK(millibox_follow(NULL, "a", request, 0, &result) == -1 &&
	      millibox_follow(client, NULL, request, 0, &result) == -1 &&
	      millibox_follow(client, "a", NULL, 0, &result) == -1 &&
	      millibox_follow(client, "a/b", request, 0, &result) == -1);
	SAME(millibox_error_field(client), "execution_id");
	CHECK(millibox_execution_info(NULL, "a", &text) == -1 &&
	      millibox_execution_info(client, NULL, &text) == -1);
	CHECK(millibox_execution_cancel(NULL, "a") == -1 &&
	      millibox_execution_cancel(client, NULL) == -1);
	CHECK(millibox_execution_list(NULL, NULL, 0, &text) == -1);
	CHECK(millibox_install(NULL, request, &text) == -1 &&
	      millibox_install(client, NULL, &text) == -1);
	CHECK(millibox_session_install(NULL, request, &text) == -1 &&
	      millibox_session_install(session, NULL, &text) == -1);
	CHECK(millibox_tree_download(NULL, "a", 1) == -1 &&
	      millibox_tree_download(session, NULL, 1) == -1 &&
	      millibox_tree_download(session, "a", -1) == -1);
	CHECK(millibox_tree_upload(NULL, "a", 1) == -1 &&
	      millibox_tree_upload(session, NULL, 1) == -1 &&
	      millibox_tree_upload(session, "a", -1) == -1);
	CHECK(millibox_file_stat(NULL, "a", &text) == -1 &&
	      millibox_file_stat(session, NULL, &text) == -1);
	CHECK(millibox_file_page(NULL, "", 0, 0, NULL, &text) == -1 &&
	      millibox_file_page(session, NULL, 0, 0, NULL, &text) == -1);
	CHECK(!text && !result && !address);
	expect(session, "6 * 7", "42");
	millibox_request_free(request);
	end_session(session);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{"find", find_the_daemon, NULL},
		{"executions", executions, NULL},
		{"trees", trees, NULL},
		{"cancel_on", cancel_by_descriptor, NULL},
		{"install", install, NULL},
		{"nulls", nulls, NULL},
		{"registry", install_from_a_registry, NULL},
	};

	return run_case(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
