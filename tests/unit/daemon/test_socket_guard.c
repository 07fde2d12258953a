/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "daemon/socket_guard.h"
#include "http/server.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

struct place {
	char dir[32], path[64];
	int fd;
	int lock; /* of the process that starts the guard */
};

/* Another open file than the lock's own, as another daemon has. */
static int open_lock(const struct place *p)
{
	cleanup_free char *path = xasprintf("%s/lock", p->dir);
	int fd = fd_open(path, O_RDWR | O_CREAT, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void place_open(struct place *p)
{
	struct error err = {0};

	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/millibox-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	(void)snprintf(p->path, sizeof(p->path), "%s/sock", p->dir);
	assert_int_equal(http_listen_unix(p->path, 0600, &p->fd, &err), 0);
	p->lock = open_lock(p);
	assert_int_equal(flock(p->lock, LOCK_EX | LOCK_NB), 0);
}

static void place_close(struct place *p)
{
	cleanup_free char *lock = xasprintf("%s/lock", p->dir);

	fd_close(p->fd);
	fd_close(p->lock);
	(void)unlink(p->path);
	(void)unlink(lock);
	assert_int_equal(rmdir(p->dir), 0);
}

static void the_socket_is_removed_at_the_end(void **state)
{
	struct guard g;
	struct error err = {0};
	struct place p;
	struct stat st;

	(void)state;
	place_open(&p);
	assert_int_equal(socket_guard_start(&g, p.path, p.lock, &err), 0);
	assert_int_equal(stat(p.path, &st), 0);
	guard_end(&g);
	assert_int_equal(stat(p.path, &st), -1);
	place_close(&p);
}

static void the_socket_of_a_successor_is_left_alone(void **state)
{
	struct guard g;
	struct error err = {0};
	struct place p;
	struct stat st;
	int other = -1;

	(void)state;
	place_open(&p);
	assert_int_equal(socket_guard_start(&g, p.path, p.lock, &err), 0);
	/* The old inode stays in use under another name, so that the new one differs. */
	{
		cleanup_free char *aside = xasprintf("%s/aside", p.dir);

		assert_int_equal(rename(p.path, aside), 0);
		assert_int_equal(http_listen_unix(p.path, 0600, &other, &err), 0);
		guard_end(&g);
		assert_int_equal(stat(p.path, &st), 0);
		assert_int_equal(unlink(aside), 0);
	}
	fd_close(other);
	place_close(&p);
}

/* Its daemon is a child that is killed. The next one gets the lock when the name is free. */
static void the_socket_is_removed_also_when_its_daemon_is_killed(void **state)
{
	struct place p;
	int next;
	struct stat st;
	int ready[2];
	pid_t pid;
	char byte;

	(void)state;
	place_open(&p);
	assert_int_equal(fd_pipe(ready, 0), 0);
	pid = fork();
	if (pid == 0) {
		struct guard g;
		struct error err = {0};

		if (socket_guard_start(&g, p.path, p.lock, &err) < 0 ||
		    write(ready[1], "x", 1) != 1)
			_exit(1);
		(void)pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	/* Theirs alone from here on. */
	next = open_lock(&p);
	p.lock = fd_close(p.lock);
	assert_int_equal(flock(next, LOCK_EX | LOCK_NB), -1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(flock(next, LOCK_EX), 0);
	assert_int_equal(stat(p.path, &st), -1);
	fd_close(next);
	fd_close(ready[0]);
	fd_close(ready[1]);
	place_close(&p);
}

/* Only a privileged process can keep a privilege. */
static void only_root(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_socket_is_removed_at_the_end),
		cmocka_unit_test(the_socket_of_a_successor_is_left_alone),
		cmocka_unit_test(the_socket_is_removed_also_when_its_daemon_is_killed),
	};
	const struct CMUnitTest others[] = {cmocka_unit_test(only_root)};

	return geteuid() == 0 ? cmocka_run_group_tests(tests, NULL, NULL)
	                      : cmocka_run_group_tests(others, NULL, NULL);
}
