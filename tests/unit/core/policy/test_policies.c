/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "base/str.h"
#include "core/policy/policies.h"

#define DIR_MAX_FILES 80

struct fixture {
	char dir[40];
	char *files[DIR_MAX_FILES]; /* owned */
	size_t count;
	struct policies *policies;
	struct error err;
};

static int setup(void **state)
{
	struct fixture *f = NEW(struct fixture);

	(void)!str_copy(f->dir, sizeof(f->dir), "/tmp/millibox-policies-XXXXXX");
	*state = f;
	return mkdtemp(f->dir) ? 0 : -1;
}

static void remove_files(struct fixture *f)
{
	for (size_t i = 0; i < f->count; i++) {
		(void)unlink(f->files[i]);
		free(f->files[i]);
	}
	f->count = 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	policies_free(f->policies);
	remove_files(f);
	(void)rmdir(f->dir);
	free(f);
	return 0;
}

static void put(struct fixture *f, const char *name, const char *text)
{
	char *path = xasprintf("%s/%s", f->dir, name);

	(void)unlink(path);
	assert_int_equal(file_create_at(AT_FDCWD, path, 0644, text, strlen(text)), 0);
	for (size_t i = 0; i < f->count; i++) {
		if (str_equal(f->files[i], path)) {
			free(path);
			return;
		}
	}
	assert_true(f->count < DIR_MAX_FILES);
	f->files[f->count++] = path;
}

static int load(struct fixture *f)
{
	const struct policies_config config = {.dir = f->dir, .fallback = "default"};

	policies_free(f->policies);
	error_clear(&f->err);
	f->policies = policies_load(&config, &f->err);
	return f->policies ? 0 : -1;
}

static void expect_loaded(struct fixture *f)
{
	if (load(f) < 0)
		fail_msg("%s", f->err.msg);
}

/* The file's name and line are in front, the reason follows. */
static void expect_refused(struct fixture *f, const char *name, const char *text, const char *what)
{
	put(f, name, text);
	assert_int_equal(load(f), -1);
	assert_int_equal(f->err.code, ERR_CONFIG);
	if (!strstr(f->err.msg, what) || !strstr(f->err.msg, name))
		fail_msg("'%s' is not in: %s", what, f->err.msg);
	remove_files(f);
}

static const struct policy *get(struct fixture *f, const char *name)
{
	const struct policy *policy = policies_find(f->policies, name);

	assert_non_null(policy);
	return policy;
}

static void four_are_built_in(void **state)
{
	struct fixture *f = *state;
	const struct policies_config config = {.dir = "", .fallback = "strict"};

	f->policies = policies_load(&config, &f->err);
	assert_non_null(f->policies);
	assert_string_equal(policies_at(f->policies, 0)->name, "default");
	assert_string_equal(policies_at(f->policies, 1)->name, "owner");
	assert_string_equal(policies_at(f->policies, 2)->name, "permissive");
	assert_string_equal(policies_at(f->policies, 3)->name, "strict");
	assert_null(policies_at(f->policies, 4));
	assert_string_equal(policies_default(f->policies), "strict");
	assert_string_equal(get(f, "strict")->file, "built in");
	assert_null(policies_find(f->policies, "lax"));
}

static void rules_name_their_policy_and_line(void **state)
{
	struct fixture *f = *state;
	const struct policy *p;

	put(f, "base.yaml",
	    "name: base\nlimits:\n  memory: {default: 64Mi, max: 128Mi}\n"
	    "languages:\n  deny: [ruby]\n");
	put(f, "team.yaml",
	    "name: team\nextends: base\ndescription: Ours\n\nlimits:\n  memory:\n"
	    "    max: 96Mi\n    on_exceed: refuse\nlanguages: {allow: [python]}\n");
	expect_loaded(f);
	p = get(f, "team");
	assert_string_equal(p->description, "Ours");
	assert_int_equal(p->limits[POLICY_MEMORY].fallback.value, 64 * MIB);
	assert_string_equal(p->limits[POLICY_MEMORY].fallback.by.policy, "base");
	assert_int_equal(p->limits[POLICY_MEMORY].fallback.by.line, 3);
	assert_int_equal(p->limits[POLICY_MEMORY].max.value, 96 * MIB);
	assert_string_equal(p->limits[POLICY_MEMORY].max.by.policy, "team");
	assert_int_equal(p->limits[POLICY_MEMORY].max.by.line, 7);
	assert_int_equal(p->limits[POLICY_MEMORY].on_exceed.value, POLICY_EXCEED_REFUSE);
	assert_string_equal(p->languages.allow.items[0], "python");
	assert_string_equal(p->languages.deny.items[0], "ruby");
	assert_string_equal(p->languages.deny.by.policy, "base");
	assert_int_equal(p->languages.deny.by.line, 5);
	assert_int_equal(p->limits[POLICY_CPU].max.by.line, 0);
}

