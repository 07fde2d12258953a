/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/json/decode.h"
#include "api/json/json.h"
#include "base/alloc.h"
#include "base/str.h"
#include <string.h>

#define GOOD "\"language\":\"shell\",\"code\":\"true\""

static const struct decode_limits limits = {.max_code_bytes = 100};

static void refuse(const char *body, enum error_code code, const char *field, const char *words)
{
	cleanup_decoded_run struct decoded_run d = {0};
	struct error err = {0};

	assert_int_equal(decode_exec(body, strlen(body), &limits, &d, &err), -1);
	if (err.code != code || strcmp(err.field, field) != 0 || !strstr(err.msg, words))
		fail_msg("'%s' is refused as %s of '%s' with '%s'; expected %s, '%s', '%s'", body,
		         error_name(err.code), err.field, err.msg, error_name(code), field, words);
}

static void accept(const char *body, struct decoded_run *ret)
{
	struct error err = {0};

	*ret = (struct decoded_run){0};
	if (decode_exec(body, strlen(body), &limits, ret, &err) < 0)
		fail_msg("'%s' is refused: %s: %s", body, err.field, err.msg);
}

static void everything_asked_for_arrives(void **state)
{
	cleanup_decoded_run struct decoded_run d;
	const struct run_request *r = &d.request;

	(void)state;
	accept("{\"language\":\"python\",\"code\":\"print(1)\",\"stdin\":\"in\","
	       "\"args\":[\"-v\",\"\"],\"files\":{\"a.txt\":\"text\",\"b/"
	       "c\":{\"base64\":\"AAE=\"}},"
	       "\"env_vars\":{\"A\":\"x=y\",\"B\":1,\"C\":0.1,\"D\":true},\"timeout\":1.5,"
	       "\"resources\":{\"cpu\":\"0.5\",\"memory\":\"64Mi\",\"disk\":1048576,"
	       "\"max_processes\":20,\"max_output\":\"1k\"},\"network\":\"none\",\"stream\":true}",
	       &d);
	assert_string_equal(r->language, "python");
	assert_string_equal(r->code, "print(1)");
	assert_int_equal(r->code_len, 8);
	assert_string_equal(r->stdin_data, "in");
	assert_int_equal(r->stdin_len, 2);
	assert_int_equal(str_list_count(r->args), 2);
	assert_string_equal(r->args[0], "-v");
	assert_string_equal(r->args[1], "");
	assert_int_equal(r->files_count, 2);
	assert_string_equal(r->files[1].name, "b/c");
	assert_int_equal(r->files[1].len, 2);
	assert_memory_equal(r->files[1].data, "\0\1", 2);
	assert_string_equal(r->env[0], "A=x=y");
	assert_string_equal(r->env[1], "B=1");
	assert_string_equal(r->env[2], "C=0.1");
	assert_string_equal(r->env[3], "D=true");
	assert_null(r->env[4]);
	assert_int_equal(r->timeout_us, 1500000);
	assert_int_equal(r->cpu_millicores, 500);
	assert_int_equal(r->memory_bytes, 64 << 20);
	assert_int_equal(r->disk_bytes, 1 << 20);
	assert_int_equal(r->max_processes, 20);
	assert_int_equal(r->max_output_bytes, 1024);
	assert_true(d.stream);
}

static void absent_fields_are_zero(void **state)
{
	cleanup_decoded_run struct decoded_run d;

	(void)state;
	accept("{" GOOD "}", &d);
	assert_null(d.request.stdin_data);
	assert_null(d.request.args);
	assert_null(d.request.env);
	assert_int_equal(d.request.files_count, 0);
	assert_int_equal(d.request.timeout_us, 0);
	assert_int_equal(d.request.memory_bytes, 0);
	assert_false(d.stream);
}

