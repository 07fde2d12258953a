/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "cli/exit_status.h"

static json_t *result(const char *text)
{
	json_t *object = json_loads(text, 0, NULL);

	assert_non_null(object);
	return object;
}

static void a_refused_value_is_wrong_usage(void **state)
{
	json_t *usage = result("{\"error_code\":\"Sandbox.InvalidParameter\"}");
	json_t *other = result("{\"error_code\":\"Sandbox.TooManyRequests\"}");
	json_t *none = result("{}");

	(void)state;
	assert_int_equal(exit_status_of_problem(usage), 2);
	assert_int_equal(exit_status_of_problem(other), 125);
	assert_int_equal(exit_status_of_problem(none), 125);
	json_decref(usage);
	json_decref(other);
	json_decref(none);
}

static void the_exit_status_says_how_it_ended(void **state)
{
	static const struct {
		const char *result;
		int status;
	} cases[] = {
		{"{\"status\":\"success\",\"exit_code\":0}", 0},
		{"{\"status\":\"failed\",\"exit_code\":3}", 3},
		{"{\"status\":\"failed\",\"exit_code\":255}", 255},
		{"{\"status\":\"failed\",\"exit_code\":137,\"signal\":9}", 137},
		{"{\"status\":\"timeout\",\"exit_code\":137,\"limit\":\"time\"}", 124},
		{"{\"status\":\"timeout\",\"exit_code\":null}", 124},
		{"{\"status\":\"crashed\",\"exit_code\":0}", 125},
		{"{\"status\":\"cancelled\",\"exit_code\":0}", 125},
		{"{\"status\":\"failed\",\"exit_code\":null}", 125},
		{"{\"status\":\"failed\",\"exit_code\":256}", 125},
		{"{\"status\":\"failed\",\"exit_code\":-1}", 125},
		{"{\"status\":\"failed\",\"exit_code\":\"0\"}", 125},
		{"{\"exit_code\":4}", 4},
		{"{}", 125},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *object = result(cases[i].result);

		assert_int_equal(exit_status_of_result(object), cases[i].status);
		json_decref(object);
	}
}

/* What exit_status_explain says on stderr about @text. */
static void explain(const char *text, char *ret_said, size_t size)
{
	json_t *object = result(text);
	int saved = fd_dup(STDERR_FILENO);
	int file = fd_memfd("stderr", 0);
	ssize_t n;

	assert_true(saved >= 0 && file >= 0);
	assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
	exit_status_explain(object);
	(void)fflush(stderr);
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	n = pread(file, ret_said, size - 1, 0);
	assert_true(n >= 0);
	ret_said[n] = '\0';
	(void)fd_close(saved);
	(void)fd_close(file);
	json_decref(object);
}

static void the_limit_that_ended_it_is_named(void **state)
{
	static const char *const cases[][2] = {
		{"{\"status\":\"timeout\",\"limit\":\"time\"}", "time limit"},
		{"{\"status\":\"timeout\",\"limit\":null}", "time limit"},
		{"{\"status\":\"failed\",\"limit\":\"memory\"}", "--memory"},
		{"{\"status\":\"failed\",\"limit\":\"processes\"}", "--processes"},
		{"{\"status\":\"success\",\"limit\":\"output\"}", "--max-output"},
		{"{\"status\":\"failed\",\"limit\":\"disk\"}", "--disk"},
		{"{\"status\":\"failed\",\"limit\":\"cpu\"}", "--cpu"},
		{"{\"status\":\"failed\",\"limit\":\"patience\"}", "limit of patience"},
		{"{\"status\":\"crashed\"}", "the box was lost"},
		{"{\"status\":\"cancelled\"}", "was cancelled"},
	};
	char said[512];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		explain(cases[i][0], said, sizeof(said));
		if (!strstr(said, cases[i][1]) || strncmp(said, "millibox: ", 10) != 0)
			fail_msg("%s: '%s'", cases[i][0], said);
		assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
	}
}

static void an_ordinary_end_needs_no_words(void **state)
{
	char said[512];

	(void)state;
	explain("{\"status\":\"success\",\"exit_code\":0,\"limit\":null}", said, sizeof(said));
	assert_string_equal(said, "");
	explain("{\"status\":\"failed\",\"exit_code\":1,\"limit\":null}", said, sizeof(said));
	assert_string_equal(said, "");
	explain("{\"status\":\"success\",\"exit_code\":0,\"limit\":null,\"denials\":"
	        "[{\"kind\":\"syscall\",\"what\":\"memory\",\"count\":1}]}",
	        said, sizeof(said));
	assert_string_equal(said, "");
}

/* The program went on, and nothing else says why a part of it did not. */
static void a_limit_that_a_part_has_met_is_named(void **state)
{
	char said[200];

	(void)state;
	explain("{\"status\":\"success\",\"exit_code\":0,\"limit\":null,\"denials\":"
	        "[{\"kind\":\"limit\",\"what\":\"memory\",\"count\":1}]}",
	        said, sizeof(said));
	assert_string_equal(said, "millibox: the program reached its memory limit (--memory)\n");
	explain("{\"status\":\"failed\",\"exit_code\":1,\"limit\":\"memory\",\"denials\":"
	        "[{\"kind\":\"limit\",\"what\":\"memory\",\"count\":1}]}",
	        said, sizeof(said));
	assert_string_equal(said, "millibox: the program reached its memory limit (--memory)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_value_is_wrong_usage),
		cmocka_unit_test(the_exit_status_says_how_it_ended),
		cmocka_unit_test(the_limit_that_ended_it_is_named),
		cmocka_unit_test(an_ordinary_end_needs_no_words),
		cmocka_unit_test(a_limit_that_a_part_has_met_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
