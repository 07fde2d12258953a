/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "client/events.h"

struct seen {
	char text[512]; /* "kind:data|" ... */
	size_t count;
	int stop_at; /* return -ECANCELED at this event; 0: never */
};

static int on_event(void *ctx, const struct event *event)
{
	static const char letters[] = "PSoeirxE?";
	struct seen *seen = ctx;
	size_t used = strlen(seen->text);

	(void)snprintf(seen->text + used, sizeof(seen->text) - used, "%c:%.*s|",
	               letters[event->kind], (int)event->len, event->data ? event->data : "");
	seen->count++;
	return (int)seen->count == seen->stop_at ? -ECANCELED : 0;
}

/* Feeds @text in two chunks, split at @cut. */
static int feed(struct seen *seen, const char *text, size_t cut, size_t max)
{
	struct events e;
	size_t len = strlen(text);
	int r;

	events_init(&e, max, on_event, seen);
	r = events_feed(&e, text, cut);
	if (r >= 0)
		r = events_feed(&e, text + cut, len - cut);
	events_done(&e);
	return r;
}

static const char stream[] = "{\"event\":\"pending\",\"execution_id\":\"y\"}\n"
			     "{\"event\":\"start\",\"execution_id\":\"x\"}\n"
			     "{\"event\":\"stdout\",\"data\":\"a\\nb\\u00e9\"}\n"
			     "\n"
			     "{\"event\":\"stderr\",\"data\":\"\"}\r\n"
			     "{\"event\":\"stdout\",\"data\":\"\\ufffd\",\"base64\":\"/w==\"}\n"
			     "{\"event\":\"result\",\"data\":{\"text/plain\":\"42\"}}\n"
			     "{\"event\":\"ping\"}\n"
			     "{\"event\":\"error\",\"error\":{\"error_code\":\"X\"}}\n"
			     "{\"event\":\"end\",\"result\":{\"status\":\"success\"}}\n";
static const char expected[] = "P:y|S:|o:a\nb\xc3\xa9|e:|o:\xff|r:|?:|E:|x:|";

static void lines_may_be_split_anywhere(void **state)
{
	(void)state;
	for (size_t cut = 0; cut <= sizeof(stream) - 1; cut++) {
		struct seen seen = {.count = 0};

		assert_int_equal(feed(&seen, stream, cut, 4096), 0);
		assert_string_equal(seen.text, expected);
	}
}

static void single_bytes_give_the_same_events(void **state)
{
	struct seen seen = {.count = 0};
	struct events e;

	(void)state;
	events_init(&e, 4096, on_event, &seen);
	for (size_t i = 0; i < sizeof(stream) - 1; i++)
		assert_int_equal(events_feed(&e, stream + i, 1), 0);
	events_done(&e);
	assert_string_equal(seen.text, expected);
}

static void an_incomplete_line_is_not_an_event(void **state)
{
	struct seen seen = {.count = 0};

	(void)state;
	assert_int_equal(feed(&seen, "{\"event\":\"start\"}", 3, 4096), 0);
	assert_int_equal(seen.count, 0);
}

static int keep_data(void *ctx, const struct event *event)
{
	assert_int_equal(event->len, 3);
	assert_memory_equal(event->data, "a\0b", 3);
	*(int *)ctx += 1;
	return 0;
}

static void nul_bytes_of_the_program_survive(void **state)
{
	static const char line[] = "{\"event\":\"stdout\",\"data\":\"a\\u0000b\"}\n";
	struct events e;
	int calls = 0;

	(void)state;
	events_init(&e, 4096, keep_data, &calls);
	assert_int_equal(events_feed(&e, line, sizeof(line) - 1), 0);
	events_done(&e);
	assert_int_equal(calls, 1);
}

static void invalid_events_are_rejected(void **state)
{
	static const char *const lines[] = {
		"nonsense\n",
		"{}\n",
		"[]\n",
		"\"start\"\n",
		"{\"event\":1}\n",
		"{\"event\":\"stdout\"}\n",
		"{\"event\":\"stdout\",\"data\":1}\n",
		"{\"event\":\"stderr\",\"data\":null}\n",
		"{\"event\":\"stdout\",\"data\":\"a\",\"base64\":1}\n",
		"{\"event\":\"stdout\",\"data\":\"a\",\"base64\":\"?\"}\n",
		"{\"event\":\"result\",\"data\":\"a\"}\n",
		"{\"event\":\"end\"}\n",
		"{\"event\":\"end\",\"result\":[]}\n",
		"{\"event\":\"error\",\"error\":\"x\"}\n",
		"{\"event\":\"start\",\"event\":\"end\"}\n",
		"{\"event\":\"start\"} {}\n",
		"{\"event\":\"stdout\",\"data\":\"\xff\"}\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct seen seen = {.count = 0};

		if (feed(&seen, lines[i], 2, 4096) != -EPROTO)
			fail_msg("accepted: %s", lines[i]);
		assert_int_equal(seen.count, 0);
	}
}

static void a_line_may_be_as_long_as_the_limit_and_no_longer(void **state)
{
	static const char line[] = "{\"event\":\"ping\"}\n";
	size_t len = sizeof(line) - 2;

	(void)state;
	for (size_t cut = 0; cut < sizeof(line); cut++) {
		struct seen seen = {.count = 0};

		assert_int_equal(feed(&seen, line, cut, len), 0);
		assert_int_equal(seen.count, 1);
		assert_int_equal(feed(&seen, line, cut, len - 1), -ENOBUFS);
		assert_int_equal(seen.count, 1);
	}
}

static void a_handler_can_stop_the_stream(void **state)
{
	struct seen seen = {.stop_at = 2};

	(void)state;
	assert_int_equal(feed(&seen, stream, 0, 4096), -ECANCELED);
	assert_int_equal(seen.count, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_may_be_split_anywhere),
		cmocka_unit_test(single_bytes_give_the_same_events),
		cmocka_unit_test(an_incomplete_line_is_not_an_event),
		cmocka_unit_test(nul_bytes_of_the_program_survive),
		cmocka_unit_test(invalid_events_are_rejected),
		cmocka_unit_test(a_line_may_be_as_long_as_the_limit_and_no_longer),
		cmocka_unit_test(a_handler_can_stop_the_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
