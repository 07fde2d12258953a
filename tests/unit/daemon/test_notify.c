/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "daemon/notify.h"

/* A service manager's end, bound to an abstract name. */
static int listen_at(const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int sock = fd_socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	assert_true(sock >= 0);
	memcpy(addr.sun_path + 1, name + 1, strlen(name) - 1);
	assert_int_equal(bind(sock, (struct sockaddr *)&addr,
	                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
	                 0);
	return sock;
}

static void a_state_arrives_as_one_datagram(void **state)
{
	char name[64], text[64] = {0};
	struct error err = {0};
	int manager, sock;

	(void)state;
	(void)snprintf(name, sizeof(name), "@millibox-test-%d", (int)getpid());
	manager = listen_at(name);
	assert_int_equal(notify_open(name, &sock, &err), 0);
	assert_true(sock >= 0);
	notify_send(sock, "READY=1");
	notify_send(sock, "STOPPING=1");
	assert_int_equal(recv(manager, text, sizeof(text), 0), 7);
	assert_string_equal(text, "READY=1");
	assert_int_equal(recv(manager, text, sizeof(text), 0), 10);
	(void)fd_close(manager);
	/* The manager is gone: logged, not fatal. */
	notify_send(sock, "READY=1");
	(void)fd_close(sock);
}

static void without_a_manager_nothing_is_sent(void **state)
{
	struct error err = {0};
	int sock = 7;

	(void)state;
	assert_int_equal(notify_open(NULL, &sock, &err), 0);
	assert_int_equal(sock, -1);
	assert_int_equal(notify_open("", &sock, &err), 0);
	assert_int_equal(sock, -1);
	notify_send(sock, "READY=1");
}

static void a_wrong_address_is_an_error(void **state)
{
	static const char *const wrong[] = {"relative", "@", "/", "/nonexistent/notify"};
	char lengthy[200];

	(void)state;
	memset(lengthy, 'a', sizeof(lengthy));
	lengthy[0] = '/';
	lengthy[sizeof(lengthy) - 1] = '\0';
	for (size_t i = 0; i <= ARRAY_SIZE(wrong); i++) {
		const char *name = i < ARRAY_SIZE(wrong) ? wrong[i] : lengthy;
		struct error err = {0};
		int sock;

		assert_int_equal(notify_open(name, &sock, &err), -1);
		assert_non_null(strstr(err.msg, "NOTIFY_SOCKET"));
		assert_int_equal(sock, -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_state_arrives_as_one_datagram),
		cmocka_unit_test(without_a_manager_nothing_is_sent),
		cmocka_unit_test(a_wrong_address_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
