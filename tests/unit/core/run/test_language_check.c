/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>

#include "core/run/language_check.h"
#include "core/template/template.h"
#include "core/template/toolchains.h"
#include "run_fixture.h"

/* "demo" is at /bin/sh; "absent" is nowhere. */
#define DEMO                                                                                       \
	"hello: code of demo\ncompile_command: ['{runner}/cc', '{artifact}']\n"                    \
	"version_command: [/bin/sh, --version]\n"

enum {
	COMPILE = 1,
	RUN,
	VERSION
};

struct check_fixture {
	struct fixture f;
	struct toolchains *toolchains;
	struct language_checks *checks;
	const struct runner *demo;
	int known, changed;
};

static int set_up_with(void **state, const char *more, const char *enabled)
{
	const struct config_override settings[] = {{"admission.max_running", "8"},
	                                           {"runners.check", enabled},
	                                           {"pools.enabled", "false"}};
	struct check_fixture *c = NEW(struct check_fixture);
	struct fixture *f = &c->f;

	f->loop = loop_new();
	f->driver = fake_driver_new(f->loop);
	f->runners = fixture_runners_with(more);
	f->config = config_load(NULL, settings, ARRAY_SIZE(settings), &f->err);
	if (!f->config)
		return -1;
	c->toolchains = toolchains_new(NULL);
	f->service = run_service_new(&(struct run_service_config){.config = f->config,
	                                                          .driver = f->driver,
	                                                          .runners = f->runners,
	                                                          .toolchains = c->toolchains,
	                                                          .loop = f->loop});
	f->request = (struct run_request){
		.language = (char *)"demo", .code = (char *)"print", .code_len = 5};
	c->checks = run_service_language_checks(f->service);
	c->demo = runners_find(f->runners, "demo");
	*state = c;
	return 0;
}

static int set_up(void **state)
{
	return set_up_with(state, DEMO, "true");
}

static int set_up_unchecked(void **state)
{
	return set_up_with(state, DEMO, "false");
}

static int set_up_plain(void **state)
{
	return set_up_with(state, "hello: code of demo\n", "true");
}

static int tear_down(void **state)
{
	struct check_fixture *c = *state;
	struct fixture *f = &c->f;

	run_service_free(f->service);
	settle(f);
	driver_free(f->driver);
	settle(f);
	toolchains_free(c->toolchains);
	loop_free(f->loop);
	runners_free(f->runners);
	config_free(f->config);
	free(c);
	return 0;
}

static void on_known(void *ctx)
{
	struct check_fixture *c = ctx;

	c->known++;
}

static void on_changed(void *ctx)
{
	struct check_fixture *c = ctx;

	c->changed++;
}

static struct language_wait *want(struct check_fixture *c, bool again)
{
	const struct language_query query = {.again = again, .within_us = LANGUAGE_LIST_US};

	return language_checks_want(c->checks, &query, on_known, c);
}

/* The box of the one check that runs. */
static struct box *box_of(struct check_fixture *c)
{
	struct box *box;

	settle(&c->f);
	box = box_at(&c->f, fake_box_count(c->f.driver) - 1);
	return box;
}

static void end_step(struct check_fixture *c, struct box *box, uint32_t id, int status,
                     const char *out)
{
	size_t len = strlen(out);
	const struct exec_facts facts = {.status = status,
	                                 .stdout_bytes = status ? 0 : len,
	                                 .stderr_bytes = status ? len : 0};

	assert_non_null(fake_exec_of(box, id));
	fake_started(box, id);
	fake_output(box, id, status ? OUTPUT_STDERR : OUTPUT_STDOUT, out, len);
	fake_done(box, id, &facts);
	settle(&c->f);
}

static void expect(struct check_fixture *c, bool is_there, bool is_checked)
{
	struct toolchain_view view;

	toolchains_view(c->toolchains, NULL, c->demo, &view);
	assert_int_equal(view.is_there, is_there);
	assert_int_equal(view.is_checked, is_checked);
}

