/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/doctor.h"
#include "wire/layer.h"

static int parse(struct checks *checks, const char *text)
{
	char *copy = xstrdup(text);
	int r = checks_parse(checks, copy);

	free(copy);
	return r;
}

static void lines_are_parsed_in_order(void **state)
{
	struct checks checks = {0};

	(void)state;
	assert_int_equal(parse(&checks, "kernel\tinfo\t6.1 \tx\n\nuser\tok\t\nseccomp\tmissing\n"),
	                 0);
	assert_int_equal(checks.count, 3);
	assert_string_equal(checks.items[0].name, "kernel");
	assert_int_equal(checks.items[0].state, CHECK_INFO);
	assert_string_equal(checks.items[0].value, "6.1 \tx");
	assert_int_equal(checks.items[1].state, CHECK_OK);
	assert_string_equal(checks.items[1].value, "");
	assert_int_equal(checks.items[2].state, CHECK_MISSING);
	assert_string_equal(checks.items[2].value, "");
	assert_ptr_equal(checks_find(&checks, "user"), &checks.items[1]);
	assert_null(checks_find(&checks, "use"));
	checks_done(&checks);
	assert_int_equal(checks.count, 0);
}

static void malformed_lines_are_rejected(void **state)
{
	static const char *const texts[] = {
		"kernel",    "kernel\t",         "kernel\tperhaps\tx", "\tok\tx",
		"kernel ok", "a\tok\tx\nbroken", "a\tOK\tx",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct checks checks = {0};

		assert_int_equal(parse(&checks, texts[i]), -EPROTO);
		checks_done(&checks);
	}
}

static void too_many_lines_are_rejected(void **state)
{
	struct checks checks = {0};
	char *text = xcalloc(257, 7);

	(void)state;
	for (size_t i = 0; i < 256; i++)
		memcpy(text + i * 7, "n\tok\tv\n", 7);
	assert_int_equal(parse(&checks, text), 0);
	assert_int_equal(checks.count, 256);
	assert_int_equal(parse(&checks, "one\tok\tmore\n"), -EPROTO);
	checks_done(&checks);
	free(text);
}

static void every_layer_has_a_loss_and_a_remedy(void **state)
{
	(void)state;
	for (unsigned i = 0; i < LAYER_COUNT; i++) {
		struct advice advice = {0};

		assert_int_equal(advice_find(layer_name((enum wire_layer)i), &advice), 0);
		assert_string_equal(advice.loss, layer_loss((enum wire_layer)i));
		assert_true(strlen(advice.remedy) > 10);
	}
}

/* A probe with every check ok except @missing, which has @state (NULL: not printed). */
static bool meets(enum check_need need, const char *missing, const char *state)
{
	static const char *const names[] = {
		"user",        "pid",        "mnt",    "net",          "ipc",
		"uts",         "cgroup",     "time",   "uid_range",    "cgroup.memory",
		"cgroup.pids", "cgroup.cpu", "caps",   "landlock",     "no_new_privs",
		"seccomp",     "rlimits",    "procfs", "tmpfs_inodes", "openat2",
		"mount_api",   "pidfd",      "clone3",
	};
	struct checks checks = {0};
	bool met;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], missing) != 0)
			checks_add(&checks, names[i], CHECK_OK, "");
		else if (state)
			checks_add(&checks, names[i],
			           strcmp(state, "info") == 0 ? CHECK_INFO : CHECK_MISSING, "");
	}
	met = checks_meet(&checks, need);
	checks_done(&checks);
	return met;
}

static void strictness_needs_every_required_check(void **state)
{
	static const char *const always[] = {"user",      "pid",          "mnt",     "net",
	                                     "caps",      "no_new_privs", "seccomp", "procfs",
	                                     "mount_api", "clone3"};
	static const char *const in_strict[] = {"ipc",         "uts",       "cgroup",
	                                        "uid_range",   "rlimits",   "cgroup.memory",
	                                        "cgroup.pids", "cgroup.cpu"};

	(void)state;
	assert_true(meets(NEED_STRICT, "", NULL));
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
		assert_false(meets(NEED_STRICT, always[i], "missing"));
		assert_false(meets(NEED_STRICT, always[i], "info"));
		assert_false(meets(NEED_STRICT, always[i], NULL));
		assert_false(meets(NEED_ALWAYS, always[i], "missing"));
	}
	for (size_t i = 0; i < sizeof(in_strict) / sizeof(in_strict[0]); i++) {
		assert_false(meets(NEED_STRICT, in_strict[i], "missing"));
		assert_true(meets(NEED_ALWAYS, in_strict[i], "missing"));
	}
	assert_true(meets(NEED_STRICT, "landlock", "missing"));
	assert_true(meets(NEED_STRICT, "time", NULL));
}

