/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/json/fields.h"
#include "api/json/json.h"
#include "base/str.h"
#include <string.h>

enum colour {
	RED,
	GREEN,
	BLUE
};

struct inner {
	uint64_t memory;
	char *note;
};

struct thing {
	char *name, *label, *word;
	size_t label_len;
	enum colour colour;
	bool colour_given, flag;
	char *data;
	size_t data_len;
	uint64_t count, amount, time, size, cpu, other;
	double ratio;
	char **args, **env;
	struct inner inner;
	struct inner *list;
	size_t list_count;
	json_t *object, *array, *any;
	int checked;
};

static bool is_lower(const char *text)
{
	return text[strspn(text, "abcdefghijklmnopqrstuvwxyz")] == '\0';
}

static int check_even(const struct field_value *v)
{
	struct thing *t = v->out;

	t->checked = *(const int *)v->ctx;
	return json_integer_value(v->value) % 2 == 0 ? 0 : fields_wrong(v, "even");
}

static const char *const colours[] = {"red", "green", "blue", NULL};

static const struct fields inner_fields = {
	.name = "Inner",
	.rows =
		(const struct field[]){
			{"memory", FIELD_SIZE, AT(struct inner, memory)},
			{"note", FIELD_STRING, AT(struct inner, note)},
			FIELDS_END,
		},
};

static const struct field rows[] = {
	{"name", FIELD_STRING, AT(struct thing, name), .required = true, .max = 8,
         .valid = is_lower, .what = "1 to 8 small letters", .min = 1, .description = "What it is"},
	{"label", FIELD_STRING, AT_LEN(struct thing, label, label_len), .min = 1},
	{"title", FIELD_STRING, AT_LEN(struct thing, label, label_len), .max = 4},
	{"word", FIELD_WORD, AT(struct thing, word), .words = colours, .fallback = "\"red\""},
	{"colour", FIELD_ENUM, AT(struct thing, colour), GIVEN(struct thing, colour_given),
         .words = colours},
	{"flag", FIELD_BOOL, AT(struct thing, flag)},
	{"data", FIELD_BYTES, AT_LEN(struct thing, data, data_len)},
	{"count", FIELD_INTEGER, AT(struct thing, count), .min = 1, .max = 10, .unit = 1024},
	{"other", FIELD_INTEGER, AT(struct thing, other)},
	{"ratio", FIELD_NUMBER, AT(struct thing, ratio), .min = 0.5, .max = 2},
	{"amount", FIELD_AMOUNT, AT(struct thing, amount), .min = 0.1, .max = 4, .unit = 1000},
	{"time", FIELD_SECONDS, AT(struct thing, time), .min = 1, .max = 60},
	{"size", FIELD_SIZE, AT(struct thing, size), .schema = "{\"examples\": [1]}"},
	{"bytes", FIELD_SIZE, AT(struct thing, size), .once = true},
	{"cpu", FIELD_CPU, AT(struct thing, cpu)},
	{"args", FIELD_STRINGS, AT(struct thing, args), .max = 2},
	{"env", FIELD_ENV, AT(struct thing, env)},
	{"inner", FIELD_OBJECT, AT(struct thing, inner), .fields = &inner_fields},
	{"list", FIELD_OBJECTS, AT_LEN(struct thing, list, list_count), .fields = &inner_fields,
         .item_size = sizeof(struct inner), .max = 2},
	{"object", FIELD_OBJECT, AT(struct thing, object)},
	{"array", FIELD_LIST, AT(struct thing, array)},
	{"any", FIELD_ANY, AT(struct thing, any)},
	{"even", FIELD_CUSTOM, .check = check_even, .schema = "{\"type\": \"integer\"}"},
	{"ignored", FIELD_BOOL},
	FIELDS_END,
};
static const struct fields fields = {.name = "Thing", .rows = rows};
static const struct fields loose = {.rows = rows, .flags = FIELDS_OPEN | FIELDS_LOOSE};

static const int context = 42;

static int decode(const struct fields *by, const char *text, struct thing *t, struct error *err)
{
	return fields_decode_text(by, text, strlen(text), &context, t, err);
}

