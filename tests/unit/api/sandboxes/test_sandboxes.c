/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/json/json.h"
#include "api/sandboxes/sandboxes.h"
#include "api/sandboxes/tool.h"
#include "daemon/dialects.h"
#include <string.h>

static void paths_of_the_dialect_are_known(void **state)
{
	static const char *const own[] = {
		"/api/sandboxes",       "/api/v1/sandboxes", "/api/v2/sandboxes/x/files/a",
		"/api/sandboxes:batch", "/api/v1/tools",     "/api/v2/prompts/x",
		"/api/resources/a://b", "/api/v2/anything",
	};
	static const char *const others[] = {"/api/v1/sessions",
	                                     "/api/v1/sandboxesx",
	                                     "/api",
	                                     "/api/",
	                                     "/",
	                                     "",
	                                     "/api/v1",
	                                     "/api/v3/sandboxes",
	                                     "/sandboxes",
	                                     "/mcp/tools",
	                                     "/workspace/se/tools"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		assert_ptr_equal(route_dialect(dialects, own[i]), &sandboxes_dialect);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_ptr_not_equal(route_dialect(dialects, others[i]), &sandboxes_dialect);
	assert_ptr_equal(route_dialect(dialects, "/mcp/tools"), &sandboxes_tool_dialect);
	assert_ptr_equal(route_dialect(dialects, "/mcp/tools/x"), &sandboxes_tool_dialect);
	assert_null(route_dialect(dialects, "/mcp/toolsx"));
	assert_null(route_dialect(dialects, "/mcp"));
}

static void the_path_then_the_headers_decide_the_version(void **state)
{
	static const struct {
		const char *path, *accept, *header;
		int version;
	} cases[] = {
		{"/api/v1/x", "application/vnd.sandboxrunner.v2+json", "v2", 1},
		{"/api/v2/x", NULL, "nothing", 2},
		{"/api/x", NULL, NULL, 1},
		{"/api/x", "application/json", NULL, 1},
		{"/api/x", NULL, "v2", 2},
		{"/api/x", NULL, "1", 1},
		{"/api/x", "a/b, application/vnd.sandboxrunner.v2", "v1", 2},
		{"/api/x", NULL, "v3", -1},
		{"/api/x", NULL, "v0", -1},
		{"/api/x", NULL, "", -1},
		{"/api/x", NULL, "v", -1},
		{"/api/x", NULL, "v12", -1},
		{"/api/x", "application/vnd.sandboxrunner.v", NULL, -1},
		{"/api/x", "application/vnd.sandboxrunner.v9+json", "v1", -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error err = {0};

		assert_int_equal(
			sandboxes_version(cases[i].path, cases[i].accept, cases[i].header, &err),
			cases[i].version);
		assert_int_equal(error_is_set(&err), cases[i].version < 0);
	}
}

static void times_have_three_forms(void **state)
{
	static const struct {
		const char *text;
		double seconds; /* negative: refused */
	} cases[] = {
		{"1", 1},           {"0.5", 0.5},      {"300", 300},
		{"604800", 604800}, {"1000000000", 1}, {"300000000000", 300},
		{"\"90s\"", 90},    {"\"2h\"", 7200},  {"0", 0},
		{"-1", -1},         {"true", -1},      {"[]", -1},
		{"{}", -1},         {"\"soon\"", -1},  {"\"\"", -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_json json_t *value = json_loads(cases[i].text, JSON_DECODE_ANY, NULL);
		struct error err = {0};
		double seconds = -1;
		int r = sandboxes_seconds(value, "ttl", &seconds, &err);

		assert_int_equal(r, cases[i].seconds < 0 ? -1 : 0);
		if (r == 0)
			assert_true(seconds == cases[i].seconds);
		else
			assert_string_equal(err.field, "ttl");
	}
}

/* Both forms of an error, and the canonical one beside them. */
static void errors_have_every_form(void **state)
{
	struct error err = {0};
	cleanup_json json_t *rest = NULL, *tool = NULL;
	const json_t *own;
	int status = 404;

	(void)state;
	(void)error_set(&err, ERR_SESSION_NOT_FOUND, 0, "no sandbox has this id");
	rest = sandboxes_error_body(&err, "req1", &status);
	own = json_object_get(rest, "error");
	assert_int_equal(json_integer_value(json_object_get(own, "code")), 404);
	assert_string_equal(json_string_value(json_object_get(own, "message")),
	                    "Sandbox not found");
	assert_string_equal(json_string_value(json_object_get(own, "request_id")), "req1");
	assert_string_equal(json_string_value(json_object_get(rest, "error_code")),
	                    "Sandbox.SessionNotFound");
	tool = sandboxes_tool_error_body(&err, "req1", &status);
	assert_string_equal(json_string_value(json_object_get(tool, "code")), "SANDBOX_NOT_FOUND");
	assert_true(json_is_true(json_object_get(tool, "is_error")));
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(tool, "metadata"), "code")),
		"SANDBOX_NOT_FOUND");
	assert_string_equal(json_string_value(json_object_get(tool, "error_code")),
	                    "Sandbox.SessionNotFound");
}

static void every_error_has_a_code(void **state)
{
	(void)state;
	for (int i = 0; i < ERR_COUNT; i++)
		assert_true(strlen(sandboxes_code((enum error_code)i)) > 1);
	assert_false(sandboxes_is_refusal(&(struct error){.code = ERR_FILE_NOT_FOUND}));
	assert_false(sandboxes_is_refusal(&(struct error){.code = ERR_DENIED}));
	assert_true(sandboxes_is_refusal(&(struct error){.code = ERR_INVALID}));
	assert_true(sandboxes_is_refusal(&(struct error){.code = ERR_SYSTEM}));
	assert_true(sandboxes_is_refusal(&(struct error){.code = ERR_NO_SCOPE}));
}

/* @body is released. */
static struct sandboxes_program decode(const struct sandboxes_program_kind *kind, json_t *body)
{
	const struct decode_limits limits = {1000};
	struct sandboxes_program p = {0};
	struct error err = {0};

	assert_int_equal(fields_decode(kind->fields, body, &limits, &p, &err), 0);
	assert_int_equal(kind->complete && kind->complete(&p, &err), 0);
	json_decref(body);
	return p;
}

/* A word is one word for the shell, whatever is in it. */
static void arguments_are_quoted(void **state)
{
	cleanup_sandboxes_program struct sandboxes_program p =
		decode(&sandboxes_exec_kind, json_pack("{s:s, s:[s,s,s]}", "command", "run", "args",
	                                               "it's", "$A; b", ""));

	(void)state;
	assert_string_equal(p.args.exec.request.code, "run 'it'\\''s' '$A; b' ''");
	assert_int_equal(p.args.exec.request.code_len, strlen(p.args.exec.request.code));
	assert_null(p.args.exec.request.args);
}

/* What it selects is tested with the manifests (core/language/detect). */
static void a_file_name_is_passed_on(void **state)
{
	cleanup_sandboxes_program struct sandboxes_program p = decode(
		&sandboxes_code_kind, json_pack("{s:s, s:s}", "code", "x", "filename", "a.b.py"));

	(void)state;
	assert_string_equal(p.args.exec.file_name, "a.b.py");
	assert_null(p.args.exec.request.language);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_of_the_dialect_are_known),
		cmocka_unit_test(the_path_then_the_headers_decide_the_version),
		cmocka_unit_test(times_have_three_forms),
		cmocka_unit_test(errors_have_every_form),
		cmocka_unit_test(every_error_has_a_code),
		cmocka_unit_test(arguments_are_quoted),
		cmocka_unit_test(a_file_name_is_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
