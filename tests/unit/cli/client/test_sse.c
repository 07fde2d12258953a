/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "cli/client/sse.h"
#include <errno.h>
#include <string.h>

static const char stream[] = "id: 1-0\nretry: 1000\ndata: \n\n"
			     ":\n\n"
			     "id: 1-1\r\nevent: message\r\ndata: {\"a\":1}\r\n\r\n"
			     "data:two\nid: 1-2\n\n"
			     "id: 1-3\ndata: never whole";

struct seen {
	char text[256];
};

static void note(void *ctx, const char *data, size_t len)
{
	struct seen *s = ctx;
	size_t used = strlen(s->text);

	(void)snprintf(s->text + used, sizeof(s->text) - used, "%.*s|", (int)len, data);
}

/* In chunks of any size. */
static void events_may_be_split_anywhere(void **state)
{
	(void)state;
	for (size_t piece = 1; piece < sizeof(stream); piece++) {
		struct seen seen = {0};
		struct sse s;

		sse_init(&s, 1000, note, &seen);
		for (size_t at = 0; at < sizeof(stream) - 1; at += piece) {
			size_t left = sizeof(stream) - 1 - at;

			assert_int_equal(sse_feed(&s, stream + at, left < piece ? left : piece), 0);
		}
		assert_string_equal(seen.text, "{\"a\":1}|two|");
		assert_string_equal(s.id, "1-2"); /* the last complete event */
		sse_done(&s);
	}
}

static void long_lines_and_events_are_rejected(void **state)
{
	struct seen seen = {0};
	struct sse s;

	(void)state;
	sse_init(&s, 10, note, &seen);
	assert_int_equal(sse_feed(&s, "data: 0123456789", 16), -ENOBUFS);
	sse_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_may_be_split_anywhere),
		cmocka_unit_test(long_lines_and_events_are_rejected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