static void refuse(const char *member, enum error_code code, const char *path, const char *words)
{
	char text[512];
	struct thing t = {0};
	struct error err = {0};

	(void)snprintf(text, sizeof(text), "{\"name\": \"a\"%s%s}", *member ? ", " : "", member);
	assert_int_equal(decode(&fields, text, &t, &err), -1);
	if (err.code != code || !str_equal(err.field, path) || !strstr(err.msg, words))
		fail_msg("%s: %s of '%s': %s", text, error_name(err.code), err.field, err.msg);
	fields_done(&fields, &t);
}

static void every_type_is_stored(void **state)
{
	struct thing t = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(
		decode(&fields,
	               "{\"name\": \"abc\", \"label\": \"xy\", \"word\": \"blue\", \"colour\": "
	               "\"green\", \"flag\": true, \"data\": {\"base64\": \"AAE=\"}, \"count\": 2, "
	               "\"other\": 9007199254740993, \"ratio\": 0.5, \"amount\": 0.25, \"time\": "
	               "1.5, \"size\": \"1Ki\", \"cpu\": \"500m\", \"args\": [\"\", \"b\"], "
	               "\"env\": {\"A\": \"x=y\", \"B\": 0.1, \"C\": true}, \"inner\": "
	               "{\"memory\": "
	               "5, \"note\": \"n\"}, \"list\": [{\"memory\": 6}, {\"note\": \"m\"}], "
	               "\"object\": {\"z\": 1}, \"array\": [1], \"any\": null, \"even\": 2, "
	               "\"ignored\": true}",
	               &t, &err),
		0);
	assert_string_equal(t.name, "abc");
	assert_string_equal(t.label, "xy");
	assert_int_equal(t.label_len, 2);
	assert_string_equal(t.word, "blue");
	assert_int_equal(t.colour, GREEN);
	assert_true(t.colour_given && t.flag);
	assert_int_equal(t.data_len, 2);
	assert_memory_equal(t.data, "\0\1", 2);
	assert_int_equal(t.count, 2048);
	assert_int_equal(t.other, 9007199254740993);
	assert_true(t.ratio == 0.5);
	assert_int_equal(t.amount, 250);
	assert_int_equal(t.time, 1500000);
	assert_int_equal(t.size, 1024);
	assert_int_equal(t.cpu, 500);
	assert_string_equal(t.args[0], "");
	assert_null(t.args[2]);
	assert_string_equal(t.env[0], "A=x=y");
	assert_string_equal(t.env[1], "B=0.1");
	assert_string_equal(t.env[2], "C=true");
	assert_int_equal(t.inner.memory, 5);
	assert_string_equal(t.inner.note, "n");
	assert_int_equal(t.list_count, 2);
	assert_int_equal(t.list[0].memory, 6);
	assert_string_equal(t.list[1].note, "m");
	assert_int_equal(json_object_size(t.object), 1);
	assert_int_equal(json_array_size(t.array), 1);
	assert_true(json_is_null(t.any));
	assert_int_equal(t.checked, 42);
	fields_done(&fields, &t);
	assert_null(t.name);
	assert_null(t.list);
	assert_null(t.inner.note);
}

static void absent_fields_are_zero_or_their_fallback(void **state)
{
	struct thing t = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(decode(&fields, "{\"name\": \"a\"}", &t, &err), 0);
	assert_null(t.label);
	assert_null(t.args);
	assert_false(t.colour_given);
	assert_string_equal(t.word, "red");
	fields_done(&fields, &t);
}