static void units_are_those_of_the_api(void **state)
{
	static const struct {
		const char *cpu;
		unsigned millicores;
	} cores[] = {{"1", 1000}, {"\"1\"", 1000}, {"0.5", 500}, {"\"500m\"", 500}, {"2.0", 2000}};
	static const struct {
		const char *memory;
		uint64_t bytes;
	} sizes[] = {{"\"512Mi\"", 512u << 20},
	             {"\"512m\"", 512u << 20},
	             {"\"1G\"", 1u << 30},
	             {"4096", 4096},
	             {"\"4096\"", 4096}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cores); i++) {
		cleanup_free char *body =
			xasprintf("{" GOOD ",\"resources\":{\"cpu\":%s}}", cores[i].cpu);
		cleanup_decoded_run struct decoded_run d;

		accept(body, &d);
		assert_int_equal(d.request.cpu_millicores, cores[i].millicores);
	}
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		cleanup_free char *body =
			xasprintf("{" GOOD ",\"resources\":{\"memory\":%s}}", sizes[i].memory);
		cleanup_decoded_run struct decoded_run d;

		accept(body, &d);
		assert_int_equal(d.request.memory_bytes, sizes[i].bytes);
	}
}

static void a_wrong_value_names_its_field(void **state)
{
	static const struct {
		const char *member, *field, *words;
	} bad[] = {
		{"\"stdin\":5", "stdin", "string or"},
		{"\"stdin\":null", "stdin", "string or"},
		{"\"stdin\":\"a\\u0000\"", "stdin", "NUL"},
		{"\"stdin\":{\"base64\":\"%%%\"}", "stdin", "base64"},
		{"\"stdin\":{\"base64\":1}", "stdin", "string or"},
		{"\"stdin\":{\"hex\":\"00\"}", "stdin", "string or"},
		{"\"stdin\":{\"base64\":\"\",\"x\":1}", "stdin", "string or"},
		{"\"args\":\"x\"", "args", "array"},
		{"\"args\":[\"a\",1]", "args[1]", "a string"},
		{"\"args\":[\"a\\u0000\"]", "args[0]", "NUL"},
		{"\"files\":[]", "files", "object"},
		{"\"files\":{\"a\":1}", "files.a", "string or"},
		{"\"files\":{\"a\":{\"base64\":\"!\"}}", "files.a", "base64"},
		{"\"env_vars\":[]", "env_vars", "object"},
		{"\"env_vars\":{\"A\":{}}", "env_vars.A", "a string, a"},
		{"\"env_vars\":{\"A\":null}", "env_vars.A", "a string, a"},
		{"\"env_vars\":{\"\":\"x\"}", "env_vars.", "not a name"},
		{"\"env_vars\":{\"A=B\":\"x\"}", "env_vars.A=B", "not a name"},
		{"\"env_vars\":{\"A\":\"\\u0000\"}", "env_vars.A", "NUL"},
		{"\"timeout\":0", "timeout", "at least"},
		{"\"timeout\":-1", "timeout", "at least"},
		{"\"timeout\":-0.0", "timeout", "at least"},
		{"\"timeout\":1e10", "timeout", "at most"},
		{"\"timeout\":\"5\"", "timeout", "a number"},
		{"\"timeout\":true", "timeout", "a number"},
		{"\"timeout\":null", "timeout", "a number"},
		{"\"stream\":1", "stream", "true or"},
		{"\"stream\":\"yes\"", "stream", "true or"},
		{"\"network\":\"lan\"", "network", "none"},
		{"\"policy\":\"\"", "policy", "a-z"},
		{"\"policy\":\"A\"", "policy", "a-z"},
		{"\"policy\":1", "policy", "a string"},
		{"\"network\":\"none\\u0000\"", "network", "none"},
		{"\"network\":5", "network", "a string"},
		{"\"resources\":[]", "resources", "an object"},
		{"\"resources\":null", "resources", "an object"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cleanup_free char *body = xasprintf("{" GOOD ",%s}", bad[i].member);

		refuse(body, ERR_INVALID, bad[i].field, bad[i].words);
	}
}

static void a_wrong_resource_names_its_field(void **state)
{
	static const char *const names[] = {"cpu", "memory", "disk", "max_processes", "max_output"};
	static const char *const bad[] = {
		"0",        "-1",      "\"\"",         "\"x\"",
		"\"-5Mi\"", "null",    "\"1Xi\"",      "\" 1\"",
		"\"1 \"",   "\"1e3\"", "[]",           "{}",
		"true",     "-0.5",    "\"1\\u0000\"", "\"99999999999999999999999999999999\""};

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
			cleanup_free char *body =
				xasprintf("{" GOOD ",\"resources\":{\"%s\":%s}}", names[n], bad[i]);
			cleanup_free char *field = xasprintf("resources.%s", names[n]);

			refuse(body, ERR_INVALID, field, "must be");
		}
	}
}

