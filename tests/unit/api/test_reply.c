/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/report.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "core/request/run_request.h"
#include "core/run/outcome.h"
#include "wire/layer.h"
#include <errno.h>
#include <string.h>

static struct outcome sample(void)
{
	struct outcome o = {
		.execution_id = "exec_20261115_ab12cd34",
		.status = OUTCOME_SUCCESS,
		.exited = true,
		.out = BUF_INIT(100),
		.err = BUF_INIT(100),
		.report = BUF_INIT(1000),
		.stdout_bytes = 3,
		.duration_us = 1200,
		.start_us = 300,
		.cpu_us = 900,
		.memory_peak_bytes = 3 << 20,
		.processes_peak = 2,
		.layers = LAYER_BIT(LAYER_USER) | LAYER_BIT(LAYER_SECCOMP),
		.layers_missing = LAYER_BIT(LAYER_LANDLOCK),
		.engine = "native",
		.isolation = "strict",
	};

	assert_int_equal(buf_add(&o.out, "42\n", 3), 0);
	return o;
}

static char *render(const struct outcome *o)
{
	cleanup_report struct report report = {0};
	struct buf b = BUF_INIT(1 << 20);

	encode_result_report(o, &report);
	assert_int_equal(encode_result_add(&b, o, &report, NULL), 0);
	assert_int_equal(strlen(b.data), b.len);
	return buf_take(&b, NULL);
}

static json_t *parse(const struct outcome *o)
{
	cleanup_free char *text = render(o);
	json_t *j = json_loads(text, 0, NULL);

	assert_non_null(j);
	return j;
}

static void the_result_is_the_documented_object_to_the_letter(void **state)
{
	static const char expected[] =
		"{\"execution_id\":\"exec_20261115_ab12cd34\",\"status\":\"success\","
		"\"exit_code\":0,\"signal\":null,\"stdout\":\"42\\n\",\"stderr\":\"\","
		"\"result\":null,\"results\":[],\"error\":null,"
		"\"metrics\":{\"duration_ms\":1.2,\"start_ms\":0.3,\"queue_ms\":0.0,"
		"\"cpu_time_ms\":0.9,\"memory_peak_mb\":3.0,\"processes_peak\":2,"
		"\"stdout_bytes\":3},"
		"\"limit\":null,\"denials\":[],\"why\":null,\"artifacts\":[],"
		"\"isolation\":{\"engine\":\"native\",\"grade\":\"namespace\",\"mode\":\"strict\","
		"\"missing\":[\"landlock\"]}}";
	struct outcome o = sample();
	cleanup_free char *text = render(&o);

	(void)state;
	assert_string_equal(text, expected);
	outcome_done(&o);
}

static void a_plain_receipt_names_all_that_isolated_the_program(void **state)
{
	static const char expected[] =
		"\"isolation\":{\"engine\":\"native\",\"grade\":\"namespace\",\"mode\":\"strict\","
		"\"missing\":[\"landlock\"],\"layers\":[\"user\",\"seccomp\"],"
		"\"layers_vouched\":[],"
		"\"start\":\"cold\",\"start_reason\":null,\"pooled\":false,"
		"\"policies\":null,\"filter_sha256\":null,\"network\":null,"
		"\"network_rules_sha256\":null,\"limits\":null,\"versions\":null}}";
	struct outcome o = sample();
	cleanup_free char *text = NULL;

	(void)state;
	o.receipt_form = RECEIPT_PLAIN;
	text = render(&o);
	assert_non_null(strstr(text, expected));
	outcome_done(&o);
}

static void a_run_of_a_session_has_every_name(void **state)
{
	static const char *const names[] = {
		"session_id",    "stdout_truncated",    "stderr_truncated", "execution_time",
		"session_reset", "artifacts_truncated", "return_value",     "retry_count"};
	static const char *const metrics[] = {
		"memory_peak_mb", "peak_memory_mb",     "io_read_bytes",      "io_write_bytes",
		"stderr_bytes",   "network_sent_bytes", "network_connections"};
	struct outcome o = sample();
	const struct run_record_info run = {
		.id = "exec_1", .session_id = "sess_1", .state = RUN_RECORD_ENDED, .outcome = &o};
	struct buf b = BUF_INIT(1 << 20);
	cleanup_json json_t *j = NULL;

	(void)state;
	o.net_sent = COUNTER_UNKNOWN;
	assert_int_equal(encode_run_add(&b, &run), 0);
	j = json_loadb(b.data, b.len, 0, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!json_object_get(j, names[i]))
			fail_msg("no %s", names[i]);
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		if (!json_object_get(json_object_get(j, "metrics"), metrics[i]))
			fail_msg("no metrics.%s", metrics[i]);
	buf_done(&b);
	outcome_done(&o);
}