static void a_language_works_if_its_program_does(void **state)
{
	struct check_fixture *c = *state;
	const struct fake_exec *step;
	struct toolchain_view view;
	struct box *box;

	assert_non_null(want(c, false));
	assert_int_equal(fake_box_count(c->f.driver), 0); /* nothing happens inside the call */
	box = box_of(c);
	assert_int_equal(fake_spec(box)->network, BOX_NETWORK_NONE);
	step = fake_exec_last(box);
	assert_int_equal(step->id, COMPILE);
	assert_string_equal(step->files[0].data, "code of demo");
	assert_true(step->files[0].source);
	end_step(c, box, COMPILE, 0, "");
	step = fake_exec_last(box);
	assert_int_equal(step->id, RUN);
	assert_int_equal(step->files_count, 0); /* the compiler had it */
	end_step(c, box, RUN, 0, "hello\n");
	assert_int_equal(c->known, 0);
	end_step(c, box, VERSION, 0, "demo 12.3\n");
	assert_int_equal(c->known, 1);
	expect(c, true, true);
	toolchains_view(c->toolchains, NULL, c->demo, &view);
	assert_string_equal(view.version, "12.3");
	/* It is remembered. */
	assert_null(want(c, false));
	expect_idle(&c->f);
}

static void a_program_is_run_without_a_compiler_if_it_needs_none(void **state)
{
	struct check_fixture *c = *state;
	const struct fake_exec *step;
	struct box *box;

	assert_non_null(want(c, false));
	box = box_of(c);
	step = fake_exec_last(box);
	assert_int_equal(step->id, RUN);
	assert_string_equal(step->files[0].data, "code of demo");
	end_step(c, box, RUN, 0, "hello\n");
	assert_int_equal(c->known, 1);
	expect(c, true, true);
}

static void a_compiler_that_fails_is_refused_by_name(void **state)
{
	struct check_fixture *c = *state;
	struct error err = {0};
	struct heard h = {0};

	language_checks_watch(c->checks, on_changed, c);
	assert_non_null(want(c, false));
	end_step(c, box_of(c), COMPILE, 1,
	         "In file included from main.x:\nmain.x:1: fatal error: "
	         "no header\x1b[0m\ncompilation terminated.\n");
	assert_int_equal(c->known, 1);
	assert_int_equal(c->changed, 1);
	expect(c, false, true);
	assert_int_equal(toolchains_require(c->toolchains, NULL, c->demo, &err), -1);
	assert_non_null(strstr(err.msg, "main.x:1: fatal error: no header [0m"));
	assert_int_equal(try_start(&c->f, &h), -1);
	assert_int_equal(c->f.err.code, ERR_NO_LANGUAGE);
	/* Another answer of a box, and it is allowed. */
	assert_non_null(want(c, true));
	end_step(c, box_of(c), COMPILE, 0, "");
	end_step(c, box_at(&c->f, 0), RUN, 0, "hello\n");
	end_step(c, box_at(&c->f, 0), VERSION, 1, "no such option\n");
	expect(c, true, true);
	assert_int_equal(c->changed, 2);
	language_checks_watch(c->checks, NULL, NULL);
}

static void a_program_must_print_what_it_should(void **state)
{
	struct check_fixture *c = *state;
	struct error err = {0};

	assert_non_null(want(c, false));
	end_step(c, box_of(c), COMPILE, 0, "");
	end_step(c, box_at(&c->f, 0), RUN, 0, "");
	expect(c, false, true);
	assert_int_equal(toolchains_require(c->toolchains, NULL, c->demo, &err), -1);
	assert_non_null(strstr(err.msg, "it does not print what it should"));
}

static void a_program_that_cannot_be_executed_is_missing(void **state)
{
	struct check_fixture *c = *state;
	struct error err = {.code = ERR_BOX_FAILED, .sys = ENOENT, .msg = "execute"};

	assert_non_null(want(c, false));
	fake_exec_failed(box_of(c), COMPILE, &err);
	settle(&c->f);
	expect(c, false, true);
}