static void language_and_code_are_required(void **state)
{
	(void)state;
	refuse("{}", ERR_INVALID, "code", "missing");
	refuse("{\"language\":\"shell\"}", ERR_INVALID, "code", "missing");
	refuse("{\"language\":null,\"code\":\"x\"}", ERR_INVALID, "language", "a string");
	refuse("{\"language\":\"\",\"code\":\"x\"}", ERR_INVALID, "language", "empty");
	refuse("{\"language\":\"shell\",\"code\":\"\"}", ERR_INVALID, "code", "empty");
	refuse("{\"language\":\"shell\",\"code\":[\"x\"]}", ERR_INVALID, "code", "a string");
	refuse("{\"language\":\"shell\",\"code\":\"a\\u0000b\"}", ERR_INVALID, "code", "NUL");
}

static void code_over_its_limit_is_too_large(void **state)
{
	cleanup_free char *fits = xasprintf("{\"language\":\"shell\",\"code\":\"%0100d\"}", 1);
	cleanup_free char *large = xasprintf("{\"language\":\"shell\",\"code\":\"%0101d\"}", 1);
	cleanup_decoded_run struct decoded_run d;

	(void)state;
	accept(fits, &d);
	assert_int_equal(d.request.code_len, 100);
	refuse(large, ERR_TOO_LARGE, "code", "100 bytes");
}

static void an_unknown_field_is_named_with_the_nearest_known(void **state)
{
	(void)state;
	refuse("{" GOOD ",\"codee\":1}", ERR_UNKNOWN_FIELD, "codee", "'code'");
	refuse("{" GOOD ",\"Language\":1}", ERR_UNKNOWN_FIELD, "Language", "'language'");
	refuse("{" GOOD ",\"envvars\":1}", ERR_UNKNOWN_FIELD, "envvars", "'env_vars'");
	refuse("{" GOOD ",\"resources\":{\"mem\":1}}", ERR_UNKNOWN_FIELD, "resources.mem",
	       "no such field");
	refuse("{" GOOD ",\"resources\":{\"memroy\":1}}", ERR_UNKNOWN_FIELD, "resources.memroy",
	       "'resources.memory'");
	refuse("{" GOOD ",\"memory\":\"1Gi\"}", ERR_UNKNOWN_FIELD, "memory", "'resources.memory'");
	refuse("{" GOOD ",\"max_processes\":1}", ERR_UNKNOWN_FIELD, "max_processes",
	       "'resources.max_processes'");
	refuse("{" GOOD ",\"handler\":1}", ERR_UNKNOWN_FIELD, "handler", "no such field");
	refuse("{" GOOD ",\"template_id\":1}", ERR_INVALID, "template_id", "must be a string");
	refuse("{" GOOD ",\"template_id\":\"\"}", ERR_INVALID, "template_id", "must not be empty");
	refuse("{" GOOD ",\"__proto__\":1}", ERR_UNKNOWN_FIELD, "__proto__", "no such field");
	refuse("{" GOOD ",\"\":1}", ERR_UNKNOWN_FIELD, "\"\"", "no such field");
}

#define HANDLER "\"handler_code\":\"def handler(e): pass\""

static void a_handler_gets_its_event_and_a_whole_context(void **state)
{
	cleanup_decoded_run struct decoded_run d;
	cleanup_json json_t *ask = NULL;
	const json_t *context;

	(void)state;
	accept("{" HANDLER ",\"event\":{\"a\":[1],\"__timeout\":2.5},"
	       "\"context\":{\"memory_limit_in_mb\":3008}}",
	       &d);
	assert_string_equal(d.request.language, "python");
	assert_int_equal(d.request.timeout_us, 2500000);
	ask = json_loads(d.request.ask, 0, NULL);
	assert_int_equal(json_object_size(json_object_get(ask, "event")), 1);
	context = json_object_get(ask, "context");
	assert_int_equal(json_integer_value(json_object_get(context, "memory_limit_in_mb")), 3008);
	assert_int_equal(json_integer_value(json_object_get(context, "remaining_time_in_millis")),
	                 3000);
	assert_string_equal(json_string_value(json_object_get(context, "function_name")),
	                    "unknown-function");
	assert_int_equal(json_string_length(json_object_get(context, "request_id")), 36);
	assert_string_not_equal(json_string_value(json_object_get(context, "request_id")),
	                        json_string_value(json_object_get(context, "log_stream_name")));
}

