/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/install_paths.h"
#include "base/str.h"
#include "core/config/default_paths.h"

static void expect(const struct default_paths_who *who, const char *key, const char *path)
{
	cleanup_free char *value = default_paths_value(who, key);

	assert_non_null(value);
	assert_string_equal(value, path);
}

static void root_has_the_system_directories(void **state)
{
	const struct default_paths_who who = {
		.runtime = "/run/user/0", .state = "/s", .home = "/root"};

	(void)state;
	expect(&who, "socket", "/run/millibox/millibox.sock");
	expect(&who, "runtime_dir", "/run/millibox");
	expect(&who, "state_dir", "/var/lib/millibox");
}

static void a_user_has_its_own_directories(void **state)
{
	const struct default_paths_who full = {
		.uid = 1000, .runtime = "/run/user/1000", .state = "/h/s", .home = "/h"};
	const struct default_paths_who bare = {
		.uid = 1000, .runtime = "", .state = "rel", .home = "/h"};
	const struct default_paths_who none = {.uid = 1000};

	(void)state;
	expect(&full, "socket", "/run/user/1000/millibox/millibox.sock");
	expect(&full, "runtime_dir", "/run/user/1000/millibox");
	expect(&full, "state_dir", "/h/s/millibox");
	expect(&bare, "socket", "/tmp/millibox-1000/millibox.sock");
	expect(&bare, "state_dir", "/h/.local/state/millibox");
	expect(&none, "state_dir", "/tmp/millibox-1000");
}

static void touch(const char *dir, const char *name)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name);
	char *slash = strrchr(path, '/');

	*slash = '\0';
	assert_int_equal(file_mkdir_parents(path, 0755), 0);
	*slash = '/';
	assert_int_equal(file_create_at(AT_FDCWD, path, 0755, "", 0), 0);
}

static void remove_tree(const char *dir)
{
	static const char *const names[] = {"bin/millibox-agent",
	                                    "bin/millibox-engine",
	                                    "bin",
	                                    "runners/shell/manifest.yaml",
	                                    "runners/shell",
	                                    "runners",
	                                    ""};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_free char *path = xasprintf("%s/%s", dir, names[i]);

		(void)remove(path);
	}
}

/* A separate folder with known neighbours. */
static char *make_bin(char *dir)
{
	char *bin;

	assert_non_null(mkdtemp(dir));
	bin = xasprintf("%s/bin", dir);
	assert_int_equal(file_mkdir_parents(bin, 0755), 0);
	return bin;
}

static void programs_are_found_in_place(void **state)
{
	char dir[] = "/tmp/millibox-places-XXXXXX";
	cleanup_free char *bin = make_bin(dir);
	cleanup_free char *engine = xasprintf("%s/millibox-engine", bin);
	cleanup_free char *agent = xasprintf("%s/millibox-agent", bin);
	const struct default_paths_who who = {.exe_dir = bin};

	(void)state;
	expect(&who, "engine_path", MILLIBOX_LIBEXECDIR "/millibox-engine");
	expect(&who, "runners_dir", MILLIBOX_RUNNERSDIR);
	touch(bin, "millibox-agent");
	touch(bin, "millibox-engine");
	expect(&who, "agent_path", agent);
	expect(&who, "engine_path", engine);
	remove_tree(dir);
}

static void folder_without_runners_does_not_count(void **state)
{
	char dir[] = "/tmp/millibox-places-XXXXXX";
	cleanup_free char *bin = make_bin(dir);
	cleanup_free char *beside = xasprintf("%s/runners", dir);
	const struct default_paths_who who = {.exe_dir = bin};

	(void)state;
	assert_int_equal(file_mkdir_parents(beside, 0755), 0);
	expect(&who, "runners_dir", MILLIBOX_RUNNERSDIR);
	touch(dir, "runners/shell/manifest.yaml");
	expect(&who, "runners_dir", beside);
	remove_tree(dir);
}

/* A build directory in /tmp has a neighbour that any user could have made. */
static void files_that_others_can_change_are_ignored(void **state)
{
	char dir[] = "/tmp/millibox-places-XXXXXX";
	cleanup_free char *bin = make_bin(dir);
	cleanup_free char *beside = xasprintf("%s/runners", dir);
	const struct default_paths_who who = {.exe_dir = bin};

	(void)state;
	touch(dir, "runners/shell/manifest.yaml");
	assert_int_equal(chmod(beside, 0777), 0);
	expect(&who, "runners_dir", MILLIBOX_RUNNERSDIR);
	if (geteuid() == 0) {
		assert_int_equal(chmod(beside, 0755), 0);
		assert_int_equal(chown(beside, 12345, 0), 0);
		expect(&who, "runners_dir", MILLIBOX_RUNNERSDIR);
	}
	remove_tree(dir);
}

static void installed_daemon_looks_nowhere_else(void **state)
{
	const struct default_paths_who in_bin = {.exe_dir = MILLIBOX_BINDIR};
	const struct default_paths_who unknown = {.exe_dir = NULL};

	(void)state;
	expect(&in_bin, "agent_path", MILLIBOX_LIBEXECDIR "/millibox-agent");
	expect(&unknown, "agent_path", MILLIBOX_LIBEXECDIR "/millibox-agent");
}

static void other_keys_have_no_place(void **state)
{
	const struct default_paths_who who = {0};

	(void)state;
	assert_null(default_paths_value(&who, "listen"));
	assert_string_equal(default_paths_hint("listen"), "");
	assert_true(strlen(default_paths_hint("socket")) > 0);
}

static void own_folder_is_known(void **state)
{
	cleanup_free char *dir = default_paths_exe_dir();
	cleanup_free char *self = NULL;

	(void)state;
	assert_non_null(dir);
	self = xasprintf("%s/test_core_config_default_paths", dir);
	assert_int_equal(access(self, X_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_has_the_system_directories),
		cmocka_unit_test(a_user_has_its_own_directories),
		cmocka_unit_test(programs_are_found_in_place),
		cmocka_unit_test(folder_without_runners_does_not_count),
		cmocka_unit_test(files_that_others_can_change_are_ignored),
		cmocka_unit_test(installed_daemon_looks_nowhere_else),
		cmocka_unit_test(other_keys_have_no_place),
		cmocka_unit_test(own_folder_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