static void what_is_not_counted_is_null_or_not_there(void **state)
{
	struct outcome o = sample();
	cleanup_json json_t *j = NULL;
	const json_t *metrics;

	(void)state;
	o.cpu_us = o.memory_peak_bytes = o.processes_peak = COUNTER_UNKNOWN;
	o.read_bytes = o.write_bytes = COUNTER_UNKNOWN;
	j = parse(&o);
	metrics = json_object_get(j, "metrics");
	assert_true(json_is_null(json_object_get(metrics, "cpu_time_ms")));
	assert_true(json_is_null(json_object_get(metrics, "memory_peak_mb")));
	assert_true(json_is_null(json_object_get(metrics, "processes_peak")));
	assert_null(json_object_get(metrics, "io_read_bytes"));
	assert_null(json_object_get(metrics, "io_write_bytes"));
	outcome_done(&o);
}

static void a_signal_and_a_limit_are_reported(void **state)
{
	struct outcome o = sample();
	cleanup_json json_t *j = NULL;

	(void)state;
	o.status = OUTCOME_FAILED;
	o.limit = OUTCOME_LIMIT_MEMORY;
	o.signal = 9;
	o.exit_code = 137;
	j = parse(&o);
	assert_string_equal(json_string_value(json_object_get(j, "status")), "failed");
	assert_string_equal(json_string_value(json_object_get(j, "limit")), "memory");
	assert_int_equal(json_integer_value(json_object_get(j, "signal")), 9);
	assert_int_equal(json_integer_value(json_object_get(j, "exit_code")), 137);
	outcome_done(&o);
}

static void without_an_exit_there_is_no_code(void **state)
{
	struct outcome o = sample();
	cleanup_json json_t *j = NULL;

	(void)state;
	o.status = OUTCOME_CRASHED;
	o.exited = false;
	j = parse(&o);
	assert_true(json_is_null(json_object_get(j, "exit_code")));
	outcome_done(&o);
}

static void output_is_always_text(void **state)
{
	struct outcome o = sample();
	cleanup_free char *text = NULL;

	(void)state;
	assert_int_equal(buf_add(&o.out, "a\0\x1b\xff\xe2\x82", 6), 0);
	assert_int_equal(buf_add(&o.err, "\xc3\xa4\"\\", 4), 0);
	o.out_truncated = true;
	text = render(&o);
	assert_non_null(
		strstr(text, "\"stdout\":\"42\\na\\u0000\\u001B\xef\xbf\xbd\xef\xbf\xbd\""));
	assert_non_null(strstr(text, "\"stderr\":\"\xc3\xa4\\\"\\\\\""));
	assert_non_null(strstr(text, ",\"stdout_truncated\":true,"));
	assert_null(strstr(text, "stderr_truncated"));
	outcome_done(&o);
}

static void a_response_that_does_not_fit_is_not_sent_in_part(void **state)
{
	cleanup_report struct report report = {0};
	cleanup_buf struct buf b = BUF_INIT(400);
	struct outcome o = sample();

	(void)state;
	encode_result_report(&o, &report);
	assert_int_equal(encode_result_add(&b, &o, &report, NULL), -1);
	outcome_done(&o);
}

static void denials_are_listed(void **state)
{
	struct outcome o = sample();
	cleanup_free char *text = NULL;

	(void)state;
	o.denials[0] = (struct denial){.kind = "syscall",
	                               .what = "mount",
	                               .rule = "seccomp",
	                               .count = 2,
	                               .error = EPERM,
	                               .remedy = xstrdup("{\"text\":\"t\"}")};
	o.denials_count = 1;
	text = render(&o);
	assert_non_null(strstr(text, "\"denials\":[{\"kind\":\"syscall\",\"what\":\"mount\","
	                             "\"detail\":null,\"rule\":\"seccomp\",\"errno\":\"EPERM\","
	                             "\"count\":2,\"remedy\":{\"text\":\"t\"}}]"));
	outcome_done(&o);
}

