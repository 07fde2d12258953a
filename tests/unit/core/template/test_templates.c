/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/list.h"
#include "core/config/config.h"
#include "core/template/images.h"
#include "core/template/templates.h"
#include "core/tenant/tenant.h"
#include "core_fixture.h"

/* A store that answers when the test says so. */
struct fixture {
	struct config *config;
	struct tenants *tenants;
	struct runners *runners;
	struct templates *all;
	char dir[32]; /* of imported roots */
	const char *bases[3];
	struct templates_done write; /* in progress */
	unsigned puts, deletes, done, failed;
	bool refuses;
	char unused[BOX_ROOT_LEN]; /* the last unused root */
	struct error err;
};

static int on_put(void *ctx, const struct template *t, struct templates_done done,
                  struct error *err)
{
	struct fixture *f = ctx;

	(void)t;
	if (f->refuses)
		return error_set(err, ERR_STORAGE, 0, "full");
	f->puts++;
	f->write = done;
	return 0;
}

static int on_delete(void *ctx, const struct template *t, struct templates_done done,
                     struct error *err)
{
	struct fixture *f = ctx;

	f->puts--;
	f->deletes++;
	return on_put(ctx, t, done, err);
}

static void on_done(void *ctx, const struct error *err)
{
	struct fixture *f = ctx;

	f->done += err ? 0 : 1;
	f->failed += err ? 1 : 0;
}

static void on_unused(void *ctx, const char *root)
{
	struct fixture *f = ctx;

	(void)snprintf(f->unused, sizeof(f->unused), "%s", root);
}

static void written(struct fixture *f, bool well)
{
	struct error err = {0};

	(void)error_set(&err, ERR_STORAGE, 0, "full");
	f->write.fn(f->write.ctx, well ? NULL : &err);
}