static void lists_replace_and_may_be_emptied(void **state)
{
	struct fixture *f = *state;

	put(f, "a.yaml",
	    "name: a\nlanguages: {deny: [ruby, perl]}\nsessions: {modes: [ephemeral]}\n");
	put(f, "b.yaml", "name: b\nextends: a\nlanguages: {deny: []}\n");
	expect_loaded(f);
	assert_int_equal(str_list_count(get(f, "b")->languages.deny.items), 0);
	assert_int_equal(get(f, "b")->languages.deny.by.line, 3);
	assert_int_equal(str_list_count(get(f, "b")->session_modes.items), 1);
	assert_int_equal(str_list_count(get(f, "a")->languages.deny.items), 2);
}

static void files_replace_what_is_built_in(void **state)
{
	struct fixture *f = *state;

	put(f, "default.yaml", "name: default\nlimits: {timeout: {max: 3s}}\n");
	expect_loaded(f);
	assert_int_equal(get(f, "default")->limits[POLICY_TIMEOUT].max.value, 3000000);
	/* strict extends the current one */
	assert_null(get(f, "strict")->session_modes.items);
}

static void other_files_are_left_alone(void **state)
{
	struct fixture *f = *state;

	put(f, ".hidden.yaml", "nonsense");
	put(f, "notes.txt", "nonsense");
	put(f, "old.yaml~", "nonsense");
	expect_loaded(f);
	assert_null(policies_at(f->policies, 4));
}