static void optional_is_a_missing_layer_that_is_not_required(void **state)
{
	static const struct {
		char name[20];
		enum check_state state;
		bool optional;
	} cases[] = {
		{"cgroup.memory", CHECK_MISSING, false},
		{"landlock", CHECK_MISSING, true},
		{"landlock", CHECK_OK, false},
		{"user", CHECK_MISSING, false},
		{"languages.missing", CHECK_MISSING, false},
		{"nothing", CHECK_MISSING, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[20];
		struct check check = {.name = name, .state = cases[i].state};

		memcpy(name, cases[i].name, sizeof(name));
		assert_int_equal(check_is_optional(&check), cases[i].optional);
	}
}

static const char *remedy_of(const struct checks *checks, const char *name)
{
	static struct advice advice;

	assert_int_equal(checks_advise(checks, checks_find(checks, name), &advice), 0);
	return advice.remedy;
}

static void an_untested_check_points_to_its_cause(void **state)
{
	struct checks checks = {0};

	(void)state;
	assert_int_equal(parse(&checks, "user\tmissing\trefused\npid\tmissing\trefused\n"
	                                "net\tmissing\tno such thing\nuts\tok\trefused\n"),
	                 0);
	assert_non_null(strstr(remedy_of(&checks, "user"), "as root"));
	assert_non_null(strstr(remedy_of(&checks, "pid"), "'user'"));
	assert_non_null(strstr(remedy_of(&checks, "net"), "CONFIG_NET_NS"));
	assert_non_null(strstr(remedy_of(&checks, "uts"), "CONFIG_UTS_NS"));
	checks_done(&checks);
}

static void the_first_remedy_is_that_of_the_cause(void **state)
{
	struct checks checks = {0};
	struct advice advice;

	(void)state;
	assert_int_equal(parse(&checks, "cgroup.memory\tmissing\tx\nkernel\tinfo\t6.1\n"), 0);
	assert_false(checks_first_remedy(&checks, &advice));
	checks_add(&checks, "user", CHECK_MISSING, "refused");
	assert_true(checks_first_remedy(&checks, &advice));
	assert_non_null(strstr(advice.remedy, "as root"));
	checks_add(&checks, "max_user_namespaces", CHECK_MISSING, "0");
	assert_true(checks_first_remedy(&checks, &advice));
	assert_string_equal(advice.name, "user");
	assert_non_null(strstr(advice.remedy, "sysctl -w user.max_user_namespaces"));
	checks_add(&checks, "apparmor_userns", CHECK_MISSING, "restricted");
	assert_true(checks_first_remedy(&checks, &advice));
	assert_non_null(strstr(advice.remedy, "apparmor_restrict_unprivileged_userns=0"));
	checks_done(&checks);
}

static void unknown_names_have_no_advice(void **state)
{
	struct advice advice;

	(void)state;
	assert_int_equal(advice_find("no such check", &advice), -ENOENT);
	assert_int_equal(advice_find("", &advice), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_parsed_in_order),
		cmocka_unit_test(malformed_lines_are_rejected),
		cmocka_unit_test(too_many_lines_are_rejected),
		cmocka_unit_test(every_layer_has_a_loss_and_a_remedy),
		cmocka_unit_test(strictness_needs_every_required_check),
		cmocka_unit_test(optional_is_a_missing_layer_that_is_not_required),
		cmocka_unit_test(an_untested_check_points_to_its_cause),
		cmocka_unit_test(the_first_remedy_is_that_of_the_cause),
		cmocka_unit_test(unknown_names_have_no_advice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
