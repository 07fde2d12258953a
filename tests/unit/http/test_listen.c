/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/file.h"
#include "http/server.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

static char *scratch_path(void)
{
	char *dir = xstrdup("/tmp/millibox-test-XXXXXX");

	assert_non_null(mkdtemp(dir));
	return dir;
}

static void only_loopback_is_loopback(void **state)
{
	(void)state;
	assert_true(http_address_is_loopback("127.0.0.1:8000"));
	assert_true(http_address_is_loopback("127.9.9.9:0"));
	assert_true(http_address_is_loopback("[::1]:8000"));
	assert_false(http_address_is_loopback("0.0.0.0:8000"));
	assert_false(http_address_is_loopback("[::]:8000"));
	assert_false(http_address_is_loopback("10.0.0.1:8000"));
	assert_false(http_address_is_loopback("[::ffff:127.0.0.1]:8000"));
	assert_false(http_address_is_loopback("localhost:8000"));
	assert_false(http_address_is_loopback(""));
}

static void addresses_are_numeric(void **state)
{
	static const char *const bad[] = {
		"",           "8000",        "localhost:1",  "127.0.0.1",
		"127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:65536",
		"[::1]",      "[::1:80",     "::1:80",       "127.1:80"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct error err = {0};
		int fd = -1;

		assert_int_equal(http_listen_tcp(bad[i], &fd, &err), -1);
		assert_int_equal(err.code, ERR_CONFIG);
		assert_int_equal(fd, -1);
	}
}

static void a_port_in_use_is_reported(void **state)
{
	struct error err = {0};
	cleanup_close int first = -1;
	char name[64];
	int second = -1;

	(void)state;
	assert_int_equal(http_listen_tcp("127.0.0.1:0", &first, &err), 0);
	assert_int_equal(http_listen_name(first, "http", name, sizeof(name)), 0);
	assert_int_equal(http_listen_tcp(name + strlen("http://"), &second, &err), -1);
	assert_non_null(strstr(err.msg, "in use"));
	assert_non_null(strstr(err.msg, name + strlen("http://")));
}

static void a_dead_socket_is_replaced_and_a_live_one_kept(void **state)
{
	cleanup_free char *dir = scratch_path();
	cleanup_free char *path = xasprintf("%s/sock", dir);
	struct error err = {0};
	struct stat st;
	int first = -1, second = -1;

	(void)state;
	assert_int_equal(http_listen_unix(path, 0600, &first, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(http_listen_unix(path, 0600, &second, &err), -1);
	assert_non_null(strstr(err.msg, "in use"));
	error_clear(&err);
	fd_close(first);
	assert_int_equal(http_listen_unix(path, 0660, &second, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	fd_close(second);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void a_file_in_the_place_of_the_socket_is_kept(void **state)
{
	cleanup_free char *dir = scratch_path();
	cleanup_free char *path = xasprintf("%s/notes", dir);
	struct error err = {0};
	struct stat st;
	int fd = -1;

	(void)state;
	assert_int_equal(file_create_at(AT_FDCWD, path, 0600, "text", 4), 0);
	assert_int_equal(http_listen_unix(path, 0600, &fd, &err), -1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 4);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void a_path_that_does_not_fit_is_an_error(void **state)
{
	char path[200];
	struct error err = {0};
	int fd = -1;

	(void)state;
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(http_listen_unix(path, 0600, &fd, &err), -1);
	assert_non_null(strstr(err.msg, "longer"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_loopback_is_loopback),
		cmocka_unit_test(addresses_are_numeric),
		cmocka_unit_test(a_port_in_use_is_reported),
		cmocka_unit_test(a_dead_socket_is_replaced_and_a_live_one_kept),
		cmocka_unit_test(a_file_in_the_place_of_the_socket_is_kept),
		cmocka_unit_test(a_path_that_does_not_fit_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