static void errors_name_their_line(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *text, *what;
	} table[] = {
		{"name: x\nlimit: {memory: {max: 1Gi}}\n", "x.yaml:2: 'limit' is not a key"},
		{"name: x\nlimits:\n  memory: {maxx: 1Gi}\n",
	         "x.yaml:3: 'limits.memory.maxx' is not a key of a policy, did you mean "
	         "'limits.memory.max'?"},
		{"name: x\nlimits:\n  memory:\n    max: lots\n",
	         "x.yaml:4: 'limits.memory.max' must be a size"},
		{"name: x\nlimits: {memory: {max: 1Mi}}\n", "must be between 16Mi and 1024Gi"},
		{"name: x\nlimits: {memory: {max: 99999999999Ti}}\n", "must be between"},
		{"name: x\nlimits: {timeout: {max: 0}}\n", "must be between 0.001s and 86400s"},
		{"name: x\nlimits: {cpu: {max: two}}\n", "a number of cores"},
		{"name: x\nlimits: {processes: {max: -1}}\n", "a whole number"},
		{"name: x\nlimits: {memory: {max: [1Gi]}}\n", "must be a value"},
		{"name: x\nlimits: {memory: {max: }}\n", "must be a value"},
		{"name: x\nlimits: {memory: 1Gi}\n", "x.yaml:2: 'limits.memory' must be a mapping"},
		{"name: x\nlimits: [1]\n", "'limits' must be a mapping"},
		{"name: x\nlimits: {memory: {on_exceed: cry}}\n", "one of clamp, refuse"},
		{"name: x\nlimits: {memory: {default: 2Gi, max: 1Gi}}\n",
	         "the default is above the maximum of line 2"},
		{"name: x\nlimits: {output: {on_overflow: 1}}\n", "one of truncate, kill"},
		{"name: x\nnetwork: {mode: open}\n", "one of none, allowlist, bridge, host"},
		{"name: x\nnetwork: {allow: ['bad host']}\n", "cannot have 'bad host'"},
		{"name: x\nlanguages: {allow: python}\n", "must be a list"},
		{"name: x\nlanguages: {allow: [[a]]}\n", "cannot have 'a list'"},
		{"name: x\nlanguages: {deny: ['']}\n", "cannot have ''"},
		{"name: x\nenv: {deny: ['A-B']}\n", "cannot have 'A-B'"},
		{"name: x\nmounts: [data]\n", "cannot have 'data'"},
		{"name: x\nmounts: ['/a:/b:rx']\n", "cannot have '/a:/b:rx'"},
		{"name: x\nisolation: {require: [moat]}\n", "cannot have 'moat'"},
		{"name: x\nisolation: {min: high}\n", "one of none, standard, full"},
		{"name: x\nsessions: {modes: [eternal]}\n", "cannot have 'eternal'"},
		{"name: x\nsessions: {lifetime: {max: 100000h}}\n", "must be between 1s and"},
		{"name: x\nextends: nobody\n",
	         "x.yaml:2: 'extends' names a policy that does not exist"},
		{"name: x\n\nextends: x\n", "x.yaml:3: 'extends' is circular"},
		{"name: x\nextends: [a]\n", "must be a value"},
		{"name: y\n", "so the file must be y.yaml"},
		{"name: X\n", "must be 1 to 63 of a-z"},
		{"name: ../x\n", "must be 1 to 63 of a-z"},
		{"description: x\n", "'name' is missing"},
		{"name: x\nname: x\n", "given twice"},
		{"name: x\nlimits: {memory: {max: {a: 1}}}\n", "must be a value"},
		{"name: &a x\nextends: *a\n", "x.yaml:1"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		expect_refused(f, "x.yaml", table[i].text, table[i].what);
	expect_loaded(f); /* negative control: it was the file */
}

static void circles_and_long_chains_are_refused(void **state)
{
	struct fixture *f = *state;

	put(f, "a.yaml", "name: a\nextends: b\n");
	put(f, "c.yaml", "name: c\nextends: a\n");
	put(f, "b.yaml", "name: b\nextends: c\n");
	assert_int_equal(load(f), -1);
	assert_non_null(strstr(f->err.msg, "a.yaml:2: 'extends' is circular"));
	remove_files(f);
	put(f, "p0.yaml", "name: p0\nlimits: {timeout: {max: 9s}}\n");
	for (int i = 1; i <= POLICIES_CHAIN_MAX + 1; i++) {
		char file[24], text[64];

		if (i == POLICIES_CHAIN_MAX + 1) {
			expect_loaded(f);
			assert_int_equal(get(f, "p8")->limits[POLICY_TIMEOUT].max.value, 9000000);
		}
		(void)snprintf(file, sizeof(file), "p%d.yaml", i);
		(void)snprintf(text, sizeof(text), "name: p%d\nextends: p%d\n", i, i - 1);
		put(f, file, text);
	}
	assert_int_equal(load(f), -1);
	assert_non_null(strstr(f->err.msg, "p9.yaml:2: 'extends' is circular or too long"));
}

static void there_are_only_so_many(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < POLICIES_MAX - 2; i++) {
		char file[16], text[32];

		(void)snprintf(file, sizeof(file), "n%d.yaml", i);
		(void)snprintf(text, sizeof(text), "name: n%d\n", i);
		put(f, file, text);
	}
	assert_int_equal(load(f), -1);
	assert_non_null(strstr(f->err.msg, "more than 64 policies"));
}

