/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "http/client.h"
#include "http/server.h"
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

static int accept_request(int fd)
{
	char data[4096];
	int conn;

	while ((conn = accept(fd, NULL, NULL)) < 0 && (errno == EAGAIN || errno == EINTR))
		(void)usleep(1000);
	(void)!read(conn, data, sizeof(data));
	return conn;
}

/* A server that reads a header and sends @answer, in a child: the client blocks. */
static pid_t serve(int fd, const char *answer)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)!write(accept_request(fd), answer, strlen(answer));
	if (answer[0] == '\0')
		(void)pause();
	_exit(0);
}

static int collect(void *ctx, int status, const char *data, size_t len)
{
	assert_int_equal(status, 404);
	return buf_add(ctx, data, len);
}

static int refuse(void *ctx, int status, const char *data, size_t len)
{
	(void)ctx;
	(void)status;
	(void)data;
	(void)len;
	return -1;
}

struct place {
	char dir[32];
	char path[64];
	int fd;
};

static void place_open(struct place *p)
{
	struct error err = {0};

	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/millibox-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	(void)snprintf(p->path, sizeof(p->path), "%s/sock", p->dir);
	assert_int_equal(http_listen_unix(p->path, 0600, &p->fd, &err), 0);
}

static void place_remove(struct place *p)
{
	fd_close(p->fd);
	assert_int_equal(unlink(p->path), 0);
	assert_int_equal(rmdir(p->dir), 0);
}

static void place_close(struct place *p, pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	place_remove(p);
}

static void a_response_has_its_status(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1000);
	struct http_client_request request = {
		.method = "POST",
		.url = "http://localhost/x",
		.body = "{}",
		.body_len = 2,
		.on_data = collect,
		.ctx = &b,
	};
	struct error err = {0};
	struct place p;
	int status = 0;
	pid_t pid;

	(void)state;
	place_open(&p);
	request.socket_path = p.path;
	pid = serve(p.fd, "HTTP/1.1 404 No\r\nContent-Length: 5\r\n\r\nhello");
	assert_int_equal(http_client_run(&request, &status, &err), 0);
	assert_int_equal(status, 404);
	assert_string_equal(b.data, "hello");
	place_close(&p, pid);
}