static void a_wrong_value_names_its_path(void **state)
{
	static const struct {
		const char *member, *path, *words;
	} bad[] = {
		{"\"label\": 1", "label", "must be a string"},
		{"\"label\": null", "label", "must be a string"},
		{"\"label\": \"\"", "label", "must not be empty"},
		{"\"label\": \"a\\u0000\"", "label", "NUL"},
		{"\"title\": \"12345\"", "title", "must be at most 4 bytes"},
		{"\"label\": \"x\", \"title\": \"y\"", "title", "twice"},
		{"\"word\": \"pink\"", "word", "\"red\", \"green\" or \"blue\""},
		{"\"colour\": \"red\\u0000\"", "colour", "\"red\""},
		{"\"colour\": 1", "colour", "a string"},
		{"\"flag\": 1", "flag", "true or false"},
		{"\"data\": 1", "data", "a string or"},
		{"\"data\": {\"base64\": \"%\"}", "data", "not valid base64"},
		{"\"data\": {\"base64\": \"\", \"x\": 1}", "data", "a string or"},
		{"\"count\": 0", "count", "a whole number, 1 to 10"},
		{"\"count\": 11", "count", "a whole number, 1 to 10"},
		{"\"count\": 2.0", "count", "a whole number"},
		{"\"other\": -1", "other", "a whole number, at least 0"},
		{"\"ratio\": 3", "ratio", "0.5 to 2"},
		{"\"ratio\": \"1\"", "ratio", "a number"},
		{"\"amount\": 0", "amount", "0.1 to 4"},
		{"\"time\": 0", "time", "seconds"},
		{"\"time\": 61", "time", "1 to 60 seconds"},
		{"\"time\": \"1\"", "time", "a number of seconds"},
		{"\"size\": 0", "size", "greater than 0"},
		{"\"size\": \"1Xi\"", "size", "a size like"},
		{"\"size\": 1, \"bytes\": 2", "bytes", "twice"},
		{"\"cpu\": 0", "cpu", "a number of cores"},
		{"\"args\": [\"a\", 1]", "args[1]", "a string"},
		{"\"args\": [\"a\", \"b\", \"c\"]", "args", "at most 2"},
		{"\"args\": {}", "args", "an array of strings"},
		{"\"env\": {\"A=B\": \"\"}", "env.A=B", "not a name"},
		{"\"env\": {\"A\": []}", "env.A", "a string, a number or a boolean"},
		{"\"env\": []", "env", "an object of name: value"},
		{"\"inner\": {\"memory\": true}", "inner.memory", "a size"},
		{"\"inner\": []", "inner", "an object"},
		{"\"list\": [{}, {\"note\": 1}]", "list[1].note", "a string"},
		{"\"list\": [1]", "list[0]", "an object"},
		{"\"list\": [{}, {}, {}]", "list", "at most 2"},
		{"\"object\": []", "object", "an object"},
		{"\"array\": {}", "array", "a list"},
		{"\"even\": 3", "even", "must be even"},
		{"\"ignored\": 1", "ignored", "true or false"},
	};
	struct thing t = {0};
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		refuse(bad[i].member, ERR_INVALID, bad[i].path, bad[i].words);
	assert_int_equal(decode(&fields, "{\"name\": \"A\"}", &t, &err), -1);
	assert_non_null(strstr(err.msg, "must be 1 to 8 small letters"));
	fields_done(&fields, &t);
	error_clear(&err);
	assert_int_equal(decode(&fields, "{}", &t, &err), -1);
	assert_string_equal(err.field, "name");
	assert_non_null(strstr(err.msg, "is missing"));
}

static void an_unknown_field_suggests_the_nearest(void **state)
{
	char text[128];

	(void)state;
	refuse("\"colur\": 1", ERR_UNKNOWN_FIELD, "colur", "'colour'");
	refuse("\"memory\": 1", ERR_UNKNOWN_FIELD, "memory", "'inner.memory'");
	refuse("\"inner\": {\"memroy\": 1}", ERR_UNKNOWN_FIELD, "inner.memroy", "'inner.memory'");
	refuse("\"zzzzzz\": 1", ERR_UNKNOWN_FIELD, "zzzzzz", "no such field");
	refuse("\"\": 1", ERR_UNKNOWN_FIELD, "\"\"", "no such field");
	(void)snprintf(text, sizeof(text), "\"%0100d\": 1", 0);
	refuse(text, ERR_UNKNOWN_FIELD,
	       "000000000000000000000000000000000000000000000000000000000000000", "no such field");
}

static void a_loose_table_takes_more(void **state)
{
	struct thing t = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(decode(&loose,
	                        "{\"name\": \"a\", \"nobody\": 1, \"label\": null, \"count\": 3.0, "
	                        "\"word\": null}",
	                        &t, &err),
	                 0);
	assert_null(t.label);
	assert_int_equal(t.count, 3072);
	assert_string_equal(t.word, "red");
	fields_done(&loose, &t);
	assert_int_equal(decode(&loose, "{\"name\": null}", &t, &err), -1);
	error_clear(&err);
	assert_int_equal(decode(&loose, "{\"name\": \"a\", \"other\": 1e300}", &t, &err), -1);
	fields_done(&loose, &t);
}

