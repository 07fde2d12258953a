/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/events.h"
#include "api/json.h"
#include "base/alloc.h"
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

static json_t *sample(void)
{
	json_t *j = json_object();

	json_set(j, "data", json_string("a\nb"));
	return j;
}

static void an_event_is_one_line_or_one_block(void **state)
{
	size_t len;
	char *text = event_render(EVENT_FORM_NDJSON, "stdout", 7, sample(), &len);

	(void)state;
	assert_string_equal(text, "{\"event\":\"stdout\",\"data\":\"a\\nb\"}\n");
	assert_int_equal(len, strlen(text));
	free(text);
	text = event_render(EVENT_FORM_SSE, "stdout", 7, sample(), &len);
	assert_string_equal(text, "id: 7\nevent: stdout\n"
	                          "data: {\"event\":\"stdout\",\"data\":\"a\\nb\"}\n\n");
	assert_int_equal(len, strlen(text));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_form_follows_accept_and_wish),
		cmocka_unit_test(an_event_is_one_line_or_one_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