static int set_up(void **state)
{
	struct fixture *f = NEW(struct fixture);
	struct tenant_settings alice = {.name = "alice"};
	const struct templates_events events = {f, on_put, on_delete};

	for (int i = 0; i < QUOTA_COUNT; i++)
		alice.quotas[i] = 0;
	alice.quotas[QUOTA_TEMPLATES] = 2;
	alice.quotas[QUOTA_IMAGES] = 1000;
	f->config = config_parse(NULL, 0, "test", NULL, 0, &f->err);
	f->tenants = tenants_new(f->config);
	assert_non_null(tenants_add(f->tenants, &alice, &f->err));
	f->runners = fixture_runners();
	memcpy(f->dir, "/tmp/templates-XXXXXX", sizeof("/tmp/templates-XXXXXX"));
	assert_non_null(mkdtemp(f->dir));
	f->bases[0] = f->bases[1] = f->dir;
	f->all = templates_new(&(struct templates_config){.host.runners = f->runners,
	                                                  .host.bases = f->bases,
	                                                  .host.has_roots = true,
	                                                  .max = 100,
	                                                  .tenants = f->tenants});
	templates_set_events(f->all, &events);
	images_set_unused(templates_images(f->all), on_unused, f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	const struct tenant *alice = tenants_find(f->tenants, "alice");

	templates_free(f->all);
	assert_int_equal(alice->holds, 0);
	assert_int_equal(alice->templates, 0);
	assert_int_equal(alice->image_bytes, 0);
	tenants_free(f->tenants);
	runners_free(f->runners);
	config_free(f->config);
	(void)rmdir(f->dir);
	free(f);
	return 0;
}

static struct template_spec spec_of(const char *id, const char *image)
{
	return (struct template_spec){.id = (char *)(uintptr_t)id,
	                              .name = (char *)(uintptr_t)id,
	                              .image = (char *)(uintptr_t)image};
}

static int create(struct fixture *f, const char *id)
{
	const struct template_spec spec = spec_of(id, TEMPLATE_HOST);
	struct template *t;

	f->err = (struct error){0};
	return templates_create(f->all, "alice", &spec, (struct templates_done){on_done, f}, &t,
	                        &f->err);
}

static int delete (struct fixture *f, const char *id)
{
	f->err = (struct error){0};
	return templates_delete(f->all, "alice", id, (struct templates_done){on_done, f}, &f->err);
}

static int set_image(struct fixture *f, const char *id, const char *image)
{
	const struct template_spec spec = {.image = (char *)(uintptr_t)image};
	struct template *t;

	f->err = (struct error){0};
	return templates_update(f->all, &(struct templates_update){"alice", id, &spec},
	                        (struct templates_done){on_done, f}, &t, &f->err);
}

/* As after an import. */
static struct template *adopt(struct fixture *f, const char *id, const char *root)
{
	struct template_record record = {.tenant = "alice",
	                                 .spec = spec_of(id, id),
	                                 .root = root,
	                                 .config = "{\"disk_bytes\": 400, \"bytes\": 3}"};
	struct template *t = NULL;

	assert_true(templates_adopt(f->all, &record, NULL, &t, &f->err) >= 0);
	return t;
}

static const struct tenant *alice_of(const struct fixture *f)
{
	return tenants_find(f->tenants, "alice");
}

static void a_quota_of_templates_is_kept_and_given_back(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(create(f, "one"), 0);
	written(f, true);
	assert_int_equal(create(f, "two"), 0);
	written(f, true);
	assert_int_equal(create(f, "three"), -1);
	assert_int_equal(f->err.code, ERR_QUOTA);
	assert_string_equal(f->err.field, "quota.templates");
	assert_null(templates_find(f->all, "alice", "three"));
	assert_int_equal(f->puts, 2); /* a refused one is not written */
	assert_int_equal(delete (f, "one"), 0);
	written(f, true);
	assert_int_equal(create(f, "three"), 0);
	written(f, true);
	assert_int_equal(alice_of(f)->templates, 2);
	assert_int_equal(f->done, 4);
}

static void a_failed_write_does_not_count_for_the_quota(void **state)
{
	struct fixture *f = *state;

	f->refuses = true;
	assert_int_equal(create(f, "one"), -1);
	assert_int_equal(f->err.code, ERR_STORAGE);
	f->refuses = false;
	assert_int_equal(alice_of(f)->templates, 0);
	assert_int_equal(create(f, "one"), 0);
	assert_int_equal(alice_of(f)->templates, 1);
	written(f, false);
	assert_int_equal(alice_of(f)->templates, 0);
	assert_null(templates_find(f->all, "alice", "one"));
	assert_int_equal(create(f, "one"), 0);
	written(f, true);
	assert_int_equal(delete (f, "one"), 0);
	assert_int_equal(alice_of(f)->templates, 0);
	written(f, false); /* restored */
	assert_int_equal(alice_of(f)->templates, 1);
	assert_non_null(templates_find(f->all, "alice", "one"));
	assert_int_equal(f->failed, 2);
}

static void ids_names_and_built_ins(void **state)
{
	struct fixture *f = *state;
	struct template_spec spec = spec_of("other", TEMPLATE_HOST);
	struct template *t;
	const struct templates_done done = {on_done, f};

	assert_int_equal(create(f, "one"), 0);
	written(f, true);
	assert_int_equal(create(f, "one"), -1);
	assert_int_equal(f->err.code, ERR_CONFLICT);
	spec.name = (char *)(uintptr_t) "one";
	f->err = (struct error){0};
	assert_int_equal(templates_create(f->all, "alice", &spec, done, &t, &f->err), -1);
	assert_int_equal(f->err.code, ERR_CONFLICT);
	assert_int_equal(create(f, "shell"), -1);
	assert_int_equal(delete (f, "shell"), -1);
	assert_int_equal(f->err.code, ERR_DENIED);
	assert_int_equal(delete (f, "nobody"), -1);
	assert_int_equal(f->err.code, ERR_TEMPLATE_NOT_FOUND);
	/* Another tenant does not see it. */
	assert_null(templates_find(f->all, "default", "one"));
	assert_int_equal(templates_count(f->all, "alice"), templates_count(f->all, "default") + 1);
	assert_int_equal(templates_made(f->all), 1);
}

static void a_root_is_removed_with_its_last_user(void **state)
{
	struct fixture *f = *state;
	struct template *t = adopt(f, "img", "img-one");
	struct template *user;

	assert_int_equal(alice_of(f)->image_bytes, 400);
	user = template_ref(t); /* an execution, say */
	assert_int_equal(set_image(f, "img", TEMPLATE_HOST), 0);
	written(f, true);
	assert_string_equal(f->unused, "");
	assert_int_equal(alice_of(f)->image_bytes, 400);
	template_unref(user);
	assert_string_equal(f->unused, "img-one");
	assert_int_equal(alice_of(f)->image_bytes, 0);
	assert_null(images_find(templates_images(f->all), "img-one"));
}

static void an_update_that_was_not_written_keeps_its_root(void **state)
{
	struct fixture *f = *state;

	(void)adopt(f, "img", "img-one");
	assert_int_equal(set_image(f, "img", TEMPLATE_HOST), 0);
	assert_string_equal(f->unused, ""); /* not before it is on disk */
	written(f, false);
	assert_string_equal(f->unused, "");
	assert_string_equal(templates_find(f->all, "alice", "img")->root, "img-one");
	assert_int_equal(delete (f, "img"), 0);
	assert_string_equal(f->unused, "");
	written(f, true);
	assert_string_equal(f->unused, "img-one");
}

static void templates_share_an_image(void **state)
{
	struct fixture *f = *state;
	const struct template_spec spec = spec_of("on", "img");
	struct template *t;

	(void)adopt(f, "img", "img-one");
	assert_int_equal(templates_create(f->all, "alice", &spec,
	                                  (struct templates_done){on_done, f}, &t, &f->err),
	                 0);
	written(f, true);
	assert_string_equal(t->root, "img-one");
	assert_int_equal(alice_of(f)->image_bytes, 400);
	assert_int_equal(delete (f, "img"), -1);
	assert_int_equal(f->err.code, ERR_TEMPLATE_IN_USE);
	assert_int_equal(delete (f, "on"), 0);
	written(f, true);
	assert_string_equal(f->unused, "");
	templates_use(f->all, templates_find(f->all, "alice", "img"));
	assert_int_equal(delete (f, "img"), -1);
	templates_release(f->all, templates_find(f->all, "alice", "img"));
	assert_int_equal(delete (f, "img"), 0);
	written(f, true);
	assert_string_equal(f->unused, "img-one");
}

static void a_box_of_before_stands_on_what_was_then(void **state)
{
	struct fixture *f = *state;
	char *env[] = {(char[]){"A=1"}, NULL};
	struct template_spec then = {.env = env};
	struct template *now, *past;

	assert_int_equal(create(f, "one"), 0);
	written(f, true);
	now = templates_find(f->all, "alice", "one");
	past = templates_past(
		f->all, now,
		&(struct templates_then){&(struct image_record){"alice", "img-then", 70}, NULL, 9});
	assert_int_equal(past->kind, TEMPLATE_ON_IMAGE);
	assert_string_equal(past->root, "img-then");
	assert_non_null(past->problem); /* a missing directory */
	assert_int_equal(alice_of(f)->image_bytes, 70);
	template_unref(past);
	assert_string_equal(f->unused, "img-then");
	past = templates_past(
		f->all, now,
		&(struct templates_then){&(struct image_record){"alice", "", 0}, &then, 7});
	assert_string_equal(past->spec.id, "one");
	assert_string_equal(past->spec.env[0], "A=1");
	assert_null(past->spec.env[1]);
	assert_int_equal(past->updated_ms, 7);
	assert_int_equal(past->kind, TEMPLATE_ON_HOST);
	template_unref(past);
}

static void images_have_a_quota_of_bytes(void **state)
{
	struct fixture *f = *state;
	struct images *images = templates_images(f->all);
	struct image *one = images_hold(images, &(struct image_record){"alice", "a", 600}, &f->err);
	struct image *again, *two;

	assert_non_null(one);
	again = images_hold(images, &(struct image_record){"alice", "a", 600}, &f->err);
	assert_ptr_equal(again, one);
	assert_int_equal(tenant_image_room(alice_of(f)), 400);
	assert_null(images_hold(images, &(struct image_record){"alice", "b", 401}, &f->err));
	assert_int_equal(f->err.code, ERR_QUOTA);
	assert_string_equal(f->err.field, "quota.images");
	/* Images from before a restart are kept. */
	two = images_hold(images, &(struct image_record){"alice", "b", 401}, NULL);
	assert_non_null(two);
	assert_int_equal(tenant_image_room(alice_of(f)), 0);
	assert_int_equal(images_bytes(images), 1001);
	image_unref(two);
	image_unref(one);
	assert_int_equal(images_count(images), 1);
	image_unref(again);
	assert_string_equal(f->unused, "a");
}

static void a_reference_may_outlive_the_table(void **state)
{
	struct fixture *f = *state;
	struct images *images = images_new(f->tenants);
	struct image *image = images_hold(images, &(struct image_record){"alice", "a", 5}, &f->err);

	images_free(images);
	assert_int_equal(alice_of(f)->image_bytes, 0);
	image_unref(image);
}

static void the_size_of_an_image_comes_from_its_import(void **state)
{
	(void)state;
	assert_int_equal(image_config_bytes("{\"disk_bytes\": 5, \"bytes\": 7}"), 5);
	assert_int_equal(image_config_bytes("{\"bytes\": 7}"), 7);
	assert_int_equal(image_config_bytes("{\"bytes\": -7}"), 0);
	assert_int_equal(image_config_bytes("{"), 0);
	assert_int_equal(image_config_bytes(NULL), 0);
}

/* As after the operator has installed it. */
static void make_shell(struct fixture *f, const char *root)
{
	cleanup_free char *bin = xasprintf("%s/%s/bin", f->dir, root);
	cleanup_free char *sh = xasprintf("%s/sh", bin);

	assert_int_equal(file_mkdir_parents(bin, 0755), 0);
	assert_int_equal(file_create_at(AT_FDCWD, sh, 0755, "x", 1), 0);
}

static void drop_shell(struct fixture *f, const char *root)
{
	static const char *const parts[] = {"/bin/sh", "/bin", ""};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		cleanup_free char *path = xasprintf("%s/%s%s", f->dir, root, parts[i]);

		assert_int_equal(remove(path), 0);
	}
}

