/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/str.h"
#include "core/template/template.h"
#include "core/template/toolchains.h"
#include "core_fixture.h"

/* "demo" is at /bin/sh, of the host and of the root "dir"; "absent" is nowhere. */
struct fixture {
	char dir[40];
	const char *bases[2];
	struct runners *runners;
	const struct runner *demo, *absent;
	struct toolchains *all;
	struct template *t; /* on "dir" */
};

/* @name: of a file below the base. */
static void put(const struct fixture *f, const char *name, const char *text)
{
	cleanup_free char *path = xasprintf("%s/%s", f->dir, name);
	cleanup_free char *folder = xstrndup(path, (size_t)(strrchr(path, '/') - path));

	assert_int_equal(file_mkdir_parents(folder, 0755), 0);
	(void)unlink(path);
	assert_int_equal(file_create_at(AT_FDCWD, path, 0755, text, strlen(text)), 0);
}

static void drop(const struct fixture *f)
{
	static const char *const names[] = {
		"dir/bin/sh",
		"dir/bin",
		"dir/var/lib/dpkg/status",
		"dir/var/lib/dpkg",
		"dir/var/lib",
		"dir/var",
		"dir",
		"",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_free char *path = xasprintf("%s/%s", f->dir, names[i]);

		if (unlink(path) < 0)
			(void)rmdir(path);
	}
}

