/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tcp_owner.h"
#include "unit.h"

#include "base/attr.h"
#include "base/fd.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Real sockets and the real kernel: the peer is this process. */
struct pair {
	int diag;
	int client;
	int server;
};

/* Other programs can have connections from a port that the kernel chose in connect(), not from one
 * that was bound. */
static int open_client(int family)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	int fd = fd_socket(family, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (family == AF_INET)
		assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* Connects @family to @address, which a listener of @listen_family has. */
static void connect_pair(struct pair *p, int listen_family, int family, const char *address)
{
	struct sockaddr_storage addr = {.ss_family = (sa_family_t)listen_family};
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr, to = {.sin6_family = AF_INET6};
	socklen_t len = listen_family == AF_INET ? sizeof(*in) : sizeof(*in6);
	cleanup_close int listener = fd_socket(listen_family, SOCK_STREAM, 0);

	p->diag = tcp_owner_open();
	assert_true(p->diag >= 0);
	if (listen_family == AF_INET)
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		in6->sin6_addr = in6addr_loopback;
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	p->client = open_client(family);
	if (family == listen_family) {
		assert_int_equal(connect(p->client, (struct sockaddr *)&addr, len), 0);
	} else {
		to.sin6_port = in->sin_port;
		assert_int_equal(inet_pton(AF_INET6, address, &to.sin6_addr), 1);
		assert_int_equal(connect(p->client, (struct sockaddr *)&to, sizeof(to)), 0);
	}
	p->server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(p->server >= 0);
}

static void close_pair(struct pair *p)
{
	fd_close(p->client);
	fd_close(p->server);
	fd_close(p->diag);
}

static void expect_own_user(const struct pair *p)
{
	unsigned uid = 12345;

	assert_int_equal(tcp_owner_find(p->diag, p->server, &uid), 0);
	assert_int_equal(uid, geteuid());
}

static void an_ipv4_peer_is_found(void **state)
{
	struct pair p;

	(void)state;
	connect_pair(&p, AF_INET, AF_INET, NULL);
	expect_own_user(&p);
	/* The descriptor can be used again. */
	expect_own_user(&p);
	close_pair(&p);
}

static void an_ipv6_peer_is_found(void **state)
{
	cleanup_close int fd = fd_socket(AF_INET6, SOCK_STREAM, 0);
	const struct sockaddr_in6 addr = {.sin6_family = AF_INET6,
	                                  .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct pair p;

	(void)state;
	if (fd < 0 || bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		skip();
	connect_pair(&p, AF_INET6, AF_INET6, NULL);
	expect_own_user(&p);
	close_pair(&p);
}

static void a_peer_with_a_mapped_address_is_found(void **state)
{
	cleanup_close int fd = fd_socket(AF_INET6, SOCK_STREAM, 0);
	struct pair p;

	(void)state;
	if (fd < 0)
		skip();
	connect_pair(&p, AF_INET, AF_INET6, "::ffff:127.0.0.1");
	expect_own_user(&p);
	close_pair(&p);
}

/* Some kernels report the user of a closed socket as 0. */
static void a_peer_that_closed_is_nobody(void **state)
{
	struct pollfd ended;
	unsigned uid = 12345;
	struct pair p;

	(void)state;
	connect_pair(&p, AF_INET, AF_INET, NULL);
	p.client = fd_close(p.client);
	ended = (struct pollfd){.fd = p.server, .events = POLLRDHUP};
	assert_int_equal(poll(&ended, 1, 10000), 1);
	assert_int_equal(tcp_owner_find(p.diag, p.server, &uid), -ENOENT);
	assert_int_equal(uid, 12345);
	close_pair(&p);
}

/* It has no entry of its own, but its port has one that listens. */
static void a_listener_on_the_peers_port_is_not_the_peer(void **state)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	socklen_t len = sizeof(addr);
	const int on = 1;
	const struct linger reset = {.l_onoff = 1};
	cleanup_close int listener = -1;
	unsigned uid = 12345;
	struct pair p;

	(void)state;
	connect_pair(&p, AF_INET, AF_INET, NULL);
	assert_int_equal(getsockname(p.client, (struct sockaddr *)&addr, &len), 0);
	/* Both ends end without TIME_WAIT, and ours still knows its addresses. */
	assert_int_equal(setsockopt(p.client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	assert_int_equal(shutdown(p.client, SHUT_WR), 0);
	p.client = fd_close(p.client);
	listener = fd_socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_true(tcp_owner_find(p.diag, p.server, &uid) < 0);
	assert_int_equal(uid, 12345);
	close_pair(&p);
}

static void a_unix_socket_is_refused(void **state)
{
	int ends[2] = {-1, -1};
	cleanup_close int diag = tcp_owner_open();
	unsigned uid;

	(void)state;
	assert_int_equal(fd_socketpair(SOCK_STREAM, ends), 0);
	assert_int_equal(tcp_owner_find(diag, ends[0], &uid), -EAFNOSUPPORT);
	fd_close(ends[0]);
	fd_close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ipv4_peer_is_found),
		cmocka_unit_test(an_ipv6_peer_is_found),
		cmocka_unit_test(a_peer_with_a_mapped_address_is_found),
		cmocka_unit_test(a_peer_that_closed_is_nobody),
		cmocka_unit_test(a_listener_on_the_peers_port_is_not_the_peer),
		cmocka_unit_test(a_unix_socket_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
