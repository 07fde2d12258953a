/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/json/decode.h"
#include "base/alloc.h"
#include "base/str.h"
#include <string.h>

static const struct decode_limits limits = {.max_code_bytes = 100};

static int read_session(const char *body, struct error *err)
{
	cleanup_session_request struct session_request request = {0};

	return decode_session(body, strlen(body), NULL, &request, err);
}

static int read_run(const char *body, struct error *err)
{
	cleanup_decoded_run struct decoded_run run = {0};

	return decode_run(body, strlen(body), &limits, &run, err);
}

static int read_input(const char *body, struct error *err)
{
	cleanup_decoded_input struct decoded_input input = {0};

	return decode_input(body, strlen(body), &input, err);
}

static void refuse(int (*read)(const char *body, struct error *err), const char *body,
                   enum error_code code, const char *field)
{
	struct error err = {0};

	if (read(body, &err) == 0)
		fail_msg("'%s' is taken", body);
	if (err.code != code || !str_equal(err.field, field))
		fail_msg("'%s' is refused as %s of '%s'", body, error_name(err.code), err.field);
}

static void everything_asked_of_a_session_arrives(void **state)
{
	static const char body[] =
		"{\"id\":\"my-1\",\"mode\":\"persistent\",\"language\":\"shell\","
		"\"agent_id\":\"agent\",\"env_vars\":{\"A\":1},\"timeout\":1.5,\"lifetime\":60,"
		"\"resources\":{\"memory\":\"64Mi\",\"disk\":\"8Mi\",\"cpu\":0.5,"
		"\"max_processes\":20}}";
	cleanup_session_request struct session_request request = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(decode_session(body, sizeof(body) - 1, NULL, &request, &err), 0);
	assert_string_equal(request.id, "my-1");
	assert_string_equal(request.language, "shell");
	assert_string_equal(request.agent_id, "agent");
	assert_string_equal(request.env[0], "A=1");
	assert_int_equal(request.mode, SESSION_PERSISTENT);
	assert_false(request.mode_soft);
	assert_int_equal(request.idle_timeout_us, 1500000);
	assert_int_equal(request.lifetime_us, 60000000);
	assert_int_equal(request.memory_bytes, 64 << 20);
	assert_int_equal(request.disk_bytes, 8 << 20);
	assert_int_equal(request.cpu_millicores, 500);
	assert_int_equal(request.max_processes, 20);
}

static void nothing_asked_for_is_a_request_too(void **state)
{
	cleanup_session_request struct session_request request = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(decode_session("{}", 2, NULL, &request, &err), 0);
	assert_null(request.id);
	assert_null(request.language);
	assert_int_equal(request.mode, SESSION_WORKSPACE);
	assert_true(request.mode_soft);
	assert_int_equal(request.idle_timeout_us, 0);
}

static void null_is_nothing(void **state)
{
	static const char body[] = "{\"id\":null,\"mode\":null,\"resources\":null,\"env_vars\":"
				   "null,\"timeout\":null,\"dependencies\":null}";
	cleanup_session_request struct session_request request = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(decode_session(body, sizeof(body) - 1, NULL, &request, &err), 0);
	assert_null(request.id);
	assert_null(request.env);
	assert_true(request.mode_soft);
	assert_int_equal(request.idle_timeout_us, 0);
}

static void an_id_may_be_called_session_id(void **state)
{
	static const char body[] = "{\"session_id\":\"x\"}";
	cleanup_session_request struct session_request request = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(decode_session(body, sizeof(body) - 1, NULL, &request, &err), 0);
	assert_string_equal(request.id, "x");
	refuse(read_session, "{\"id\":\"x\",\"session_id\":\"x\"}", ERR_INVALID, "session_id");
}