static int set_up(void **state)
{
	struct fixture *f = NEW(struct fixture);
	char *programs[] = {(char *)"/bin/sh", (char *)"/bin/sh", NULL};

	if (str_copy(f->dir, sizeof(f->dir), "/tmp/millibox-toolchains-XXXXXX") < 0 ||
	    !mkdtemp(f->dir))
		return -1;
	f->bases[0] = f->dir;
	put(f, "dir/bin/sh", "#!/bin/true\n");
	put(f, "dir/var/lib/dpkg/status", "one\n");
	f->runners = fixture_runners_with("debian: [demo-tools, libdemo-dev]\n");
	f->demo = runners_find(f->runners, "demo");
	f->absent = runners_find(f->runners, "absent");
	f->all = toolchains_new(f->bases);
	f->t = NEW(struct template);
	f->t->refs = 1;
	f->t->kind = TEMPLATE_ON_DIRECTORY;
	f->t->spec.id = xstrdup("mine");
	f->t->programs = str_list_copy(programs);
	assert_int_equal(str_copy(f->t->root, sizeof(f->t->root), "dir"), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	template_unref(f->t);
	toolchains_free(f->all);
	runners_free(f->runners);
	drop(f);
	free(f);
	return 0;
}

/* @t NULL: the host. */
static void learn(struct fixture *f, const struct template *t, enum toolchain_state verdict)
{
	struct toolchain_verdict v = {.state = verdict,
	                              .reason = verdict == TOOLCHAIN_FAILS ? "no header" : NULL,
	                              .version = "1.2"};

	toolchains_key(f->all, t, f->demo, &v.key);
	toolchains_learn(f->all, t, f->demo, &v);
}

static void expect(struct fixture *f, const struct template *t, bool is_there, bool is_checked)
{
	struct toolchain_view view;

	toolchains_view(f->all, t, f->demo, &view);
	assert_int_equal(view.is_there, is_there);
	assert_int_equal(view.is_checked, is_checked);
	assert_int_equal(toolchains_has(f->all, t, f->demo), is_there);
	if (is_there)
		assert_null(view.missing);
	else
		assert_string_equal(view.missing, "no header");
}

static void files_decide_without_a_verdict(void **state)
{
	struct fixture *f = *state;
	struct toolchain_view view;
	struct error err = {0};

	expect(f, NULL, true, false);
	expect(f, f->t, true, false);
	assert_true(toolchains_has(NULL, NULL, f->demo));
	assert_false(toolchains_has(NULL, NULL, f->absent));
	toolchains_view(f->all, NULL, f->absent, &view);
	assert_false(view.is_there);
	assert_string_equal(view.missing, "/nonexistent/absent");
	assert_int_equal(toolchains_require(f->all, NULL, f->absent, &err), -1);
	assert_int_equal(err.code, ERR_NO_LANGUAGE);
	assert_int_equal(error_http(err.code), 400);
	assert_non_null(strstr(err.msg, "is not installed on the daemon's host"));
	/* Files that are not there need no box. */
	assert_true(toolchains_is_due(f->all, NULL, f->demo, false));
	assert_false(toolchains_is_due(f->all, NULL, f->absent, true));
}

static void a_verdict_counts_for_its_root_alone(void **state)
{
	struct fixture *f = *state;
	struct toolchain_view view;
	struct error err = {0};

	learn(f, NULL, TOOLCHAIN_FAILS);
	expect(f, NULL, false, true);
	expect(f, f->t, true, false);
	learn(f, f->t, TOOLCHAIN_WORKS);
	expect(f, NULL, false, true);
	expect(f, f->t, true, true);
	toolchains_view(f->all, f->t, f->demo, &view);
	assert_string_equal(view.version, "1.2");
	assert_int_equal(toolchains_require(f->all, f->t, f->demo, &err), 0);
	assert_int_equal(toolchains_require(f->all, NULL, f->demo, &err), -1);
	assert_string_equal(err.field, "language");
	assert_string_equal(err.msg,
	                    "'demo' does not work on the daemon's host; there run: millibox "
	                    "languages --install demo (apt-get install demo-tools libdemo-dev). It "
	                    "said: no header");
}

static void an_images_languages_are_installed_in_the_image(void **state)
{
	struct fixture *f = *state;
	struct error err = {0};

	learn(f, f->t, TOOLCHAIN_FAILS);
	assert_int_equal(toolchains_require(f->all, f->t, f->demo, &err), -1);
	assert_null(strstr(err.msg, "millibox languages"));
	assert_non_null(strstr(err.msg, "in the root of template 'mine'; its image needs: apt-get "
	                                "install demo-tools libdemo-dev"));
}

static void a_verdict_ends_with_what_it_was_about(void **state)
{
	struct fixture *f = *state;

	learn(f, f->t, TOOLCHAIN_FAILS);
	expect(f, f->t, false, true);
	put(f, "dir/bin/sh", "#!/bin/true, another\n");
	expect(f, f->t, true, false);
	learn(f, f->t, TOOLCHAIN_FAILS);
	expect(f, f->t, false, true);
	put(f, "dir/var/lib/dpkg/status", "one and two\n");
	expect(f, f->t, true, false);
	learn(f, f->t, TOOLCHAIN_WORKS);
	assert_false(toolchains_is_due(f->all, f->t, f->demo, false));
	assert_true(toolchains_is_due(f->all, f->t, f->demo, true));
	put(f, "dir/bin/sh", "#!/bin/true, a third\n");
	assert_true(toolchains_is_due(f->all, f->t, f->demo, false));
}

/* What changed meanwhile was not checked. */
static void a_verdict_is_of_its_beginning(void **state)
{
	struct fixture *f = *state;
	struct toolchain_verdict v = {.state = TOOLCHAIN_FAILS, .reason = "no header"};

	toolchains_key(f->all, f->t, f->demo, &v.key);
	put(f, "dir/var/lib/dpkg/status", "one and two\n");
	toolchains_learn(f->all, f->t, f->demo, &v);
	expect(f, f->t, true, false);
}

static void an_imported_root_never_changes(void **state)
{
	struct fixture *f = *state;

	f->t->kind = TEMPLATE_ON_IMAGE;
	learn(f, f->t, TOOLCHAIN_FAILS);
	put(f, "dir/bin/sh", "#!/bin/true, another\n");
	expect(f, f->t, false, true);
}

static void a_box_that_says_nothing_changes_nothing(void **state)
{
	struct fixture *f = *state;

	learn(f, NULL, TOOLCHAIN_UNKNOWN);
	expect(f, NULL, true, false);
	assert_false(toolchains_is_due(f->all, NULL, f->demo, false));
	learn(f, NULL, TOOLCHAIN_UNCHECKED);
	expect(f, NULL, true, false);
}

static void few_roots_are_remembered(void **state)
{
	struct fixture *f = *state;

	f->t->kind = TEMPLATE_ON_IMAGE;
	for (int i = 0; i < 40; i++) {
		(void)snprintf(f->t->root, sizeof(f->t->root), "img-%d", i);
		learn(f, f->t, TOOLCHAIN_FAILS);
		expect(f, f->t, false, true);
	}
	assert_int_equal(str_copy(f->t->root, sizeof(f->t->root), "img-0"), 0);
	expect(f, f->t, true, false);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(files_decide_without_a_verdict),
		UNIT(a_verdict_counts_for_its_root_alone),
		UNIT(an_images_languages_are_installed_in_the_image),
		UNIT(a_verdict_ends_with_what_it_was_about),
		UNIT(a_verdict_is_of_its_beginning),
		UNIT(an_imported_root_never_changes),
		UNIT(a_box_that_says_nothing_changes_nothing),
		UNIT(few_roots_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
