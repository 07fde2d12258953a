/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/session.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/file.h"
#include "tls/authority.h"
#include "unit.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOST "api.test"

/* An authority, and a file with its certificate. */
struct rig {
	struct authority *authority;
	struct tls_trust *trust;
	int fds[2];
	struct tls_session *server, *client;
};

static struct authority *make(char path[64])
{
	struct buf key = BUF_INIT(AUTHORITY_KEY_MAX), cert = BUF_INIT(AUTHORITY_CERT_MAX);
	struct error err = {0};
	struct authority *a;
	char *pem;
	int fd;

	if (authority_make("Test", &key, &cert, &err) < 0)
		fail_msg("%s", err.msg);
	a = authority_new(key.data, key.len, cert.data, cert.len, &err);
	assert_non_null(a);
	pem = authority_pem(&cert);
	assert_non_null(pem);
	(void)snprintf(path, 64, "/tmp/millibox-tls-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, pem, strlen(pem)), 0);
	(void)fd_close(fd);
	free(pem);
	buf_done(&key);
	buf_done(&cert);
	return a;
}

static void setup(struct rig *r, const char *leaf_host, bool is_strange)
{
	char path[64], strange[64];
	struct buf none = BUF_INIT(1);
	struct error err = {0};
	struct tls_leaf *leaf;

	*r = (struct rig){.authority = make(path)};
	if (is_strange) {
		authority_free(r->authority);
		r->authority = make(strange);
		(void)unlink(strange);
	}
	r->trust = tls_trust_new(path, &err);
	assert_non_null(r->trust);
	(void)unlink(path);
	assert_int_equal(fd_socketpair(SOCK_STREAM | SOCK_NONBLOCK, r->fds), 0);
	leaf = authority_leaf(r->authority, leaf_host, &err);
	assert_non_null(leaf);
	r->server = tls_session_serve(r->fds[0], leaf, &none, &err);
	tls_leaf_unref(leaf);
	r->client = tls_session_connect(r->fds[1], HOST, r->trust, &err);
	assert_true(r->server && r->client);
}

static void teardown(struct rig *r)
{
	tls_session_free(r->server);
	tls_session_free(r->client);
	tls_trust_free(r->trust);
	authority_free(r->authority);
	(void)fd_close(r->fds[0]);
	(void)fd_close(r->fds[1]);
}

/* Return: what the client's handshake returns. */
static int shake(struct rig *r, struct error *err)
{
	struct error other = {0};
	int client = 0, server = 0;

	for (int i = 0; i < 20 && client == 0; i++) {
		client = tls_session_handshake(r->client, err);
		if (server == 0)
			server = tls_session_handshake(r->server, &other);
	}
	return client;
}

static void a_trusted_host_is_accepted(void **state)
{
	static char data[300000], got[sizeof(data)];
	struct error err = {0};
	size_t sent = 0, received = 0;
	struct rig r;

	(void)state;
	setup(&r, HOST, false);
	if (shake(&r, &err) != 1)
		fail_msg("%s", err.msg);
	memset(data, 'x', sizeof(data));
	data[sizeof(data) - 1] = 'y';
	/* More than the socket holds: it is sent in several calls. */
	while (received < sizeof(data)) {
		ssize_t n = sent < sizeof(data)
		                    ? tls_session_send(r.server, data + sent, sizeof(data) - sent)
		                    : 0;

		assert_true(n >= 0 || n == -EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		n = tls_session_recv(r.client, got + received, sizeof(got) - received);
		assert_true(n > 0 || n == -EAGAIN);
		received += n > 0 ? (size_t)n : 0;
	}
	assert_memory_equal(data, got, sizeof(data));
	assert_int_equal(tls_session_end(r.server), 0);
	assert_int_equal(tls_session_recv(r.client, got, sizeof(got)), 0);
	assert_int_equal(tls_session_recv(r.client, got, sizeof(got)), 0);
	assert_false(tls_session_was_cut(r.client));
	teardown(&r);
}

static void a_connection_that_is_cut_is_noticed(void **state)
{
	struct error err = {0};
	struct rig r;
	char got[64];

	(void)state;
	setup(&r, HOST, false);
	assert_int_equal(shake(&r, &err), 1);
	assert_int_equal(tls_session_send(r.server, "bytes", 5), 5);
	r.fds[0] = fd_close(r.fds[0]);
	assert_int_equal(tls_session_recv(r.client, got, sizeof(got)), 5);
	assert_int_equal(tls_session_recv(r.client, got, sizeof(got)), 0);
	assert_true(tls_session_was_cut(r.client));
	teardown(&r);
}

static void another_name_is_refused(void **state)
{
	struct error err = {0};
	struct rig r;

	(void)state;
	setup(&r, "other.test", false);
	assert_int_equal(shake(&r, &err), -1);
	assert_int_equal(err.code, ERR_UNTRUSTED);
	teardown(&r);
}

static void another_authority_is_refused(void **state)
{
	struct error err = {0};
	struct rig r;

	(void)state;
	setup(&r, HOST, true);
	assert_int_equal(shake(&r, &err), -1);
	assert_int_equal(err.code, ERR_UNTRUSTED);
	teardown(&r);
}

static void leaves_are_kept_and_bounded(void **state)
{
	struct tls_leaf *first, *again, *leaf;
	struct error err = {0};
	struct rig r;
	char host[32];

	(void)state;
	setup(&r, HOST, false);
	first = authority_leaf(r.authority, HOST, &err);
	again = authority_leaf(r.authority, HOST, &err);
	assert_ptr_equal(first, again);
	tls_leaf_unref(again);
	for (int i = 0; i < 300; i++) {
		(void)snprintf(host, sizeof(host), "h%d.test", i);
		leaf = authority_leaf(r.authority, host, &err);
		assert_non_null(leaf);
		tls_leaf_unref(leaf);
	}
	/* It was dropped, and is still ours. */
	leaf = authority_leaf(r.authority, HOST, &err);
	assert_ptr_not_equal(first, leaf);
	tls_leaf_unref(leaf);
	tls_leaf_unref(first);
	teardown(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trusted_host_is_accepted),
		cmocka_unit_test(a_connection_that_is_cut_is_noticed),
		cmocka_unit_test(another_name_is_refused),
		cmocka_unit_test(another_authority_is_refused),
		cmocka_unit_test(leaves_are_kept_and_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
