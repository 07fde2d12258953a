/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "daemon/home.h"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
	char dir[32];
	char *state, *sub;
};

static int set_up(void **state)
{
	struct place *p = NEW(struct place);

	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/millibox-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	p->sub = xasprintf("%s/sub", p->dir);
	p->state = xasprintf("%s/sub/state", p->dir);
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;
	cleanup_free char *lock = xasprintf("%s/lock", p->state);
	cleanup_free char *roots = xasprintf("%s/roots", p->state);

	(void)unlink(lock);
	(void)rmdir(roots);
	(void)rmdir(p->state);
	(void)unlink(p->state);
	(void)rmdir(p->sub);
	assert_int_equal(rmdir(p->dir), 0);
	free(p->state);
	free(p->sub);
	free(p);
	return 0;
}

static void the_state_directory_is_made_private_and_locked(void **state)
{
	struct place *p = *state;
	struct error err = {0};
	struct stat st;
	int first = -1, second = -1;

	assert_int_equal(home_open_state(p->state, &first, &err), 0);
	assert_int_equal(stat(p->state, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(home_open_state(p->state, &second, &err), -1);
	assert_non_null(strstr(err.msg, "in use"));
	assert_int_equal(second, -1);
	error_clear(&err);
	fd_close(first);
	assert_int_equal(home_open_state(p->state, &second, &err), 0);
	fd_close(second);
}

/* Root changes the owner of its own file under our name, and of nothing else with that name. */
static void only_own_files_change_owner(void **state)
{
	struct place *p = *state;
	cleanup_free char *db = NULL, *other = NULL;
	struct error err = {0};
	struct stat st;
	int lock = -1;

	if (geteuid() != 0)
		skip();
	assert_int_equal(home_open_state(p->state, &lock, &err), 0);
	db = xasprintf("%s/millibox.db", p->state);
	other = xasprintf("%s/other", p->sub);
	assert_int_equal(fd_close(fd_open(db, O_RDWR | O_CREAT, 0644)), -1);
	assert_int_equal(home_give_state(p->state, lock, 12345, 23456, &err), 0);
	assert_int_equal(stat(db, &st), 0);
	assert_true(st.st_uid == 12345 && st.st_gid == 23456 && (st.st_mode & 07777) == 0600);
	assert_int_equal(chown(db, 0, 0), 0);
	assert_int_equal(link(db, other), 0);
	assert_int_equal(home_give_state(p->state, lock, 12345, 23456, &err), -1);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(unlink(db), 0);
	assert_int_equal(symlink(other, db), 0);
	error_clear(&err);
	assert_int_equal(home_give_state(p->state, lock, 12345, 23456, &err), -1);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(unlink(db), 0);
	assert_int_equal(unlink(other), 0);
	fd_close(lock);
}

static void a_link_in_its_place_is_not_followed(void **state)
{
	struct place *p = *state;
	struct error err = {0};
	int fd = -1;

	assert_int_equal(mkdir(p->sub, 0700), 0);
	assert_int_equal(symlink("/tmp", p->state), 0);
	assert_int_equal(home_open_state(p->state, &fd, &err), -1);
	assert_int_equal(fd, -1);
}

static void a_lock_that_is_another_name_of_a_file_is_not_written_to(void **state)
{
	struct place *p = *state;
	cleanup_free char *lock = xasprintf("%s/lock", p->state);
	cleanup_free char *precious = xasprintf("%s/precious", p->dir);
	char name[HOME_NAME_LEN + 1];
	struct error err = {0};
	struct stat st;
	int fd = fd_open(precious, O_WRONLY | O_CREAT, 0600);

	assert_int_equal(write(fd, "root's", 6), 6);
	(void)fd_close(fd);
	assert_int_equal(mkdir(p->sub, 0755), 0);
	assert_int_equal(mkdir(p->state, 0700), 0);
	assert_int_equal(link(precious, lock), 0);
	fd = -1;
	assert_int_equal(home_open_state(p->state, &fd, &err), -1);
	assert_non_null(strstr(err.msg, "not a regular file with one name"));
	assert_int_equal(fd, -1);
	assert_int_equal(stat(precious, &st), 0);
	assert_int_equal(st.st_size, 6);
	/* Negative control: with one name it is our lock, and gets a name written. */
	assert_int_equal(unlink(precious), 0);
	error_clear(&err);
	assert_int_equal(home_open_state(p->state, &fd, &err), 0);
	assert_int_equal(home_name(fd, name, &err), 0);
	(void)fd_close(fd);
}

static void a_directory_that_others_may_change_is_refused(void **state)
{
	struct place *p = *state;
	cleanup_free char *sock = xasprintf("%s/sock", p->sub);
	struct error err = {0};

	assert_int_equal(home_make_parent(sock, geteuid(), false, &err), 0);
	assert_int_equal(chmod(p->sub, 0777), 0);
	assert_int_equal(home_make_parent(sock, geteuid(), false, &err), -1);
	assert_non_null(strstr(err.msg, "other users may write"));
	error_clear(&err);
	assert_int_equal(chmod(p->sub, 01777), 0);
	assert_int_equal(home_make_parent(sock, geteuid(), false, &err), 0);
}

static void a_directory_of_another_user_is_refused(void **state)
{
	const uid_t daemon = 4000000001, stranger = 4000000002;
	struct place *p = *state;
	cleanup_free char *sock = xasprintf("%s/sock", p->sub);
	struct error err = {0};

	if (geteuid() != 0)
		skip(); /* cannot change owners */
	assert_int_equal(mkdir(p->sub, 0755), 0);
	assert_int_equal(home_make_parent(sock, daemon, false, &err), 0);
	assert_int_equal(chown(p->sub, daemon, 0), 0);
	assert_int_equal(home_make_parent(sock, daemon, false, &err), 0);
	assert_int_equal(chown(p->sub, stranger, 0), 0);
	assert_int_equal(home_make_parent(sock, daemon, false, &err), -1);
	assert_non_null(strstr(err.msg, "belongs to user 4000000002"));
	error_clear(&err);
	/* Its owner may rename in it even if it is sticky. */
	assert_int_equal(chmod(p->sub, 01777), 0);
	assert_int_equal(home_make_parent(sock, daemon, false, &err), -1);
	error_clear(&err);
	/* For a daemon of another user /tmp is fine. */
	assert_int_equal(home_make_parent("/tmp/sock", daemon, false, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_state_directory_is_made_private_and_locked,
	                                        set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_own_files_change_owner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_link_in_its_place_is_not_followed, set_up,
	                                        tear_down),
		cmocka_unit_test_setup_teardown(
			a_lock_that_is_another_name_of_a_file_is_not_written_to, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_directory_that_others_may_change_is_refused,
	                                        set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_directory_of_another_user_is_refused, set_up,
	                                        tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