static void check_schema(const json_t *schema, const char *name, const char *expected)
{
	cleanup_json json_t *wanted = json_loads(expected, 0, NULL);
	const json_t *found = json_object_get(json_object_get(schema, "properties"), name);

	assert_non_null(wanted);
	if (!json_equal(wanted, found))
		fail_msg("%s: %s", name, json_dumps(found, 0));
}

static void a_table_is_a_schema(void **state)
{
	cleanup_json json_t *open = fields_schema(&fields, FIELDS_OPENAPI);
	cleanup_json json_t *inlined = fields_schema(&loose, FIELDS_INLINE);
	cleanup_json json_t *result = fields_schema(&inner_fields, FIELDS_NULLABLE);
	cleanup_json json_t *components = json_object();

	(void)state;
	assert_true(json_is_false(json_object_get(open, "additionalProperties")));
	assert_null(json_object_get(inlined, "additionalProperties"));
	assert_int_equal(json_array_size(json_object_get(open, "required")), 1);
	check_schema(open, "name",
	             "{\"type\": \"string\", \"description\": \"What it is\", \"minLength\": 1, "
	             "\"maxLength\": 8}");
	check_schema(
		open, "word",
		"{\"type\": \"string\", \"enum\": [\"red\", \"green\", \"blue\"], \"default\": "
		"\"red\"}");
	check_schema(open, "count", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 10}");
	check_schema(open, "ratio", "{\"type\": \"number\", \"minimum\": 0.5, \"maximum\": 2}");
	check_schema(open, "args",
	             "{\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"maxItems\": 2}");
	check_schema(open, "data", "{\"$ref\": \"#/components/schemas/Bytes\"}");
	check_schema(open, "inner", "{\"$ref\": \"#/components/schemas/Inner\"}");
	check_schema(open, "even", "{\"type\": \"integer\"}");
	check_schema(result, "note", "{\"type\": [\"string\", \"null\"]}");
	assert_non_null(json_object_get(
		json_object_get(json_object_get(json_object_get(inlined, "properties"), "inner"),
	                        "properties"),
		"memory"));
	fields_components(components);
	assert_non_null(json_object_get(components, "Bytes"));
	assert_non_null(json_object_get(components, "Size"));
}

/* Query parameters. */

struct page {
	const char *name, *word;
	enum colour colour;
	bool flag;
	uint64_t limit, after, offset, time;
	size_t length;
};

static int take_length(const struct field_value *v)
{
	*(size_t *)fields_target(v) = strlen(v->text);
	return v->text[0] ? 0 : fields_wrong(v, "some text");
}

static const struct field page_rows[] = {
	{"name", FIELD_STRING, AT(struct page, name), .max = 4, .description = "Its name"},
	{"word", FIELD_WORD, AT(struct page, word), .words = colours},
	{"colour", FIELD_ENUM, AT(struct page, colour), .words = colours, .fallback = "\"blue\""},
	{"flag", FIELD_BOOL, AT(struct page, flag)},
	{"limit", FIELD_INTEGER, AT(struct page, limit), .min = 1, .max = 200, .clamp = true,
         .fallback = "50"},
	{"offset", FIELD_INTEGER, AT(struct page, offset), .max = 1000},
	{"after", FIELD_INTEGER, AT(struct page, after), .clamp = true},
	{"time", FIELD_SECONDS, AT(struct page, time), .min = 0.1, .max = 10},
	{"length", FIELD_CUSTOM, AT(struct page, length), .check = take_length,
         .schema = "{\"type\": \"string\"}"},
	{"poll", FIELD_SECONDS, .max = 10},
	FIELDS_END,
};
static const struct fields page_fields = {.rows = page_rows};

/* A query is a list of names and texts. */
static const char *text_of(const void *query, const char *name)
{
	for (const char *const *pair = query; *pair; pair += 2)
		if (str_equal(pair[0], name))
			return pair[1];
	return NULL;
}