static void wrong_sessions_are_refused_with_their_field(void **state)
{
	static const struct {
		const char *body;
		enum error_code code;
		const char *field;
	} rows[] = {
		{"", ERR_BAD_JSON, ""},
		{"[]", ERR_BAD_JSON, ""},
		{"{\"id\":\"\"}", ERR_INVALID, "id"},
		{"{\"id\":\"a b\"}", ERR_INVALID, "id"},
		{"{\"id\":\"../x\"}", ERR_INVALID, "id"},
		{"{\"id\":7}", ERR_INVALID, "id"},
		{"{\"id\":false}", ERR_INVALID, "id"},
		{"{\"id\":\"a234567890123456789012345678901234567890123456789012345678901234"
	         "5\"}",
	         ERR_INVALID, "id"},
		{"{\"agent_id\":\"\"}", ERR_INVALID, "agent_id"},
		{"{\"mode\":\"forever\"}", ERR_INVALID, "mode"},
		{"{\"mode\":\"persistent\\u0000\"}", ERR_INVALID, "mode"},
		{"{\"mode\":true}", ERR_INVALID, "mode"},
		{"{\"language\":\"\"}", ERR_INVALID, "language"},
		{"{\"env_vars\":[]}", ERR_INVALID, "env_vars"},
		{"{\"timeout\":0}", ERR_INVALID, "timeout"},
		{"{\"timeout\":0.999}", ERR_INVALID, "timeout"},
		{"{\"timeout\":604801}", ERR_INVALID, "timeout"},
		{"{\"timeout\":\"60\"}", ERR_INVALID, "timeout"},
		{"{\"lifetime\":-1}", ERR_INVALID, "lifetime"},
		{"{\"lifetime\":1e300}", ERR_INVALID, "lifetime"},
		{"{\"resources\":{\"memory\":0}}", ERR_INVALID, "resources.memory"},
		{"{\"resources\":{\"max_output\":1}}", ERR_INVALID, "resources.max_output"},
		{"{\"resources\":{\"gpu\":1}}", ERR_UNKNOWN_FIELD, "resources.gpu"},
		{"{\"network\":\"lan\"}", ERR_INVALID, "network"},
		{"{\"Id\":\"x\"}", ERR_UNKNOWN_FIELD, "Id"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		refuse(read_session, rows[i].body, rows[i].code, rows[i].field);
}

static void everything_asked_of_a_run_arrives(void **state)
{
	static const char body[] =
		"{\"code\":\"x\",\"stdin\":\"in\",\"stdin_open\":true,\"args\":[\"a\"],"
		"\"files\":{\"f\":\"\"},\"env_vars\":{\"B\":\"2\"},\"timeout\":3600,\"wait\":true,"
		"\"stream\":true}";
	cleanup_decoded_run struct decoded_run run = {0};
	const struct run_request *r = &run.request;
	struct error err = {0};

	(void)state;
	assert_int_equal(decode_run(body, sizeof(body) - 1, &limits, &run, &err), 0);
	assert_null(r->language);
	assert_string_equal(r->code, "x");
	assert_string_equal(r->stdin_data, "in");
	assert_true(r->stdin_open);
	assert_string_equal(r->args[0], "a");
	assert_int_equal(r->files_count, 1);
	assert_string_equal(r->env[0], "B=2");
	assert_int_equal(r->timeout_us, 3600000000);
	assert_true(run.wait);
	assert_true(run.stream);
}

static void wrong_runs_are_refused_with_their_field(void **state)
{
	static const struct {
		const char *body;
		enum error_code code;
		const char *field;
	} rows[] = {
		{"{}", ERR_INVALID, "code"},
		{"{\"code\":\"\"}", ERR_INVALID, "code"},
		{"{\"code\":1}", ERR_INVALID, "code"},
		{"{\"code\":\"x\",\"timeout\":0.9}", ERR_INVALID, "timeout"},
		{"{\"code\":\"x\",\"timeout\":3600.1}", ERR_INVALID, "timeout"},
		{"{\"code\":\"x\",\"wait\":1}", ERR_INVALID, "wait"},
		{"{\"code\":\"x\",\"stdin_open\":0}", ERR_INVALID, "stdin_open"},
		{"{\"code\":\"x\",\"resources\":{}}", ERR_UNKNOWN_FIELD, "resources"},
		{"{\"code\":\"x\",\"waite\":true}", ERR_UNKNOWN_FIELD, "waite"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		refuse(read_run, rows[i].body, rows[i].code, rows[i].field);
}

static void input_is_bytes_or_an_end_or_both(void **state)
{
	static const char both[] = "{\"data\":{\"base64\":\"AAE=\"},\"end\":true}";
	cleanup_decoded_input struct decoded_input input = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(decode_input(both, sizeof(both) - 1, &input, &err), 0);
	assert_int_equal(input.len, 2);
	assert_memory_equal(input.data, "\0\1", 2);
	assert_true(input.end);
	assert_int_equal(read_input("{\"end\":true}", &err), 0);
	assert_int_equal(read_input("{\"data\":\"\"}", &err), 0);
	refuse(read_input, "{}", ERR_INVALID, "data");
	refuse(read_input, "{\"end\":false}", ERR_INVALID, "data");
	refuse(read_input, "{\"data\":1}", ERR_INVALID, "data");
	refuse(read_input, "{\"data\":\"x\",\"end\":\"true\"}", ERR_INVALID, "end");
	refuse(read_input, "{\"data\":\"x\",\"eof\":true}", ERR_UNKNOWN_FIELD, "eof");
}

static int read_nothing(const char *body, struct error *err)
{
	return decode_nothing(body, strlen(body), NULL, err);
}

static void empty_body_is_accepted(void **state)
{
	struct error err = {0};

	(void)state;
	assert_int_equal(read_nothing("", &err), 0);
	assert_int_equal(read_nothing("{}", &err), 0);
	refuse(read_nothing, "{\"force\":true}", ERR_UNKNOWN_FIELD, "force");
	refuse(read_nothing, "x", ERR_BAD_JSON, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_asked_of_a_session_arrives),
		cmocka_unit_test(nothing_asked_for_is_a_request_too),
		cmocka_unit_test(null_is_nothing),
		cmocka_unit_test(an_id_may_be_called_session_id),
		cmocka_unit_test(wrong_sessions_are_refused_with_their_field),
		cmocka_unit_test(everything_asked_of_a_run_arrives),
		cmocka_unit_test(wrong_runs_are_refused_with_their_field),
		cmocka_unit_test(input_is_bytes_or_an_end_or_both),
		cmocka_unit_test(empty_body_is_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
