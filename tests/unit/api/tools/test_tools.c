/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/json/json.h"
#include "api/tools/tool.h"
#include "api/tools/tool_args.h"
#include "base/str.h"
#include "core/config/config.h"
#include <ctype.h>
#include <string.h>

static const char *const colours[] = {"red", "green", NULL};

struct arguments {
	char *name, *colour, **list;
	uint64_t count;
	json_t *any;
};

/* As the tables of tools.c have them. */
static const struct fields fields = {
	.rows =
		(const struct field[]){
			{"name", FIELD_STRING, AT(struct arguments, name), .required = true},
			{"count", FIELD_INTEGER, AT(struct arguments, count), .min = 1, .max = 10,
                         .fallback = "3"},
			{"colour", FIELD_WORD, AT(struct arguments, colour), .words = colours},
			{"list", FIELD_STRINGS, AT(struct arguments, list)},
			{"any", FIELD_ANY, AT(struct arguments, any)},
			FIELDS_END,
		},
	.flags = FIELDS_LOOSE,
};

static int check(const char *text, struct error *err)
{
	cleanup_json json_t *j = json_loads(text, JSON_ALLOW_NUL, NULL);
	struct arguments decoded = {0};
	int r;

	assert_non_null(j);
	r = fields_decode(&fields, j, NULL, &decoded, err);
	fields_done(&fields, &decoded);
	return r;
}

static void good_arguments_are_taken(void **state)
{
	static const char *const good[] = {
		"{\"name\": \"a\"}",
		"{\"name\": \"a\", \"count\": 10, \"colour\": \"red\"}",
		"{\"name\": \"a\", \"count\": 4.0}",
		"{\"name\": \"a\", \"list\": [], \"any\": {}}",
		"{\"name\": \"a\", \"list\": [\"x\"], \"colour\": null}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct error err = {0};

		assert_int_equal(check(good[i], &err), 0);
	}
}

static void a_bad_argument_is_named(void **state)
{
	static const struct {
		const char *text, *field;
	} bad[] = {
		{"{}", "name"},
		{"{\"name\": null}", "name"},
		{"{\"name\": 1}", "name"},
		{"{\"name\": \"a\\u0000b\"}", "name"},
		{"{\"name\": \"a\", \"count\": 0}", "count"},
		{"{\"name\": \"a\", \"count\": 11}", "count"},
		{"{\"name\": \"a\", \"count\": 1.5}", "count"},
		{"{\"name\": \"a\", \"count\": \"1\"}", "count"},
		{"{\"name\": \"a\", \"colour\": \"blue\"}", "colour"},
		{"{\"name\": \"a\", \"list\": [1]}", "list[0]"},
		{"{\"name\": \"a\", \"more\": 1}", "more"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct error err = {0};

		assert_int_equal(check(bad[i].text, &err), -1);
		assert_string_equal(err.field, bad[i].field);
	}
}

static void absent_fields_are_the_fallback(void **state)
{
	cleanup_json json_t *j = json_loads("{\"name\": \"a\"}", 0, NULL);
	struct arguments decoded = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(fields_decode(&fields, j, NULL, &decoded, &err), 0);
	assert_int_equal(decoded.count, 3);
	assert_null(decoded.colour);
	fields_done(&fields, &decoded);
}

/* Other arguments that are null count as absent. */
static void a_limit_is_not_null(void **state)
{
	static const char *const limits[] = {"cpu_limit", "memory_limit", "disk_limit"};
	const struct config c = {0};
	const struct tool *tool = tool_find(&c, "create_sandbox");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		cleanup_json json_t *j = json_pack("{s:n,s:n}", "environment", limits[i]);
		struct tool_args args = {0};
		struct error err = {0};

		assert_int_equal(fields_decode(tool->input, j, NULL, &args, &err), -1);
		assert_string_equal(err.field, limits[i]);
		fields_done(tool->input, &args);
	}
}

static bool is_name(const char *text)
{
	for (; *text; text++)
		if (!islower((unsigned char)*text) && *text != '_')
			return false;
	return true;
}

/* What a client would stumble over, and no other test finds. */
static void check_fields(const struct fields *table)
{
	for (const struct field *f = table->rows; f->name; f++) {
		assert_true(is_name(f->name));
		assert_true(f->max == 0 || f->min <= f->max);
		if (f->fallback) {
			json_t *value = json_loads(f->fallback, JSON_DECODE_ANY, NULL);

			assert_non_null(value);
			json_decref(value);
		}
	}
}

static void every_row_is_whole(void **state)
{
	const struct tool *tool;
	size_t i = 0;

	(void)state;
	for (; (tool = tool_at(i)); i++) {
		const struct tool_reader reader = {0};
		cleanup_json json_t *view = tool_view(tool, &reader);

		assert_true(is_name(tool->name));
		assert_true(strlen(tool->title) > 0);
		assert_true(strlen(tool->description) > 40);
		assert_non_null(tool->run);
		assert_non_null(tool->input);
		assert_true(tool->scope != SCOPE_UNSET);
		check_fields(tool->input);
		check_fields(tool->output);
		/* A result has null for what it has not, which no list of words does. */
		for (const struct field *f = tool->output->rows; f->name; f++)
			assert_null(f->words);
		assert_true(json_is_object(json_object_get(view, "inputSchema")));
		for (size_t other = 0; other < i; other++)
			assert_string_not_equal(tool_at(other)->name, tool->name);
	}
	assert_true(i > 0);
}

static void operators_choose_tools(void **state)
{
	char *enabled[] = {(char *)"list_languages", (char *)"interrupt", NULL};
	char *disabled[] = {(char *)"interrupt", NULL};
	char *wrong[] = {(char *)"list_language", NULL};
	struct config c = {.mcp_enabled_tools = enabled, .mcp_disabled_tools = disabled};
	struct error err = {0};

	(void)state;
	assert_non_null(tool_find(&c, "list_languages"));
	assert_null(tool_find(&c, "interrupt"));
	assert_null(tool_find(&c, "create_sandbox"));
	assert_int_equal(tools_check(&c, &err), 0);
	c.mcp_enabled_tools = NULL;
	assert_non_null(tool_find(&c, "create_sandbox"));
	c.mcp_disabled_tools = wrong;
	assert_int_equal(tools_check(&c, &err), -1);
	assert_non_null(strstr(err.msg, "list_languages"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_arguments_are_taken),
		cmocka_unit_test(a_bad_argument_is_named),
		cmocka_unit_test(absent_fields_are_the_fallback),
		cmocka_unit_test(a_limit_is_not_null),
		cmocka_unit_test(every_row_is_whole),
		cmocka_unit_test(operators_choose_tools),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