static void parameters_of_a_query_are_stored(void **state)
{
	static const char *const query[] = {
		"name", "a",     "word",   "green",  "colour", "red",   "flag",
		"1",    "limit", "201",    "offset", "7",      "after", "18446744073709551615",
		"time", "0.1",   "length", "\xff",   "more",   "x",     NULL};
	static const char *const empty[] = {NULL};
	struct page page = {0}, absent = {.offset = 3};
	struct error err = {0};

	(void)state;
	assert_int_equal(fields_decode_query(&page_fields, text_of, query, &page, &err), 0);
	assert_ptr_equal(page.name, query[1]); /* borrowed */
	assert_string_equal(page.word, "green");
	assert_int_equal(page.colour, RED);
	assert_true(page.flag);
	assert_int_equal(page.limit, 200);
	assert_int_equal(page.offset, 7);
	assert_int_equal(page.after, INT64_MAX);
	assert_int_equal(page.time, 100000);
	assert_int_equal(page.length, 1);
	assert_int_equal(fields_decode_query(&page_fields, text_of, empty, &absent, &err), 0);
	assert_int_equal(absent.limit, 50);
	assert_int_equal(absent.offset, 3);
	assert_int_equal(absent.colour, BLUE);
	assert_null(absent.name);
}

static void a_wrong_parameter_is_named(void **state)
{
	static const struct {
		const char *name, *text, *words;
	} bad[] = {
		{"name", "12345", "must be at most 4 bytes"},
		{"word", "", "must be \"red\", \"green\" or \"blue\""},
		{"colour", "RED", "must be \"red\", \"green\" or \"blue\""},
		{"flag", "yes", "must be true or false"},
		{"flag", "", "must be true or false"},
		{"limit", "0", "must be a whole number, at least 1"},
		{"limit", "", "must be a whole number, at least 1"},
		{"limit", "-1", "must be a whole number, at least 1"},
		{"limit", "1.0", "must be a whole number, at least 1"},
		{"limit", "18446744073709551616", "must be a whole number, at least 1"},
		{"offset", "1001", "must be a whole number, at most 1000"},
		{"offset", "9223372036854775808", "must be a whole number, at most 1000"},
		{"offset", "0x10", "must be a whole number, at most 1000"},
		{"after", "a", "must be a whole number, at least 0"},
		{"time", "1s", "must be a number of seconds"},
		{"time", "1e1", "must be a number of seconds"},
		{"time", "0.09", "must be 0.1 to 10 seconds"},
		{"time", "11", "must be 0.1 to 10 seconds"},
		{"poll", "11", "must be at most 10 seconds"},
		{"length", "", "must be some text"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *const query[] = {bad[i].name, bad[i].text, NULL};
		struct page page = {0};
		struct error err = {0};

		assert_int_equal(fields_decode_query(&page_fields, text_of, query, &page, &err),
		                 -1);
		assert_string_equal(err.field, bad[i].name);
		assert_string_equal(err.msg, bad[i].words);
	}
}

static void a_table_is_a_list_of_parameters(void **state)
{
	cleanup_json json_t *list = fields_parameters(&page_fields);
	cleanup_json json_t *name =
		json_loads("{\"name\": \"name\", \"in\": \"query\", \"description\": \"Its name\", "
	                   "\"schema\": {\"type\": \"string\", \"maxLength\": 4}}",
	                   0, NULL);
	/* Larger values are taken. */
	cleanup_json json_t *limit =
		json_loads("{\"name\": \"limit\", \"in\": \"query\", \"schema\": {\"type\": "
	                   "\"integer\", \"minimum\": 1, \"default\": 50}}",
	                   0, NULL);

	(void)state;
	assert_int_equal(json_array_size(list), ARRAY_SIZE(page_rows) - 1);
	assert_true(json_equal(json_array_get(list, 0), name));
	assert_true(json_equal(json_array_get(list, 4), limit));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_is_stored),
		cmocka_unit_test(absent_fields_are_zero_or_their_fallback),
		cmocka_unit_test(a_wrong_value_names_its_path),
		cmocka_unit_test(an_unknown_field_suggests_the_nearest),
		cmocka_unit_test(a_loose_table_takes_more),
		cmocka_unit_test(a_table_is_a_schema),
		cmocka_unit_test(parameters_of_a_query_are_stored),
		cmocka_unit_test(a_wrong_parameter_is_named),
		cmocka_unit_test(a_table_is_a_list_of_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
