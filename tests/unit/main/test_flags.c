/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/str.h"
#include "flags.h"
#include <string.h>

#define PARSE(flags, err, ...)                                                                     \
	({                                                                                         \
		char *const argv_[] = {__VA_ARGS__, NULL};                                         \
		flags_parse((int)ARRAY_SIZE(argv_) - 1, argv_, flags, err);                        \
	})
#define WORD(text) ((char[]){text})

static void each_flag_goes_to_its_place(void **state)
{
	struct flags f;
	struct error err = {0};

	(void)state;
	assert_int_equal(PARSE(&f, &err, WORD("milliboxd"), WORD("--config"), WORD("/c"),
	                       WORD("--listen="), WORD("--socket"), WORD("/s"),
	                       WORD("--log-level=debug"), WORD("--check-config")),
	                 0);
	assert_string_equal(f.config_path, "/c");
	assert_int_equal(f.overrides_count, 3);
	assert_string_equal(f.overrides[0].key, "listen");
	assert_string_equal(f.overrides[0].value, "");
	assert_string_equal(f.overrides[1].key, "socket");
	assert_string_equal(f.overrides[1].value, "/s");
	assert_string_equal(f.overrides[2].key, "log_level");
	assert_true(f.check_config);
	assert_false(f.dump_config || f.version || f.help);
}

static void wrong_usage_is_named(void **state)
{
	struct flags f;
	struct error err = {0};

	(void)state;
	assert_int_equal(PARSE(&f, &err, WORD("milliboxd"), WORD("--frobnicate")), -1);
	assert_non_null(strstr(err.msg, "--frobnicate"));
	error_clear(&err);
	assert_int_equal(PARSE(&f, &err, WORD("milliboxd"), WORD("--listen")), -1);
	assert_non_null(strstr(err.msg, "ADDR:PORT"));
	error_clear(&err);
	assert_int_equal(PARSE(&f, &err, WORD("milliboxd"), WORD("--help=yes")), -1);
	error_clear(&err);
	assert_int_equal(PARSE(&f, &err, WORD("milliboxd"), WORD("--con"), WORD("x")), -1);
	error_clear(&err);
	assert_int_equal(PARSE(&f, &err, WORD("milliboxd"), WORD("file")), -1);
}

static void more_flags_than_there_is_room_for_are_refused(void **state)
{
	char *argv[2 + FLAGS_OVERRIDES_MAX];
	struct flags f;
	struct error err = {0};
	int argc = 0;

	(void)state;
	argv[argc++] = WORD("milliboxd");
	while (argc < (int)ARRAY_SIZE(argv))
		argv[argc++] = WORD("--socket=/x");
	assert_int_equal(flags_parse(argc, argv, &f, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_flag_goes_to_its_place),
		cmocka_unit_test(wrong_usage_is_named),
		cmocka_unit_test(more_flags_than_there_is_room_for_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
