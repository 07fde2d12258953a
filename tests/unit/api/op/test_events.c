/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/op/events.h"
#include <string.h>

static void the_form_follows_accept_and_wish(void **state)
{
	(void)state;
	assert_int_equal(event_form_choose(NULL, false), EVENT_FORM_NONE);
	assert_int_equal(event_form_choose("*/*", false), EVENT_FORM_NONE);
	assert_int_equal(event_form_choose("application/json", false), EVENT_FORM_NONE);
	assert_int_equal(event_form_choose(NULL, true), EVENT_FORM_NDJSON);
	assert_int_equal(event_form_choose("application/x-ndjson", false), EVENT_FORM_NDJSON);
	assert_int_equal(event_form_choose("text/event-stream", false), EVENT_FORM_SSE);
	assert_int_equal(event_form_choose("Text/Event-Stream, */*", true), EVENT_FORM_SSE);
}

static void expect_event(enum event_form form, const char *expected)
{
	const struct event event = {
		.form = form, .name = "stdout", .id = 7, .has_id = true, .key = "data"};
	cleanup_buf struct buf b = BUF_INIT(1000);

	assert_int_equal(event_open(&b, &event), 0);
	assert_int_equal(buf_add_str(&b, "\"a\\nb\""), 0);
	assert_int_equal(event_close(&b, form), 0);
	assert_string_equal(b.data, expected);
}

static void an_event_is_one_line_or_one_block(void **state)
{
	(void)state;
	expect_event(EVENT_FORM_NDJSON, "{\"event\":\"stdout\",\"data\":\"a\\nb\"}\n");
	expect_event(EVENT_FORM_SSE, "id: 7\nevent: stdout\n"
	                             "data: {\"event\":\"stdout\",\"data\":\"a\\nb\"}\n\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_form_follows_accept_and_wish),
		cmocka_unit_test(an_event_is_one_line_or_one_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
