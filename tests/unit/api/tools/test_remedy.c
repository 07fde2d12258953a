/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/remedy.h"

#include "unit.h"
#include <string.h>

/* A caller of a tool, who knows neither paths nor commands. */
static const enum error_code reachable[] = {
	ERR_INVALID,
	ERR_UNKNOWN_FIELD,
	ERR_NOT_FOUND,
	ERR_CONFLICT,
	ERR_DENIED,
	ERR_BUSY,
	ERR_SESSION_NOT_FOUND,
	ERR_EXECUTION_NOT_FOUND,
	ERR_QUOTA,
	ERR_NO_SCOPE,
	ERR_FILE_NOT_FOUND,
	ERR_BAD_RANGE,
	ERR_DISK_FULL,
	ERR_TEMPLATE_NOT_FOUND,
	ERR_UNAVAILABLE,
	ERR_BOX_FAILED,
	ERR_AGENT_LOST,
	ERR_CONFIG,
	ERR_SYSTEM,
	ERR_STORAGE,
};

static const char *remedy_for(enum error_code code, bool brief)
{
	return remedy_of(&(struct error){.code = code}, brief);
}

static void agents_read_of_tools_and_arguments(void **state)
{
	static const char *const foreign[] = {"millibox", "--",         "/api/", "GET ",
	                                      "POST ",    "resources.", "field"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(reachable); i++)
		for (int brief = 0; brief < 2; brief++)
			for (size_t k = 0; k < ARRAY_SIZE(foreign); k++) {
				const char *text = remedy_for(reachable[i], brief);

				if (strstr(text, foreign[k]))
					fail_msg("'%s' in: %s", foreign[k], text);
			}
}

static void the_default_profile_names_its_own_tools(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(reachable); i++)
		assert_null(strstr(remedy_for(reachable[i], true), "_sandbox"));
	assert_non_null(strstr(remedy_for(ERR_SESSION_NOT_FOUND, true), "manage_session"));
	assert_non_null(strstr(remedy_for(ERR_SESSION_NOT_FOUND, false), "list_sandboxes"));
}

static void only_what_was_not_begun_is_to_be_called_again(void **state)
{
	static const char again[] = "Call the tool again in some seconds";
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(reachable); i++)
		assert_null(strstr(remedy_for(reachable[i], true), again));
	(void)error_later(&err, ERR_BUSY, ERROR_SOON_US, "the queue is full");
	assert_non_null(strstr(remedy_of(&err, true), again));
}

static void limits_are_arguments(void **state)
{
	struct buf b = BUF_INIT(256);

	(void)state;
	remedy_add_text("Set resources.memory of the request to 1Gi, or resources.disk.", &b);
	assert_int_equal(buf_add(&b, "", 1), 0);
	assert_string_equal(b.data, "Set memory_limit of the request to 1Gi, or disk_limit.");
	buf_done(&b);
}

static void unknown_fields_are_unknown_arguments(void **state)
{
	struct error err = {0};

	(void)state;
	(void)error_set(&err, ERR_UNKNOWN_FIELD, 0, "no such field; did you mean 'code'?");
	remedy_name_argument(&err);
	assert_string_equal(err.msg, "no such argument; did you mean 'code'?");
	err = (struct error){0};
	(void)error_set(&err, ERR_INVALID, 0, "must be 1");
	remedy_name_argument(&err);
	assert_string_equal(err.msg, "must be 1");
	memset(err.msg, 'x', sizeof(err.msg) - 1);
	memcpy(err.msg + sizeof(err.msg) - 14, "no such field", 14);
	remedy_name_argument(&err);
	assert_true(strlen(err.msg) < sizeof(err.msg));
	assert_string_equal(remedy_describe(ERR_INVALID), "An argument has an invalid value.");
	assert_string_equal(remedy_describe(ERR_BUSY), error_describe(ERR_BUSY));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agents_read_of_tools_and_arguments),
		cmocka_unit_test(unknown_fields_are_unknown_arguments),
		cmocka_unit_test(limits_are_arguments),
		cmocka_unit_test(the_default_profile_names_its_own_tools),
		cmocka_unit_test(only_what_was_not_begun_is_to_be_called_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
