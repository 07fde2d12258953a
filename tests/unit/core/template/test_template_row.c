/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "core/template/template_row.h"
#include "core/template/templates.h"
#include "store_fixture.h"

/* A second table on the same file plays the next daemon. */

static struct templates *make_templates(struct rig *rig)
{
	static const char *const bases[] = {"/nonexistent", NULL};

	return templates_new(&(struct templates_config){.host.runners = rig->f->runners,
	                                                .host.bases = bases,
	                                                .host.has_roots = true,
	                                                .max = 10});
}

/* Before it is started. */
static void load(struct rig *rig, struct store *store, struct templates *all)
{
	if (template_row_keep(store, all, &rig->f->err) < 0)
		fail_msg("%s", rig->f->err.msg);
}

/* A table that writes to the rig's started store: it is read from an empty one first. */
static struct templates *begin_templates(struct rig *rig)
{
	struct templates *all = make_templates(rig);
	struct store *store = NULL;

	/* The rig's own is started: use one that is not. */
	session_service_free(rig->f->service);
	store_close(TAKE_PTR(rig->store));
	assert_int_equal(store_open(rig->dir, &store, &rig->f->err), 0);
	load(rig, store, all);
	assert_int_equal(store_start(store, rig->f->loop, NULL, &rig->f->err), 0);
	rig->store = store;
	rig_serve(rig);
	return all;
}

static struct template *find_again(struct rig *rig, struct templates **ret_all, const char *id)
{
	struct store *store = NULL;

	rig_flush(rig);
	assert_int_equal(store_open(rig->dir, &store, &rig->f->err), 0);
	*ret_all = make_templates(rig);
	load(rig, store, *ret_all);
	store_close(store);
	return templates_find(*ret_all, "acme", id);
}

static const struct template_spec *full_spec(void)
{
	static char *packages[] = {(char *)"numpy", NULL}, *preload[] = {(char *)"json", NULL};
	static char *env[] = {(char *)"A=b", (char *)"C=", NULL};
	static const struct template_spec spec = {
		.id = (char *)"mine",
		.name = (char *)"Mine",
		.description = (char *)"what it is for",
		.image = (char *)"nowhere",
		.base_image = (char *)"base",
		.runtime_type = (char *)"python3",
		.language = (char *)"python",
		.security_context = (char *)"{}",
		.packages = packages,
		.preload = preload,
		.env = env,
		.memory_bytes = 1u << 28,
		.disk_bytes = 1u << 27,
		.cpu_millicores = 500,
		.max_processes = 17,
		.timeout_us = 90000000,
	};

	return &spec;
}

static struct templates_done done_of(struct rig *rig)
{
	return (struct templates_done){rig_on_done, rig};
}

static void expect_same_list(char *const *a, char *const *b)
{
	for (; *a && *b; a++, b++)
		assert_string_equal(*a, *b);
	assert_null(*a);
	assert_null(*b);
}

static void expect_same_spec(const struct template_spec *a, const struct template_spec *b)
{
	assert_string_equal(a->id, b->id);
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->description, b->description);
	assert_string_equal(a->image, b->image);
	assert_string_equal(a->base_image, b->base_image);
	assert_string_equal(a->runtime_type, b->runtime_type);
	assert_string_equal(a->language, b->language);
	assert_string_equal(a->security_context, b->security_context);
	expect_same_list(a->packages, b->packages);
	expect_same_list(a->preload, b->preload);
	expect_same_list(a->env, b->env);
	assert_int_equal(a->memory_bytes, b->memory_bytes);
	assert_int_equal(a->disk_bytes, b->disk_bytes);
	assert_int_equal(a->cpu_millicores, b->cpu_millicores);
	assert_int_equal(a->max_processes, b->max_processes);
	assert_int_equal(a->timeout_us, b->timeout_us);
}

static struct template *create_full(struct rig *rig, struct templates *all)
{
	struct template *t = NULL;
	int before = rig->callbacks;

	if (templates_create(all, "acme", full_spec(), done_of(rig), &t, &rig->f->err) != 0)
		fail_msg("%s", rig->f->err.msg);
	assert_int_equal(rig->callbacks, before); /* from the loop */
	rig_wait(rig, before + 1);
	return t;
}

static void every_field_comes_back(void **state)
{
	struct rig *rig = *state;
	struct templates *all = begin_templates(rig), *later = NULL;
	struct template *t = create_full(rig, all), *past;

	assert_false(error_is_set(&rig->last));
	past = find_again(rig, &later, "mine");
	assert_non_null(past);
	expect_same_spec(&past->spec, full_spec());
	assert_int_equal(past->created_ms, t->created_ms);
	assert_int_equal(past->updated_ms, t->updated_ms);
	assert_null(templates_find(later, "other", "mine"));
	templates_free(later);
	templates_free(all);
}

static void changes_and_the_end_are_kept(void **state)
{
	struct rig *rig = *state;
	struct templates *all = begin_templates(rig), *later = NULL;
	const struct template_spec renamed = {.name = (char *)"Renamed"};
	const struct templates_update update = {"acme", "mine", &renamed};
	struct template *t = create_full(rig, all);

	assert_int_equal(templates_update(all, &update, done_of(rig), &t, &rig->f->err), 0);
	rig_wait(rig, 2);
	assert_string_equal(find_again(rig, &later, "mine")->spec.name, "Renamed");
	templates_free(later);
	assert_int_equal(templates_delete(all, "acme", "mine", done_of(rig), &rig->f->err), 0);
	rig_wait(rig, 3);
	assert_null(find_again(rig, &later, "mine"));
	templates_free(later);
	templates_free(all);
}

static void a_failed_write_is_undone(void **state)
{
	struct rig *rig = *state;
	struct templates *all = begin_templates(rig);
	const struct template_spec renamed = {.name = (char *)"Renamed"};
	const struct templates_update update = {"acme", "mine", &renamed};
	struct template *t = NULL;
	int before;

	rig_break(rig, true);
	(void)create_full(rig, all);
	assert_int_equal(rig->last.code, ERR_STORAGE);
	assert_null(templates_find(all, "acme", "mine"));
	rig_break(rig, false);
	(void)create_full(rig, all);
	rig_break(rig, true);
	before = rig->callbacks;
	assert_int_equal(templates_update(all, &update, done_of(rig), &t, &rig->f->err), 0);
	rig_wait(rig, before + 1);
	assert_int_equal(rig->last.code, ERR_STORAGE);
	assert_string_equal(templates_find(all, "acme", "mine")->spec.name, "Mine");
	assert_int_equal(templates_delete(all, "acme", "mine", done_of(rig), &rig->f->err), 0);
	assert_null(templates_find(all, "acme", "mine"));
	rig_wait(rig, before + 2);
	assert_int_equal(rig->last.code, ERR_STORAGE);
	assert_non_null(templates_find(all, "acme", "mine"));
	rig_break(rig, false);
	templates_free(all);
}

static void waiters_are_answered_on_free(void **state)
{
	struct rig *rig = *state;
	struct templates *all = begin_templates(rig);
	struct template *t = NULL;

	assert_int_equal(templates_create(all, "acme", full_spec(), done_of(rig), &t, &rig->f->err),
	                 0);
	templates_free(all);
	assert_int_equal(rig->callbacks, 1);
	assert_int_equal(rig->last.code, ERR_UNAVAILABLE);
	rig_flush(rig);
	assert_int_equal(rig->callbacks, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(every_field_comes_back),
		RIG_TEST(changes_and_the_end_are_kept),
		RIG_TEST(a_failed_write_is_undone),
		RIG_TEST(waiters_are_answered_on_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