/* A host that is short of something must not lose its languages. */
static void trouble_of_a_box_says_nothing(void **state)
{
	const struct exec_facts killed = {.signalled = true, .status = 9};
	const struct error lost = {.code = ERR_AGENT_LOST, .msg = "gone"};
	const struct error other = {.code = ERR_BOX_FAILED, .sys = ENOMEM, .msg = "agent: fork"};
	struct check_fixture *c = *state;

	for (int i = 0; i < 4; i++) {
		struct box *box;

		assert_non_null(want(c, true));
		box = box_of(c);
		assert_non_null(fake_exec_of(box, COMPILE));
		fake_started(box, COMPILE);
		if (i == 0)
			fake_done(box, COMPILE, &killed);
		else if (i == 1)
			fake_lost(box, &lost);
		else if (i == 2)
			fake_exec_failed(box, COMPILE, &other);
		else
			loop_pass(c->f.loop, 31 * USEC_PER_SEC);
		settle(&c->f);
		assert_int_equal(c->known, i + 1);
		expect(c, true, false);
	}
	expect_idle(&c->f);
}

static void a_list_does_not_wait_for_ever(void **state)
{
	const struct language_query brief = {.within_us = LANGUAGE_TOOLS_US};
	struct check_fixture *c = *state;

	assert_non_null(language_checks_want(c->checks, &brief, on_known, c));
	assert_non_null(want(c, false));
	loop_pass(c->f.loop, LANGUAGE_TOOLS_US + USEC_PER_MS);
	assert_int_equal(c->known, 1);
	/* Nor does the next one begin to wait anew. */
	assert_null(language_checks_want(c->checks, &brief, on_known, c));
	loop_pass(c->f.loop, LANGUAGE_LIST_US);
	assert_int_equal(c->known, 2);
	expect(c, true, false);
}

static void who_leaves_is_not_called(void **state)
{
	struct check_fixture *c = *state;
	struct language_wait *wait = want(c, false);

	assert_non_null(wait);
	language_wait_cancel(wait);
	end_step(c, box_of(c), COMPILE, 1, "error\n");
	assert_int_equal(c->known, 0);
	expect(c, false, true);
}

/* Its answer is the old one: the next request gets what the box says now. */
static void a_refused_request_has_an_old_verdict_checked(void **state)
{
	struct check_fixture *c = *state;
	struct heard h = {0};

	assert_non_null(want(c, false));
	end_step(c, box_of(c), COMPILE, 1, "error\n");
	assert_int_equal(try_start(&c->f, &h), -1);
	settle(&c->f);
	assert_int_equal(fake_box_count(c->f.driver), 0); /* it is new */
	loop_pass(c->f.loop, 11 * USEC_PER_SEC);
	assert_int_equal(try_start(&c->f, &h), -1);
	end_step(c, box_of(c), COMPILE, 0, "");
	end_step(c, box_at(&c->f, 0), RUN, 0, "hello\n");
	end_step(c, box_at(&c->f, 0), VERSION, 0, "1.0\n");
	expect(c, true, true);
	assert_int_equal(try_start(&c->f, &h), 0);
	run_unwatch(h.watch);
	settle(&c->f);
}

static void without_checks_only_the_version_is_asked(void **state)
{
	struct check_fixture *c = *state;
	struct toolchain_view view;
	struct box *box;

	assert_non_null(want(c, false));
	box = box_of(c);
	assert_int_equal(fake_exec_last(box)->id, VERSION);
	end_step(c, box, VERSION, 0, "demo (Tools 7) 1.2.3-4\n");
	expect(c, true, false);
	toolchains_view(c->toolchains, NULL, c->demo, &view);
	assert_string_equal(view.version, "1.2.3");
	assert_null(want(c, false));
}

#define TEMPLATES 300

/* Each has a root of its own, where the program is. */
static struct template *make_templates(const char *tenant)
{
	static char *programs[] = {(char *)"/bin/sh", (char *)"/bin/sh", NULL};
	struct template *list = xcalloc(TEMPLATES, sizeof(*list));

	for (int i = 0; i < TEMPLATES; i++) {
		list[i] = (struct template){
			.refs = 1, .kind = TEMPLATE_ON_IMAGE, .programs = programs};
		(void)snprintf(list[i].tenant, sizeof(list[i].tenant), "%s", tenant);
		(void)snprintf(list[i].root, sizeof(list[i].root), "%s-%d", tenant, i);
		list[i].spec.id = list[i].root;
	}
	return list;
}

