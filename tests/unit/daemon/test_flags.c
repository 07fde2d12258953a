/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/str.h"
#include "daemon/flags.h"
#include <string.h>

#define PARSE(flags, err, ...)                                                                     \
	parse((const char *const[]){"milliboxd", __VA_ARGS__, NULL}, flags, err)

static int parse(const char *const *words, struct flags *flags, struct error *err)
{
	int count = 0;

	while (words[count])
		count++;
	return flags_parse(count, (char *const *)(uintptr_t)words, flags, err);
}

static void each_flag_goes_to_its_place(void **state)
{
	struct flags f;
	struct error err = {0};

	(void)state;
	assert_int_equal(PARSE(&f, &err, "--config", "/c", "--listen=", "--socket", "/s",
	                       "--log-level=debug", "--check-config"),
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
	assert_int_equal(PARSE(&f, &err, "--frobnicate"), -1);
	assert_non_null(strstr(err.msg, "--frobnicate"));
	error_clear(&err);
	assert_int_equal(PARSE(&f, &err, "--listen"), -1);
	assert_non_null(strstr(err.msg, "ADDR:PORT"));
	error_clear(&err);
	assert_int_equal(PARSE(&f, &err, "--help=yes"), -1);
	error_clear(&err);
	assert_int_equal(PARSE(&f, &err, "--con", "x"), -1);
	error_clear(&err);
	assert_int_equal(PARSE(&f, &err, "file"), -1);
}

static void more_flags_than_there_is_room_for_are_refused(void **state)
{
	const char *words[3 + FLAGS_OVERRIDES_MAX] = {"milliboxd"};
	struct flags f;
	struct error err = {0};

	(void)state;
	for (size_t i = 1; i < FLAGS_OVERRIDES_MAX + 1; i++)
		words[i] = "--socket=/x";
	assert_int_equal(parse(words, &f, &err), 0);
	words[FLAGS_OVERRIDES_MAX + 1] = "--socket=/x";
	assert_int_equal(parse(words, &f, &err), -1);
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
