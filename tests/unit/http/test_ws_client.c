/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "http/ws_client.h"
#include "http/ws_proof.h"

/* A server in a child process, which answers one upgrade with the headers of a case. */

#define HEAD_MAX   4096
#define TIMEOUT_US (20 * 1000 * 1000ULL)

static char path[64];

static int listen_unix(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = fd_socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(path, sizeof(path), "/tmp/mbxunit-ws-%d", (int)getpid());
	(void)unlink(path);
	assert_int_equal(str_copy(address.sun_path, sizeof(address.sun_path), path), 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* @header has a %s for the right proof, or is sent as it is. */
static attr_noreturn void serve_one(int listener, const char *header, bool has_proof)
{
	char head[HEAD_MAX + 1] = "", key[32] = "";
	int fd = accept(listener, NULL, NULL); // NOLINT: of a test
	const char *found = NULL;
	size_t len = 0;
	ssize_t n;

	while (!strstr(head, "\r\n\r\n") && (n = read(fd, head + len, HEAD_MAX - len)) > 0) {
		len += (size_t)n;
		head[len] = '\0';
	}
	found = strstr(head, "Sec-WebSocket-Key: ");
	if (!found || sscanf(found, "Sec-WebSocket-Key: %31[^\r]", key) != 1) // NOLINT: bounded
		_exit(1);
	(void)dprintf(fd, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
	                  "Connection: Upgrade\r\n");
	if (has_proof)
		(void)dprintf(fd, "Sec-WebSocket-Accept: %s%s\r\n", ws_proof(key), header);
	else
		(void)dprintf(fd, "%s", header);
	(void)dprintf(fd, "\r\n");
	/* Until the client closes: a reset would be another error. */
	while (read(fd, head, HEAD_MAX) > 0)
		;
	_exit(0);
}

static bool opens(const char *header, bool has_proof, struct error *err)
{
	const struct ws_client_request request = {.socket_path = path,
	                                          .url = "http://localhost",
	                                          .path = "/",
	                                          .max_message = 1024,
	                                          .timeout_us = TIMEOUT_US};
	const struct ws_client_events events = {0};
	struct ws_client_refusal refusal;
	struct ws_client *ws;
	int listener = listen_unix(), status = 0;
	pid_t pid = fork();
	bool opened;

	assert_true(pid >= 0);
	if (pid == 0)
		serve_one(listener, header, has_proof);
	(void)fd_close(listener);
	ws = ws_client_open(&request, &events, &refusal, err);
	opened = ws;
	assert_null(refusal.body);
	ws_client_free(ws);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)unlink(path);
	return opened;
}

static void the_proof_of_the_standard(void **state)
{
	cleanup_free char *proof = ws_proof("dGhlIHNhbXBsZSBub25jZQ==");
	cleanup_free char *empty = ws_proof("");

	(void)state;
	assert_string_equal(proof, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	/* Of the standard's text alone: one block instead of two. */
	assert_string_equal(empty, "Kfh9QIsMVZcl6xEPYxPHzW8SZ8w=");
}

static void the_right_proof_opens(void **state)
{
	struct error err = {0};

	(void)state;
	assert_true(opens("", true, &err));
	assert_false(error_is_set(&err));
	assert_true(opens(" \t", true, &err)); /* space at the end is not of the value */
}

static void another_proof_is_refused(void **state)
{
	static const char *const wrong[] = {
		"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", /* of another key */
		"Sec-WebSocket-Accept: \r\n", "X: y\r\n",                 /* none */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct error err = {0};

		assert_false(opens(wrong[i], false, &err));
		assert_int_equal(err.code, ERR_PROTOCOL);
		assert_non_null(strstr(err.msg, "Sec-WebSocket-Accept"));
	}
}

static void a_longer_proof_is_refused(void **state)
{
	struct error err = {0};

	(void)state;
	assert_false(opens("x", true, &err));
	assert_int_equal(err.code, ERR_PROTOCOL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_proof_of_the_standard),
		cmocka_unit_test(the_right_proof_opens),
		cmocka_unit_test(another_proof_is_refused),
		cmocka_unit_test(a_longer_proof_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
