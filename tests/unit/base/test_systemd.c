/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/systemd.h"

/* The host that the functions see. */
static struct {
	bool booted, v2, has_program;
	const char *manager; /* directory of a manager; NULL: none runs */
	uid_t owner;
} host;

int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
	(void)mode;
	if (strcmp(path, "/run/systemd/system") == 0)
		return host.booted ? 0 : -1;
	assert_string_equal(path, SYSTEMD_RUN);
	return host.has_program ? 0 : -1;
}

/* The build has files of 64 bits. */
int __wrap_statfs64(const char *path, struct statfs *fs);
int __wrap_statfs64(const char *path, struct statfs *fs)
{
	assert_string_equal(path, "/sys/fs/cgroup");
	*fs = (struct statfs){.f_type = host.v2 ? CGROUP2_SUPER_MAGIC : TMPFS_MAGIC};
	return 0;
}

int __wrap_stat64(const char *path, struct stat *st);
int __wrap_stat64(const char *path, struct stat *st)
{
	char socket[256] = "";

	if (host.manager)
		(void)snprintf(socket, sizeof(socket), "%s/systemd/private", host.manager);
	if (strcmp(path, socket) != 0)
		return -1;
	*st = (struct stat){.st_mode = S_IFSOCK | 0755, .st_uid = host.owner};
	return 0;
}

static int desktop(void **state)
{
	(void)state;
	host.booted = host.v2 = host.has_program = true;
	host.manager = "/run/somewhere";
	host.owner = geteuid();
	return setenv("XDG_RUNTIME_DIR", "/run/somewhere", 1);
}

static void a_desktop_delegates(void **state)
{
	cleanup_free char *dir = NULL;

	(void)state;
	assert_int_equal(systemd_delegation(), SYSTEMD_DELEGATES);
	dir = systemd_runtime_dir();
	assert_string_equal(dir, "XDG_RUNTIME_DIR=/run/somewhere");
}

static void each_condition_is_needed(void **state)
{
	(void)state;
	host.booted = false;
	assert_int_equal(systemd_delegation(), SYSTEMD_NONE);
	host.booted = true;
	host.v2 = false;
	assert_int_equal(systemd_delegation(), SYSTEMD_V1);
	host.v2 = true;
	host.has_program = false;
	assert_int_equal(systemd_delegation(), SYSTEMD_NO_PROGRAM);
	host.manager = NULL;
	assert_int_equal(systemd_delegation(), SYSTEMD_NO_MANAGER);
}

static void a_manager_of_another_user_is_none(void **state)
{
	(void)state;
	host.owner = geteuid() + 1;
	assert_int_equal(systemd_delegation(), SYSTEMD_NO_MANAGER);
	assert_null(systemd_runtime_dir());
}

static void without_the_variable_the_usual_place_counts(void **state)
{
	cleanup_free char *usual = xasprintf("/run/user/%u", (unsigned)geteuid());
	cleanup_free char *wanted = xasprintf("XDG_RUNTIME_DIR=%s", usual);
	cleanup_free char *dir = NULL;

	(void)state;
	host.manager = usual;
	/* A variable that is set has precedence. */
	assert_int_equal(systemd_delegation(), SYSTEMD_NO_MANAGER);
	assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
	assert_int_equal(systemd_delegation(), SYSTEMD_DELEGATES);
	dir = systemd_runtime_dir();
	assert_string_equal(dir, wanted);
}

static void the_words_end_before_the_program(void **state)
{
	static const char *const words[] = {SYSTEMD_SCOPE_WORDS};

	(void)state;
	assert_int_equal(sizeof(words) / sizeof(words[0]), SYSTEMD_SCOPE_COUNT);
	assert_string_equal(words[SYSTEMD_SCOPE_COUNT - 1], "--");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_desktop_delegates, desktop),
		cmocka_unit_test_setup(each_condition_is_needed, desktop),
		cmocka_unit_test_setup(a_manager_of_another_user_is_none, desktop),
		cmocka_unit_test_setup(without_the_variable_the_usual_place_counts, desktop),
		cmocka_unit_test(the_words_end_before_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