static void a_report_changes_nothing_but_its_fields(void **state)
{
	struct outcome o = sample();
	cleanup_free char *text = NULL;

	(void)state;
	assert_int_equal(buf_add_str(&o.report, "{\"result\":7,\"status\":\"failed\"}"), 0);
	text = render(&o);
	assert_non_null(strstr(text, "\"status\":\"success\""));
	assert_non_null(strstr(text, "\"result\":null"));
	buf_reset(&o.report);
	assert_int_equal(buf_add_str(&o.report, "{\"result\":7}"), 0);
	free(text);
	text = render(&o);
	assert_non_null(strstr(text, "\"result\":7"));
	outcome_done(&o);
}

static void every_error_has_all_its_fields(void **state)
{
	(void)state;
	for (int code = ERR_NONE + 1; code < ERR_COUNT; code++) {
		struct error err = {.code = (enum error_code)code, .msg = "secret /host/path"};
		cleanup_json json_t *j = reply_error_object(&err, "req1");
		const char *detail = json_string_value(json_object_get(j, "error_detail"));

		assert_int_equal(json_object_size(j), 7);
		assert_true(json_string_length(json_object_get(j, "error_code")) > 0);
		assert_true(json_string_length(json_object_get(j, "description")) > 0);
		assert_true(json_string_length(json_object_get(j, "solution")) > 0);
		assert_string_equal(json_string_value(json_object_get(j, "request_id")), "req1");
		assert_true(json_is_null(json_object_get(j, "field")));
		assert_true(json_is_null(json_object_get(j, "retry_after")));
		/* What we say about ourselves names paths: the log has it, the caller not. */
		assert_int_equal(strstr(detail, "secret") == NULL, error_is_internal(&err));
		if (error_http(err.code) == 500)
			assert_true(error_is_internal(&err));
		if (error_http(err.code) < 500)
			assert_false(error_is_internal(&err));
	}
}

static void an_error_that_is_shared_has_the_names_of_both(void **state)
{
	struct error err = {0};
	cleanup_json json_t *own = NULL, *shared = NULL;

	(void)state;
	(void)error_field(&err, "timeout", "must be greater than 0");
	own = reply_error_object(&err, "req1");
	shared = reply_error_shared(&err, "req1");
	assert_int_equal(json_object_size(shared), json_object_size(own) + 3);
	assert_true(
		json_equal(json_object_get(shared, "error"), json_object_get(own, "description")));
	assert_true(json_equal(json_object_get(shared, "message"),
	                       json_object_get(own, "error_detail")));
	assert_true(json_equal(json_object_get(shared, "detail"),
	                       json_object_get(own, "error_detail")));
}

static void an_error_names_its_field(void **state)
{
	struct error err = {0};
	cleanup_json json_t *j = NULL;

	(void)state;
	(void)error_field(&err, "resources.\xff", "must be greater than 0");
	j = reply_error_object(&err, "req1");
	assert_string_equal(json_string_value(json_object_get(j, "field")),
	                    "resources.\xef\xbf\xbd");
	assert_string_equal(json_string_value(json_object_get(j, "error_detail")),
	                    "resources.\xef\xbf\xbd: must be greater than 0");
	assert_string_equal(json_string_value(json_object_get(j, "error_code")),
	                    "Sandbox.InvalidParameter");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_result_is_the_documented_object_to_the_letter),
		cmocka_unit_test(a_plain_receipt_names_all_that_isolated_the_program),
		cmocka_unit_test(a_run_of_a_session_has_every_name),
		cmocka_unit_test(what_is_not_counted_is_null_or_not_there),
		cmocka_unit_test(a_signal_and_a_limit_are_reported),
		cmocka_unit_test(without_an_exit_there_is_no_code),
		cmocka_unit_test(output_is_always_text),
		cmocka_unit_test(a_response_that_does_not_fit_is_not_sent_in_part),
		cmocka_unit_test(denials_are_listed),
		cmocka_unit_test(a_report_changes_nothing_but_its_fields),
		cmocka_unit_test(every_error_has_all_its_fields),
		cmocka_unit_test(an_error_that_is_shared_has_the_names_of_both),
		cmocka_unit_test(an_error_names_its_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