static bool want_template(struct check_fixture *c, struct template *t)
{
	const struct language_query query = {.template = t, .within_us = LANGUAGE_LIST_US};

	return language_checks_want(c->checks, &query, on_known, c) != NULL;
}

static void templates_leave_room_for_the_host(void **state)
{
	struct check_fixture *c = *state;
	struct template *list = make_templates("mallory");
	int waiting = 0;

	for (int i = 0; i < TEMPLATES; i++)
		waiting += want_template(c, &list[i]);
	/* Control: the queue is full. */
	assert_in_range(waiting, 1, TEMPLATES - 1);
	assert_non_null(want(c, false));
	language_checks_stop(c->checks);
	settle(&c->f);
	free(list);
}

static void tenants_take_turns(void **state)
{
	struct check_fixture *c = *state;
	struct template *all[] = {make_templates("mallory"), make_templates("victim")};
	struct box *box;

	for (int i = 0; i < 9; i++)
		assert_true(want_template(c, &all[0][i]));
	assert_true(want_template(c, &all[1][0]));
	box = box_of(c);
	assert_string_equal(fake_spec(box)->root, "mallory-0");
	end_step(c, box, COMPILE, 1, "it does not work\n");
	assert_string_equal(fake_spec(box_of(c))->root, "victim-0");
	end_step(c, box_of(c), COMPILE, 1, "it does not work\n");
	assert_string_equal(fake_spec(box_of(c))->root, "mallory-1");
	language_checks_stop(c->checks);
	settle(&c->f);
	free(all[0]);
	free(all[1]);
}

static void a_drain_ends_checks_and_waits(void **state)
{
	struct check_fixture *c = *state;

	assert_non_null(want(c, false));
	(void)box_of(c);
	run_service_drain(c->f.service, false, on_drained, &c->f);
	wait_for(&c->f, &c->f.drained);
	assert_int_equal(c->known, 1);
	assert_int_equal(fake_box_count(c->f.driver), 0);
	assert_null(want(c, false));
}

static void a_version_is_the_first_word_with_a_dot(void **state)
{
	static const struct {
		const char *text, *version; /* NULL: none */
	} rows[] = {
		{"Python 3.11.2", "3.11.2"},
		{"go version go1.19.8 linux/amd64", "1.19.8"},
		{"v20.20.2", "20.20.2"},
		{"zsh 5.9 (x86_64-debian-linux-gnu)", "5.9"},
		{"12\n", NULL},
		{"", NULL},
		{"1.2.", "1.2"},
		{"a1.2 b3.4", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char version[LANGUAGE_VERSION_LEN] = "";
		bool found = language_version_find(rows[i].text, strlen(rows[i].text), version);

		assert_int_equal(found, rows[i].version != NULL);
		if (found)
			assert_string_equal(version, rows[i].version);
	}
}

#define UNIT(name, set_up_) cmocka_unit_test_setup_teardown(name, set_up_, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_language_works_if_its_program_does, set_up),
		UNIT(a_program_is_run_without_a_compiler_if_it_needs_none, set_up_plain),
		UNIT(a_compiler_that_fails_is_refused_by_name, set_up),
		UNIT(a_program_must_print_what_it_should, set_up),
		UNIT(a_program_that_cannot_be_executed_is_missing, set_up),
		UNIT(trouble_of_a_box_says_nothing, set_up),
		UNIT(a_list_does_not_wait_for_ever, set_up),
		UNIT(who_leaves_is_not_called, set_up),
		UNIT(a_refused_request_has_an_old_verdict_checked, set_up),
		UNIT(without_checks_only_the_version_is_asked, set_up_unchecked),
		UNIT(templates_leave_room_for_the_host, set_up),
		UNIT(tenants_take_turns, set_up),
		UNIT(a_drain_ends_checks_and_waits, set_up),
		cmocka_unit_test(a_version_is_the_first_word_with_a_dot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