static void time_of_a_handler_is_in_its_event(void **state)
{
	static const struct {
		const char *event;
		uint64_t seconds;
	} rows[] = {
		{"{}", 300},
		{"{\"__timeout\":0}", 300},
		{"{\"__timeout\":-1}", 300},
		{"{\"__timeout\":3600}", 3600},
		{"{\"__timeout\":3601}", 3601}, /* policy grants less, and says so */
		{"{\"__timeout\":1e300}", 1000000000},
		{"{\"__timeout\":7}", 7},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_free char *body = xasprintf(
			"{\"language\":\"python\",\"code\":\"x\",\"event\":%s}", rows[i].event);
		cleanup_decoded_run struct decoded_run d;

		accept(body, &d);
		assert_int_equal(d.request.timeout_us, rows[i].seconds * 1000000);
		assert_int_equal(d.request.timeout_soft, i == 0);
		assert_null(strstr(d.request.ask, "__timeout"));
	}
}

static void bad_handlers_are_named(void **state)
{
	(void)state;
	refuse("{" HANDLER ",\"code\":\"x\"}", ERR_INVALID, "handler_code", "twice");
	refuse("{\"handler_code\":\"\"}", ERR_INVALID, "handler_code", "empty");
	refuse("{" HANDLER ",\"event\":[]}", ERR_INVALID, "event", "object");
	refuse("{" HANDLER ",\"event\":{\"__timeout\":\"5\"}}", ERR_INVALID, "event.__timeout",
	       "number");
	refuse("{" GOOD ",\"context\":{}}", ERR_INVALID, "context", "event");
	refuse("{" HANDLER ",\"context\":1}", ERR_INVALID, "context", "object");
	refuse("{" HANDLER ",\"context\":{\"x\":1}}", ERR_UNKNOWN_FIELD, "context.x",
	       "no such field");
	refuse("{" HANDLER ",\"context\":{\"memory_limit_in_mb\":127}}", ERR_INVALID,
	       "context.memory_limit_in_mb", "128 to 3008");
	refuse("{" HANDLER ",\"context\":{\"remaining_time_in_millis\":300001}}", ERR_INVALID,
	       "context.remaining_time_in_millis", "100 to 300000");
	refuse("{" HANDLER ",\"context\":{\"function_name\":\"\"}}", ERR_INVALID,
	       "context.function_name", "1 to 256");
}

static void a_long_unknown_name_is_cut_not_overrun(void **state)
{
	cleanup_free char *body = xasprintf("{" GOOD ",\"%0500d\":1}", 0);
	cleanup_decoded_run struct decoded_run d = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(decode_exec(body, strlen(body), &limits, &d, &err), -1);
	assert_int_equal(err.code, ERR_UNKNOWN_FIELD);
	assert_int_equal(strlen(err.field), sizeof(err.field) - 1);
}

static void invalid_json_is_reported_as_such(void **state)
{
	(void)state;
	refuse("", ERR_BAD_JSON, "", "");
	refuse("[1]", ERR_BAD_JSON, "", "object");
	refuse("{" GOOD ",\"timeout\":1e999}", ERR_BAD_JSON, "timeout", "overflow");
	refuse("{" GOOD ",\"code\":\"x\"}", ERR_BAD_JSON, "code", "duplicate");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_asked_for_arrives),
		cmocka_unit_test(absent_fields_are_zero),
		cmocka_unit_test(units_are_those_of_the_api),
		cmocka_unit_test(a_wrong_value_names_its_field),
		cmocka_unit_test(a_wrong_resource_names_its_field),
		cmocka_unit_test(language_and_code_are_required),
		cmocka_unit_test(code_over_its_limit_is_too_large),
		cmocka_unit_test(an_unknown_field_is_named_with_the_nearest_known),
		cmocka_unit_test(a_handler_gets_its_event_and_a_whole_context),
		cmocka_unit_test(time_of_a_handler_is_in_its_event),
		cmocka_unit_test(bad_handlers_are_named),
		cmocka_unit_test(a_long_unknown_name_is_cut_not_overrun),
		cmocka_unit_test(invalid_json_is_reported_as_such),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
