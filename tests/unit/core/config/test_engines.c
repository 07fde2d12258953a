/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config/engines.h"
#include "unit.h"

#include <string.h>

#include "base/str.h"
#include "core/config/config.h"

static struct config *parse(const char *text, struct error *err)
{
	*err = (struct error){0};
	return config_parse(text, strlen(text), "f", NULL, 0, err);
}

static void without_a_setting_there_is_the_native_one(void **state)
{
	struct error err;
	attr_cleanup(config_freep) struct config *c = parse("", &err);

	(void)state;
	assert_non_null(c);
	assert_string_equal(c->engine_list[0]->name, "native");
	assert_string_equal(c->engine_list[0]->runtime->program, "millibox-engine");
	assert_null(c->engine_list[1]);
	assert_null(engines_find(c, "second"));
}

static void a_mapping_and_a_list_say_the_same(void **state)
{
	static const char *const texts[] = {
		"engines:\n  native:\n  gvisor: {binary: /x/runsc}\n  docker: {socket: /s}\n"
		"  second: {runtime: native}\n",
		"engines: [native, gvisor=gvisor binary=/x/runsc, docker socket=/s, "
		"second=native]\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct error err;
		attr_cleanup(config_freep) struct config *c = parse(texts[i], &err);
		const struct config_engine *g;

		if (!c)
			fail_msg("%s", err.msg);
		g = engines_find(c, "gvisor");
		assert_non_null(g);
		assert_string_equal(g->runtime->word, "runsc");
		assert_string_equal(g->binary, "/x/runsc");
		assert_null(g->words[0]);
		assert_string_equal(engines_find(c, "docker")->words[0], "--socket");
		assert_string_equal(engines_find(c, "docker")->words[1], "/s");
		assert_null(engines_find(c, "docker")->words[2]);
		assert_string_equal(engines_find(c, "second")->runtime->name, "native");
		assert_string_equal(c->engine_list[0]->name, "native");
		assert_null(c->engine_list[4]);
	}
}

static void the_default_needs_no_entry_if_it_is_a_runtime(void **state)
{
	struct error err;
	attr_cleanup(config_freep) struct config *c =
		parse("engine: bwrap\nengines: [runc]\n", &err);

	(void)state;
	assert_non_null(c);
	assert_string_equal(c->engine_list[0]->name, "bwrap");
	assert_string_equal(c->engine_list[1]->name, "runc");
	assert_null(c->engine_list[2]);
	assert_null(engines_find(c, "native"));
}

static void what_makes_no_sense_is_refused_with_its_name(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"engine: nothing\n", "no runtime 'nothing'"},
		{"engines: [auto=native]\n", "'auto' is not a name"},
		{"engines: [Big=native]\n", "'Big' is not a name"},
		{"engines: [a=native, a=native]\n", "there twice"},
		{"engines:\n  a: {runtime: podman}\n", "known: native, bwrap"},
		{"engines:\n  a: {runtime: runc, binary: relative}\n", "absolute path"},
		{"engines:\n  native: {binary: /x}\n", "runtime 'native' has no word 'binary'"},
		{"engines:\n  runc: {roots: /etc}\n", "has no word 'roots'; known: binary"},
		{"engines:\n  docker: {binary: /x}\n", "known: socket, image, container-runtime"},
		{"engines: [vm]\n", "no runtime 'vm'"},
		{"engines:\n  a: {runtime: native, word: 'b c'}\n", "without spaces"},
		{"engines:\n  a: [native]\n", "must be a mapping"},
		{"engines: [runc x]\n", "must be KEY=VALUE"},
		{"engines: [a=native, b=native, c=native, d=native, e=native, f=native, g=native,"
	         " h=native, i=native, j=native, k=native, l=native, m=native, n=native, o=native,"
	         " p=native, q=native]\n",
	         "at most 16"},
		{"min_isolation: strong\n", "namespace, gvisor or vm"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err;
		attr_cleanup(config_freep) struct config *c = parse(rows[i].text, &err);

		assert_null(c);
		if (!strstr(err.msg, rows[i].says))
			fail_msg("%s: %s", rows[i].text, err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_setting_there_is_the_native_one),
		cmocka_unit_test(a_mapping_and_a_list_say_the_same),
		cmocka_unit_test(the_default_needs_no_entry_if_it_is_a_runtime),
		cmocka_unit_test(what_makes_no_sense_is_refused_with_its_name),
	};

	return cmocka_run_group_tests_name("core/config/engines", tests, NULL, NULL);
}
