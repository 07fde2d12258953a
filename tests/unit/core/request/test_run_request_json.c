/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "base/str.h"
#include "core/request/run_request.h"
#include "core/run/run.h"
#include <string.h>

static struct run_request again(const struct run_request *in)
{
	cleanup_free char *text = run_request_to_json(in);
	struct run_request out;
	struct error err = {0};

	if (run_request_from_json(text, &out, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return out;
}

static void all_requested_values_round_trip(void **state)
{
	char *args[] = {(char *)"-x", (char *)"", (char *)"\xff\xfe not text", NULL};
	char *env[] = {(char *)"A=1", (char *)"B=", NULL};
	struct run_request_file files[] = {
		{.name = (char *)"a/\xe9", .data = (char *)"\0\1\377", .len = 3},
		{.name = (char *)"empty", .data = (char *)"", .len = 0},
	};
	const struct run_request in = {
		.language = (char *)"python",
		.request_id = (char *)"req-1",
		.ask = (char *)"{\"event\": \"\\u00e9\"}",
		.name_ask = (char *)"{\"name\": \"a.py\"}",
		.stdin_data = (char *)"in\0put",
		.stdin_len = 6,
		.stdin_open = true,
		.fresh = true,
		.args = args,
		.env = env,
		.files = files,
		.files_count = 2,
		.timeout_us = 1ull << 40,
		.max_output_bytes = 7,
	};
	struct run_request out = again(&in);

	(void)state;
	assert_string_equal(out.language, in.language);
	assert_string_equal(out.request_id, in.request_id);
	assert_string_equal(out.ask, in.ask);
	assert_string_equal(out.name_ask, in.name_ask);
	assert_int_equal(out.stdin_len, 6);
	assert_memory_equal(out.stdin_data, in.stdin_data, 6);
	assert_true(out.stdin_open && out.fresh);
	assert_int_equal(str_list_count(out.args), 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(out.args[i], args[i]);
	assert_int_equal(str_list_count(out.env), 2);
	assert_string_equal(out.env[1], "B=");
	assert_int_equal(out.files_count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(out.files[i].name, files[i].name);
		assert_int_equal(out.files[i].len, files[i].len);
		assert_memory_equal(out.files[i].data, files[i].data, files[i].len);
	}
	assert_true(out.timeout_us == in.timeout_us && out.max_output_bytes == 7);
	assert_null(out.code);
	run_request_done(&out);
}

static void unrequested_members_are_absent(void **state)
{
	struct run_request out = again(&(struct run_request){0});

	(void)state;
	assert_null(out.language);
	assert_null(out.request_id);
	assert_null(out.ask);
	assert_null(out.name_ask);
	assert_null(out.stdin_data);
	assert_null(out.args);
	assert_null(out.env);
	assert_null(out.files);
	assert_int_equal(out.files_count + out.stdin_len + out.timeout_us + out.max_output_bytes,
	                 0);
	assert_false(out.stdin_open || out.fresh);
	run_request_done(&out);
}

/* An empty list differs from none. */
static void empty_list_stays_an_empty_list(void **state)
{
	char *none[] = {NULL};
	struct run_request out = again(&(struct run_request){.args = none});

	(void)state;
	assert_non_null(out.args);
	assert_null(out.args[0]);
	run_request_done(&out);
}

/* Foreign bytes in the store: half a request is never accepted. */
static void foreign_text_is_refused_completely(void **state)
{
	static const char *const texts[] = {
		"",
		"null",
		"[]",
		"1",
		"\"{}\"",
		"{",
		"{} {}",
		"{\"fresh\": true, \"fresh\": false}",
		"{\"language\": 1}",
		"{\"language\": null}",
		"{\"language\": \"a\\u0000b\"}",
		"{\"language\": \"\xff\"}",
		"{\"ask\": {}}",
		"{\"request_id\": []}",
		"{\"stdin\": \"no base64!\"}",
		"{\"stdin\": 5}",
		"{\"stdin_open\": 1}",
		"{\"fresh\": \"true\"}",
		"{\"args\": \"eA==\"}",
		"{\"args\": {\"0\": \"eA==\"}}",
		"{\"args\": [\"eA==\", 1]}",
		"{\"args\": [\"eA==\", \"*\"]}",
		"{\"env\": [\"QQBC\"]}", /* A, NUL, B */
		"{\"env\": [[]]}",
		"{\"files\": {}}",
		"{\"files\": []}",
		"{\"files\": [1]}",
		"{\"files\": [{\"name\": \"eA==\"}]}",
		"{\"files\": [{\"data\": \"eA==\"}]}",
		"{\"files\": [{\"name\": \"eA==\", \"data\": \"eA\"}]}",
		"{\"files\": [{\"name\": \"QQBC\", \"data\": \"eA==\"}]}",
		"{\"files\": [{\"name\": \"eA==\", \"data\": \"eA==\"}, null]}",
		"{\"timeout_us\": -1}",
		"{\"timeout_us\": 1.5}",
		"{\"timeout_us\": \"1\"}",
		"{\"timeout_us\": 99999999999999999999}",
		"{\"max_output\": -9223372036854775808}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct run_request out = {.files_count = 77};
		struct error err = {0};

		if (run_request_from_json(texts[i], &out, &err) == 0)
			fail_msg("taken: %s", texts[i]);
		assert_int_equal(err.code, ERR_STORAGE);
		assert_int_equal(out.files_count, 77);
	}
}

static void nothing_is_refused(void **state)
{
	struct run_request out;
	struct error err = {0};

	(void)state;
	assert_int_equal(run_request_from_json(NULL, &out, &err), -1);
	assert_int_equal(err.code, ERR_STORAGE);
}

/* Deeper than the parser goes: an error, not a stack overflow. */
static void depth_is_bounded(void **state)
{
	const size_t depth = 1 << 20;
	cleanup_free char *text = xcalloc(depth + 1, 1);
	struct run_request out;
	struct error err = {0};

	(void)state;
	memset(text, '[', depth);
	assert_int_equal(run_request_from_json(text, &out, &err), -1);
}

/* Written by a later version: known members are used. */
static void an_unknown_member_is_ignored(void **state)
{
	struct run_request out;
	struct error err = {0};

	(void)state;
	assert_int_equal(run_request_from_json("{\"later\": [1], \"fresh\": true}", &out, &err), 0);
	assert_true(out.fresh);
	run_request_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_requested_values_round_trip),
		cmocka_unit_test(unrequested_members_are_absent),
		cmocka_unit_test(empty_list_stays_an_empty_list),
		cmocka_unit_test(foreign_text_is_refused_completely),
		cmocka_unit_test(nothing_is_refused),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(an_unknown_member_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