static void a_missing_listener_is_unavailable(void **state)
{
	struct http_client_request request = {
		.method = "GET", .url = "http://localhost/", .socket_path = "/nonexistent/sock"};
	struct error err = {0};
	int status = 0;

	(void)state;
	assert_int_equal(http_client_run(&request, &status, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_not_equal(err.sys, ECANCELED);
}

static void a_reader_may_stop(void **state)
{
	struct http_client_request request = {
		.method = "GET", .url = "http://localhost/", .on_data = refuse};
	struct error err = {0};
	struct place p;
	int status = 0;
	pid_t pid;

	(void)state;
	place_open(&p);
	request.socket_path = p.path;
	pid = serve(p.fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
	assert_int_equal(http_client_run(&request, &status, &err), -1);
	assert_int_equal(err.sys, ECANCELED);
	place_close(&p, pid);
}

/* A server that never answers, and writes to @cancel when it has the request. */
static pid_t serve_cancelled(int fd, int cancel)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)accept_request(fd);
	(void)!write(cancel, "x", 1);
	(void)pause();
	_exit(0);
}

static void a_readable_descriptor_cancels(void **state)
{
	struct http_client_request request = {.method = "GET", .url = "http://localhost/"};
	struct error err = {0};
	struct place p;
	int status = 0, ends[2];
	pid_t pid;

	(void)state;
	place_open(&p);
	assert_int_equal(fd_pipe(ends, 0), 0);
	request.socket_path = p.path;
	request.cancel_fd = ends[0];
	pid = serve_cancelled(p.fd, ends[1]);
	assert_int_equal(http_client_run(&request, &status, &err), -1);
	assert_int_equal(err.sys, ECANCELED);
	fd_close(ends[0]);
	fd_close(ends[1]);
	place_close(&p, pid);
}

static void a_cancelled_request_is_not_sent(void **state)
{
	struct http_client_request request = {.method = "GET", .url = "http://localhost/"};
	struct error err = {0};
	struct pollfd connection;
	struct place p;
	int status = 0, ends[2];

	(void)state;
	place_open(&p);
	assert_int_equal(fd_pipe(ends, 0), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	request.socket_path = p.path;
	request.cancel_fd = ends[0];
	assert_int_equal(http_client_run(&request, &status, &err), -1);
	assert_int_equal(err.sys, ECANCELED);
	connection = (struct pollfd){.fd = p.fd, .events = POLLIN};
	assert_int_equal(poll(&connection, 1, 0), 0);
	fd_close(ends[0]);
	fd_close(ends[1]);
	place_remove(&p);
}

static void silence_ends_with_the_time_out(void **state)
{
	struct http_client_request request = {
		.method = "GET", .url = "http://localhost/", .timeout_us = 100 * USEC_PER_MS};
	struct error err = {0};
	struct place p;
	int status = 0;
	pid_t pid;

	(void)state;
	place_open(&p);
	request.socket_path = p.path;
	pid = serve(p.fd, "");
	assert_int_equal(http_client_run(&request, &status, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	place_close(&p, pid);
}

static int accept_one(int fd)
{
	int conn;

	while ((conn = accept(fd, NULL, NULL)) < 0 && (errno == EAGAIN || errno == EINTR))
		(void)usleep(1000);
	return conn;
}

/* Reads a request up to the end of its body, "{}", and answers, unless @answer is NULL. */
static void answer_one(int conn, const char *answer)
{
	char data[4096];
	size_t len = 0;
	ssize_t n;

	while (len < 2 || memcmp(data + len - 2, "{}", 2) != 0) {
		n = read(conn, data + len, sizeof(data) - len);
		/* The client opens a connection before it decides to send nothing on it. */
		if (n <= 0)
			return;
		len += (size_t)n;
	}
	if (answer)
		(void)!write(conn, answer, strlen(answer));
}

/* Two requests on the first connection, the second without an answer; then others. */
static pid_t serve_and_break(int fd)
{
	pid_t pid = fork();
	int conn;

	if (pid != 0)
		return pid;
	conn = accept_one(fd);
	answer_one(conn, "HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\n1");
	answer_one(conn, NULL);
	(void)close(conn);
	for (;;) {
		conn = accept_one(fd);
		answer_one(conn, "HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\n2");
	}
}

static void a_request_on_a_broken_connection_is_not_sent_again(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1000);
	struct http_client *kept = http_client_new();
	struct http_client_request request = {
		.method = "POST",
		.url = "http://localhost/x",
		.body = "{}",
		.body_len = 2,
		.on_data = collect,
		.ctx = &b,
		.kept = kept,
	};
	struct error err = {0};
	struct place p;
	int status = 0;
	pid_t pid;

	(void)state;
	assert_non_null(kept);
	place_open(&p);
	request.socket_path = p.path;
	pid = serve_and_break(p.fd);
	assert_int_equal(http_client_run(&request, &status, &err), 0);
	assert_int_equal(http_client_run(&request, &status, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_string_equal(b.data, "1");
	error_clear(&err);
	assert_int_equal(http_client_run(&request, &status, &err), 0);
	assert_string_equal(b.data, "12");
	http_client_free(kept);
	place_close(&p, pid);
}

/* A callback that sends a request of its own. */
struct nested {
	struct http_client_request inner;
	int status, result;
};

static int send_inner(void *ctx, int status, const char *data, size_t len)
{
	struct nested *n = ctx;
	struct error err = {0};

	(void)data;
	(void)len;
	assert_int_equal(status, 404);
	n->result = http_client_run(&n->inner, &n->status, &err);
	return 0;
}

static pid_t serve_two(int fd)
{
	pid_t pid = fork();
	int first;

	if (pid != 0)
		return pid;
	first = accept_one(fd);
	answer_one(first, "HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\n1");
	answer_one(accept_one(fd), "HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\n2");
	(void)pause();
	_exit(0);
}

static void a_callback_may_use_the_same_client(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1000);
	struct http_client *kept = http_client_new();
	struct nested n = {0};
	struct http_client_request request = {
		.method = "POST",
		.url = "http://localhost/x",
		.body = "{}",
		.body_len = 2,
		.kept = kept,
	};
	struct error err = {0};
	struct place p;
	int status = 0;
	pid_t pid;

	(void)state;
	place_open(&p);
	request.socket_path = p.path;
	n.inner = request;
	n.inner.on_data = collect;
	n.inner.ctx = &b;
	request.on_data = send_inner;
	request.ctx = &n;
	pid = serve_two(p.fd);
	assert_int_equal(http_client_run(&request, &status, &err), 0);
	assert_int_equal(n.result, 0);
	assert_string_equal(b.data, "2");
	http_client_free(kept);
	place_close(&p, pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_response_has_its_status),
		cmocka_unit_test(a_missing_listener_is_unavailable),
		cmocka_unit_test(a_reader_may_stop),
		cmocka_unit_test(a_readable_descriptor_cancels),
		cmocka_unit_test(a_cancelled_request_is_not_sent),
		cmocka_unit_test(silence_ends_with_the_time_out),
		cmocka_unit_test(a_request_on_a_broken_connection_is_not_sent_again),
		cmocka_unit_test(a_callback_may_use_the_same_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
