/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "http/client.h"
#include "http/server.h"
#include <errno.h>
#include <sys/socket.h>

/* A server that reads a header and sends @answer, in a child: the client blocks. */
static pid_t serve(int fd, const char *answer)
{
	pid_t pid = fork();
	char data[4096];
	int conn;

	if (pid != 0)
		return pid;
	while ((conn = accept(fd, NULL, NULL)) < 0 && (errno == EAGAIN || errno == EINTR))
		(void)usleep(1000);
	(void)!read(conn, data, sizeof(data));
	(void)!write(conn, answer, strlen(answer));
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

static void place_close(struct place *p, pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	fd_close(p->fd);
	assert_int_equal(unlink(p->path), 0);
	assert_int_equal(rmdir(p->dir), 0);
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
	assert_int_equal(write(ends[1], "x", 1), 1);
	request.socket_path = p.path;
	request.cancel_fd = ends[0];
	pid = serve(p.fd, "");
	assert_int_equal(http_client_run(&request, &status, &err), -1);
	assert_int_equal(err.sys, ECANCELED);
	fd_close(ends[0]);
	fd_close(ends[1]);
	place_close(&p, pid);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_response_has_its_status),
		cmocka_unit_test(a_missing_listener_is_unavailable),
		cmocka_unit_test(a_reader_may_stop),
		cmocka_unit_test(a_readable_descriptor_cancels),
		cmocka_unit_test(silence_ends_with_the_time_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