static void what_a_template_lacked_may_come_later(void **state)
{
	struct fixture *f = *state;
	const struct template_spec spec = spec_of("t", "later");
	struct template *t;

	assert_true(templates_create(f->all, "alice", &spec, (struct templates_done){on_done, f},
	                             &t, &f->err) >= 0);
	written(f, true);
	assert_non_null(strstr(t->problem, "no image 'later'"));
	make_shell(f, "later");
	/* Not searched for at every request. */
	assert_non_null(templates_find(f->all, "alice", "t")->problem);
	t->settled_us = 0;
	assert_null(templates_find(f->all, "alice", "t")->problem);
	drop_shell(f, "later");
	assert_int_equal(delete (f, "t"), 0);
	written(f, true);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_quota_of_templates_is_kept_and_given_back),
		UNIT(a_failed_write_does_not_count_for_the_quota),
		UNIT(ids_names_and_built_ins),
		UNIT(a_root_is_removed_with_its_last_user),
		UNIT(an_update_that_was_not_written_keeps_its_root),
		UNIT(templates_share_an_image),
		UNIT(a_box_of_before_stands_on_what_was_then),
		UNIT(images_have_a_quota_of_bytes),
		UNIT(a_reference_may_outlive_the_table),
		UNIT(what_a_template_lacked_may_come_later),
		cmocka_unit_test(the_size_of_an_image_comes_from_its_import),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
