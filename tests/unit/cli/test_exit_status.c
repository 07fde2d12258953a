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

static void an_invalid_value_is_a_usage_error(void **state)
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

static void results_map_to_exit_statuses(void **state)
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

/* Captures what exit_status_explain prints about @text. */
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

static void the_limit_that_killed_the_program_is_named(void **state)
{
	static const char *const cases[][2] = {
		{"{\"status\":\"timeout\",\"limit\":\"time\"}", "time limit and was stopped"},
		{"{\"status\":\"timeout\",\"limit\":null}", "time limit"},
		{"{\"status\":\"failed\",\"limit\":\"memory\"}", "--memory"},
		{"{\"status\":\"failed\",\"limit\":\"processes\"}", "--processes"},
		{"{\"status\":\"success\",\"limit\":\"output\"}", "--max-output"},
		{"{\"status\":\"failed\",\"limit\":\"disk\"}", "--disk"},
		{"{\"status\":\"failed\",\"limit\":\"cpu\"}", "--cpu"},
		{"{\"status\":\"failed\",\"limit\":\"patience\"}", "patience limit"},
		{"{\"status\":\"crashed\"}", "the box failed"},
		{"{\"status\":\"cancelled\"}", "was cancelled"},
	};
	char printed[512];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		explain(cases[i][0], printed, sizeof(printed));
		if (!strstr(printed, cases[i][1]) || strncmp(printed, "millibox: ", 10) != 0)
			fail_msg("%s: '%s'", cases[i][0], printed);
		assert_ptr_equal(strchr(printed, '\n'), printed + strlen(printed) - 1);
	}
}

static void an_ordinary_exit_prints_nothing(void **state)
{
	char printed[512];

	(void)state;
	explain("{\"status\":\"success\",\"exit_code\":0,\"limit\":null}", printed,
	        sizeof(printed));
	assert_string_equal(printed, "");
	explain("{\"status\":\"failed\",\"exit_code\":1,\"limit\":null}", printed, sizeof(printed));
	assert_string_equal(printed, "");
	explain("{\"status\":\"success\",\"exit_code\":0,\"limit\":null,\"denials\":"
	        "[{\"kind\":\"syscall\",\"what\":\"memory\",\"count\":1}]}",
	        printed, sizeof(printed));
	assert_string_equal(printed, "");
}

/* The program continued, and nothing else explains why one of its processes failed. */
static void a_limit_that_one_process_reached_is_named(void **state)
{
	char printed[200];

	(void)state;
	explain("{\"status\":\"success\",\"exit_code\":0,\"limit\":null,\"denials\":"
	        "[{\"kind\":\"limit\",\"what\":\"memory\",\"count\":1}]}",
	        printed, sizeof(printed));
	assert_string_equal(printed, "millibox: the program reached its memory limit (--memory)\n");
	explain("{\"status\":\"failed\",\"exit_code\":1,\"limit\":\"memory\",\"denials\":"
	        "[{\"kind\":\"limit\",\"what\":\"memory\",\"count\":1}]}",
	        printed, sizeof(printed));
	assert_string_equal(printed, "millibox: the program reached its memory limit (--memory)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_invalid_value_is_a_usage_error),
		cmocka_unit_test(results_map_to_exit_statuses),
		cmocka_unit_test(the_limit_that_killed_the_program_is_named),
		cmocka_unit_test(an_ordinary_exit_prints_nothing),
		cmocka_unit_test(a_limit_that_one_process_reached_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