static void settings_must_name_policies_that_exist(void **state)
{
	struct fixture *f = *state;
	char *selectable[] = {(char *)"strict", (char *)"none", NULL};
	struct policies_config config = {.dir = f->dir, .fallback = "defualt"};

	assert_null(policies_load(&config, &f->err));
	assert_string_equal(f->err.msg, "policy.default: there is no policy 'defualt'");
	error_clear(&f->err);
	config.fallback = "default";
	config.selectable = selectable;
	assert_null(policies_load(&config, &f->err));
	assert_string_equal(f->err.msg, "policy.selectable: there is no policy 'none'");
	error_clear(&f->err);
	selectable[1] = NULL;
	f->policies = policies_load(&config, &f->err);
	assert_non_null(f->policies);
	assert_true(policies_can_select(f->policies, "strict"));
	assert_false(policies_can_select(f->policies, "permissive"));
	error_clear(&f->err);
	config.dir = "/nonexistent/policies";
	assert_null(policies_load(&config, &f->err));
	assert_non_null(strstr(f->err.msg, "/nonexistent/policies"));
}

static void reload_takes_all_or_nothing(void **state)
{
	struct fixture *f = *state;
	struct policy *kept;

	put(f, "team.yaml", "name: team\nlimits: {timeout: {max: 5s}}\n");
	expect_loaded(f);
	kept = policy_ref(get(f, "team"));

	put(f, "team.yaml", "name: team\nlimits: {timeout: {max: 7s}}\n");
	put(f, "zbad.yaml", "name: zbad\nlimits: {tiemout: 1}\n");
	error_clear(&f->err);
	assert_int_equal(policies_reload(f->policies, &f->err), -1);
	assert_non_null(strstr(f->err.msg, "zbad.yaml:2"));
	assert_ptr_equal(get(f, "team"), kept);

	put(f, "zbad.yaml", "name: zbad\n");
	error_clear(&f->err);
	assert_int_equal(policies_reload(f->policies, &f->err), 0);
	assert_int_equal(get(f, "team")->limits[POLICY_TIMEOUT].max.value, 7000000);
	/* a session keeps the old one, complete */
	assert_int_equal(kept->limits[POLICY_TIMEOUT].max.value, 5000000);
	assert_string_equal(kept->limits[POLICY_TIMEOUT].max.by.policy, "team");
	policy_unref(kept);
}

static void child_keeps_its_parent(void **state)
{
	struct fixture *f = *state;
	struct policy *kept;

	expect_loaded(f);
	kept = policy_ref(get(f, "permissive"));
	policies_free(TAKE_PTR(f->policies));
	assert_string_equal(kept->network_mode.by.policy, "default");
	policy_unref(kept);
}

static void every_key_prints_what_it_reads(void **state)
{
	struct fixture *f = *state;
	const struct policy_key *key;
	const struct policy *p;
	char text[64];
	size_t said = 0;

	expect_loaded(f);
	p = get(f, "strict");
	for (size_t i = 0; (key = policy_key_at(i)); i++) {
		assert_true(policy_key_help(key)[0] && policy_key_path(key)[0]);
		if (policy_key_source(key, p).line == 0 || policy_key_list(key, p))
			continue;
		policy_key_print(key, p, text, sizeof(text));
		assert_true(text[0]);
		said++;
		if (str_equal(policy_key_path(key), "limits.cpu.default"))
			assert_string_equal(text, "0.5");
		if (str_equal(policy_key_path(key), "limits.timeout.max"))
			assert_string_equal(text, "60s");
		if (str_equal(policy_key_path(key), "limits.output.on_overflow"))
			assert_string_equal(text, "kill");
	}
	assert_true(said > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(four_are_built_in, setup, teardown),
		cmocka_unit_test_setup_teardown(rules_name_their_policy_and_line, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_replace_and_may_be_emptied, setup, teardown),
		cmocka_unit_test_setup_teardown(files_replace_what_is_built_in, setup, teardown),
		cmocka_unit_test_setup_teardown(other_files_are_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_name_their_line, setup, teardown),
		cmocka_unit_test_setup_teardown(circles_and_long_chains_are_refused, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(there_are_only_so_many, setup, teardown),
		cmocka_unit_test_setup_teardown(settings_must_name_policies_that_exist, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(reload_takes_all_or_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(child_keeps_its_parent, setup, teardown),
		cmocka_unit_test_setup_teardown(every_key_prints_what_it_reads, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
