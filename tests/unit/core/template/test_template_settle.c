/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "core/language/manager.h"
#include "core/template/template_settle.h"
#include "core_fixture.h"

struct fixture {
	struct runners *runners;
	char dir[32];
	char *images, *allowed; /* owned; directories of roots */
	const char *bases[3];
	struct template *t;
};

static char *make_dir(const char *a, const char *b)
{
	char *path = xasprintf("%s/%s", a, b);

	assert_int_equal(file_mkdir_parents(path, 0755), 0);
	return path;
}

/* A root with a shell, which is where the runner "demo" looks. */
static void make_root(const char *base, const char *name)
{
	cleanup_free char *root = make_dir(base, name);
	cleanup_free char *bin = make_dir(root, "bin");
	cleanup_free char *sh = xasprintf("%s/sh", bin);

	assert_int_equal(file_create_at(AT_FDCWD, sh, 0755, "x", 1), 0);
}

static int set_up(void **state)
{
	struct fixture *f = NEW(struct fixture);

	f->runners = fixture_runners();
	memcpy(f->dir, "/tmp/settle-XXXXXX", sizeof("/tmp/settle-XXXXXX"));
	assert_non_null(mkdtemp(f->dir));
	f->images = make_dir(f->dir, "images");
	f->allowed = make_dir(f->dir, "allowed");
	f->bases[0] = f->images;
	f->bases[1] = f->allowed;
	make_root(f->images, "img-one");
	make_root(f->allowed, "dir");
	free(make_dir(f->allowed, "empty"));
	f->t = NEW(struct template);
	f->t->refs = 1;
	(void)snprintf(f->t->tenant, sizeof(f->t->tenant), "alice");
	*state = f;
	return 0;
}

static void drop_root(const char *base, const char *name)
{
	static const char *const parts[] = {"/bin/sh", "/bin", ""};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		cleanup_free char *path = xasprintf("%s/%s%s", base, name, parts[i]);

		if (unlink(path) < 0)
			(void)rmdir(path);
	}
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	template_unref(f->t);
	drop_root(f->images, "img-one");
	drop_root(f->allowed, "dir");
	drop_root(f->allowed, "empty");
	(void)rmdir(f->images);
	(void)rmdir(f->allowed);
	assert_int_equal(rmdir(f->dir), 0);
	runners_free(f->runners);
	free(f->images);
	free(f->allowed);
	free(f);
	return 0;
}

static void settle(struct fixture *f, const char *image, bool has_roots)
{
	const struct template_host host = {f->runners, f->bases, has_roots};

	free(f->t->spec.image);
	f->t->spec.image = xstrdup(image);
	template_settle(f->t, &host);
}

static void the_kind_of_a_root_follows_its_image(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *image;
		enum template_kind kind;
		const char *problem; /* part of it; NULL: none */
	} rows[] = {
		{"host", TEMPLATE_ON_HOST, NULL},
		{"dir", TEMPLATE_ON_DIRECTORY, NULL},
		{"empty", TEMPLATE_ON_DIRECTORY, "no program"},
		{"nowhere", TEMPLATE_ON_NOTHING, "no image"},
		{"img-one", TEMPLATE_ON_NOTHING, "no image"}, /* images are their tenant's */
		{"../dir", TEMPLATE_ON_NOTHING, "no image"},
		{".dir", TEMPLATE_ON_NOTHING, "no image"},
		{"dir/bin", TEMPLATE_ON_NOTHING, "no image"},
		{"DIR", TEMPLATE_ON_NOTHING, "no image"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		f->t->root[0] = '\0';
		f->t->kind = TEMPLATE_ON_NOTHING;
		settle(f, rows[i].image, true);
		assert_int_equal(f->t->kind, rows[i].kind);
		if (!rows[i].problem)
			assert_null(f->t->problem);
		else
			assert_non_null(strstr(f->t->problem, rows[i].problem));
	}
}

static void an_imported_root_is_looked_into(void **state)
{
	struct fixture *f = *state;

	f->t->kind = TEMPLATE_ON_IMAGE;
	(void)snprintf(f->t->root, sizeof(f->t->root), "img-one");
	settle(f, "img", true);
	assert_null(f->t->problem);
	assert_string_equal(template_program(f->t, "/bin/sh"), "/bin/sh");
	assert_null(template_program(f->t, "/bin/other"));
	settle(f, "img", false);
	assert_non_null(strstr(f->t->problem, "overlayfs"));
	(void)snprintf(f->t->root, sizeof(f->t->root), "img-gone");
	settle(f, "img", true);
	assert_non_null(strstr(f->t->problem, "cannot be opened"));
}

static void languages_and_packages_must_be_there(void **state)
{
	struct fixture *f = *state;
	struct error err = {0};

	f->t->spec.language = xstrdup("absent");
	settle(f, "dir", true);
	assert_non_null(strstr(f->t->problem, "absent"));
	f->t->kind = TEMPLATE_ON_NOTHING;
	f->t->root[0] = '\0';
	settle(f, "host", true);
	assert_non_null(strstr(f->t->problem, "not installed"));
	free(TAKE_PTR(f->t->spec.language));
	f->t->spec.packages = xcalloc(2, sizeof(char *));
	f->t->spec.packages[0] = xstrdup("surely-not-there");
	f->t->kind = TEMPLATE_ON_NOTHING;
	f->t->root[0] = '\0';
	settle(f, "dir", true);
	assert_non_null(strstr(f->t->problem, "surely-not-there"));
	assert_int_equal(template_check_packages(f->t, f->bases, &err), -1);
	assert_string_equal(err.field, "packages[0]");
}

static void lists_are_of_names(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *package, *module;
		bool good;
	} rows[] = {
		{"numpy", "a.b_c", true}, {"n==1.2", "os", true}, {"../x", "os", false},
		{"a b", "os", false},     {"", "os", false},      {"x", "os;", false},
		{"x", ".os", false},      {"x", "os.", false},    {"x", "", false},
	};

	(void)f;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *packages[] = {(char *)(uintptr_t)rows[i].package, NULL};
		char *modules[] = {(char *)(uintptr_t)rows[i].module, NULL};
		const struct template_spec spec = {.packages = packages, .preload = modules};
		struct error err = {0};

		assert_int_equal(template_check_lists(&spec, &err), rows[i].good ? 0 : -1);
	}
}

/* What an image has, its author chose; the host has what it has by chance. */
static void packages_hide_those_of_the_host(void **state attr_unused)
{
	static const struct {
		const char *manager, *root;
		uint64_t system_packages;
		bool hides;
	} rows[] = {
		{"pip", "", TEMPLATE_UNSAID, true},    {"pip", "", TEMPLATE_NO, true},
		{"pip", "", TEMPLATE_YES, false},      {"npm", "", TEMPLATE_UNSAID, true},
		{"pip", "img-1", TEMPLATE_NO, false},  {"npm", "img-1", TEMPLATE_UNSAID, false},
		{"cargo", "", TEMPLATE_UNSAID, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct template t = {.spec.system_packages = rows[i].system_packages};

		assert_int_equal(str_copy(t.root, sizeof(t.root), rows[i].root), 0);
		assert_int_equal(template_hides_host(&t, manager_find(rows[i].manager)),
		                 rows[i].hides);
	}
	assert_true(template_hides_host(NULL, manager_find("pip")));
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(the_kind_of_a_root_follows_its_image),
		UNIT(an_imported_root_is_looked_into),
		UNIT(languages_and_packages_must_be_there),
		UNIT(lists_are_of_names),
		cmocka_unit_test(packages_hide_those_of_the_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
