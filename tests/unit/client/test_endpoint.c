/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "client/endpoint.h"

struct expectation {
	struct endpoint_source source;
	const char *socket; /* NULL: TCP */
	const char *url;
	bool chosen;
};

static void check(const struct expectation *x)
{
	struct endpoint e = {0};
	struct error err = {0};

	assert_int_equal(endpoint_choose(&x->source, &e, &err), 0);
	assert_string_equal(e.url, x->url);
	assert_int_equal(e.chosen, x->chosen);
	if (x->socket)
		assert_string_equal(e.socket, x->socket);
	else
		assert_null(e.socket);
	endpoint_done(&e);
}

static void options_override_the_environment_and_that_the_defaults(void **state)
{
	static const char local[] = "http://localhost";
	static const struct expectation list[] = {
		{{.uid = 0}, "/run/millibox/millibox.sock", local, false},
		{{.uid = 0, .env_runtime_dir = "/r"}, "/run/millibox/millibox.sock", local, false},
		{{.uid = 7, .env_runtime_dir = "/r"}, "/r/millibox/millibox.sock", local, false},
		{{.uid = 7, .env_runtime_dir = "r"}, "/tmp/millibox-7/millibox.sock", local, false},
		{{.uid = 7}, "/tmp/millibox-7/millibox.sock", local, false},
		{{.env_socket = "/s", .env_url = "http://u"}, "/s", local, true},
		{{.env_url = "http://u"}, NULL, "http://u", true},
		{{.env_url = "http://u", .options.socket = "/f"}, "/f", local, true},
		{{.env_socket = "/s", .options.url = "http://f:1//"}, NULL, "http://f:1", true},
		{{.options.url = "https://f", .options.socket = ""}, NULL, "https://f", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		check(&list[i]);
}

static void refuse(const struct endpoint_source *source, const char *part)
{
	struct endpoint e = {0};
	struct error err = {0};

	assert_int_equal(endpoint_choose(source, &e, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.msg, part));
	assert_null(e.url);
}

static void invalid_endpoints_are_rejected(void **state)
{
	char path[256];

	(void)state;
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[108] = '\0';
	refuse(&(struct endpoint_source){.options.socket = "/s", .options.url = "http://u"},
	       "not both");
	refuse(&(struct endpoint_source){.options.url = "127.0.0.1:8000"}, "not a URL");
	refuse(&(struct endpoint_source){.env_url = "file:///etc/passwd"}, "not a URL");
	refuse(&(struct endpoint_source){.options.socket = path}, "too long");
	path[107] = '\0';
	check(&(struct expectation){{.options.socket = path}, path, "http://localhost", true});
}

/* Whether a listening socket in a directory of @mode below /tmp is trusted. */
static bool is_believed(unsigned mode, bool chosen, bool listening)
{
	char dir[] = "/tmp/mbxunit-XXXXXX";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct endpoint e = {.socket = address.sun_path, .chosen = chosen};
	int fd = fd_socket(AF_UNIX, SOCK_STREAM, 0);
	bool served;

	assert_true(fd >= 0);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, mode), 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", dir);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	if (listening)
		assert_int_equal(listen(fd, 1), 0);
	served = endpoint_is_served(&e);
	(void)fd_close(fd);
	assert_int_equal(unlink(address.sun_path), 0);
	assert_int_equal(endpoint_connect(address.sun_path), -ENOENT);
	assert_int_equal(rmdir(dir), 0);
	return served;
}

static void only_a_listening_socket_is_served(void **state)
{
	(void)state;
	assert_true(is_believed(0700, false, true));
	assert_false(is_believed(0700, false, false));
}

static void a_default_directory_that_others_can_write_is_not_trusted(void **state)
{
	(void)state;
	assert_false(is_believed(0777, false, true));
	assert_false(is_believed(0720, false, true));
	/* A socket that the user names is trusted. */
	assert_true(is_believed(0777, true, true));
}

/* Whether the socket of a system's daemon in a directory of @mode is used, if @owner is its owner.
 */
static int try_system(unsigned mode, uid_t owner, bool listening)
{
	char dir[] = "/tmp/mbxunit-XXXXXX";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct endpoint e = {.socket = strdup("/nonexistent")};
	cleanup_close int fd = fd_socket(AF_UNIX, SOCK_STREAM, 0);
	int r;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, mode), 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", dir);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	if (listening)
		assert_int_equal(listen(fd, 1), 0);
	r = endpoint_use_system(&e, address.sun_path, owner);
	assert_string_equal(e.socket, r == 0 ? address.sun_path : "/nonexistent");
	assert_int_equal(unlink(address.sun_path), 0);
	assert_int_equal(rmdir(dir), 0);
	endpoint_done(&e);
	return r;
}

static void the_systems_daemon_is_used_if_nobody_else_can_pose_as_it(void **state)
{
	(void)state;
	assert_int_equal(try_system(0755, geteuid(), true), 0);
	assert_int_equal(try_system(0755, geteuid(), false), -ECONNREFUSED);
	/* Another user's directory, and one where another user may put a socket. */
	assert_int_equal(try_system(0755, geteuid() + 1, true), -EPERM);
	assert_int_equal(try_system(0777, geteuid(), true), -EPERM);
	assert_int_equal(try_system(01777, geteuid(), true), -EPERM);
	assert_int_equal(try_system(0775, geteuid(), true), -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_override_the_environment_and_that_the_defaults),
		cmocka_unit_test(invalid_endpoints_are_rejected),
		cmocka_unit_test(only_a_listening_socket_is_served),
		cmocka_unit_test(a_default_directory_that_others_can_write_is_not_trusted),
		cmocka_unit_test(the_systems_daemon_is_used_if_nobody_else_can_pose_as_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
