/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/lines.h"
#include "unit.h"

#include "base/alloc.h"
#include <string.h>

#define MAX 1024

static void add(struct lines *l, const char *text)
{
	lines_add(l, text, strlen(text));
}

static void lines_come_in_pieces(void **state)
{
	struct lines l;
	struct line line;

	(void)state;
	lines_init(&l, MAX);
	add(&l, "on");
	assert_false(lines_next(&l, &line));
	add(&l, "e\ntwo\n\nthr");
	assert_true(lines_next(&l, &line));
	assert_int_equal(line.len, 3);
	assert_memory_equal(line.text, "one", 3);
	assert_true(lines_next(&l, &line));
	assert_memory_equal(line.text, "two", 3);
	assert_true(lines_next(&l, &line));
	assert_int_equal(line.len, 0);
	assert_false(lines_next(&l, &line));
	add(&l, "ee\n");
	assert_true(lines_next(&l, &line));
	assert_memory_equal(line.text, "three", 5);
	assert_false(line.is_cut);
	lines_done(&l);
}

/* @head, many bytes, @tail, as one line in pieces of @step bytes. */
static void check_cut(const char *head, const char *tail, size_t step, uint32_t id)
{
	size_t len = 64 * 1024, done = 0;
	char *text = xmalloc(len);
	struct lines l;
	struct line line = {.len = 0};
	bool found = false;

	memset(text, 'x', len);
	memcpy(text, head, strlen(head));
	memcpy(text + len - strlen(tail), tail, strlen(tail));
	lines_init(&l, MAX);
	while (done < len) {
		size_t n = len - done < step ? len - done : step;

		assert_false(lines_next(&l, &line));
		lines_add(&l, text + done, n);
		done += n;
	}
	while (lines_next(&l, &line))
		found = true;
	assert_true(found && line.is_cut);
	assert_int_equal(line.id, id);
	assert_true(l.buf.cap <= MAX + 4 * 65536);
	add(&l, "next\n");
	assert_true(lines_next(&l, &line));
	assert_false(line.is_cut);
	assert_memory_equal(line.text, "next", 4);
	lines_done(&l);
	free(text);
}

static void a_long_line_leaves_its_id(void **state)
{
	static const size_t steps[] = {1, 7, 1000, 65536};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		check_cut("{\"result\":{", "},\"jsonrpc\":\"2.0\",\"id\":42}\n", steps[i], 42);
		check_cut("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":", "\"}\n", steps[i], 7);
		check_cut("{\"result\":", "}, \"jsonrpc\": \"2.0\", \"id\": 43 }\r\n", steps[i],
		          43);
		check_cut("{\"jsonrpc\": \"2.0\", \"id\": 8, \"result\":", "\"}\n", steps[i], 8);
		check_cut("{\"result\":{\"id\":5,", "\"}\n", steps[i], 0);
		check_cut("{\"result\":", "\"id\":1, and no end\n", steps[i], 0);
		check_cut("{\"result\":", "no id}\n", steps[i], 0);
	}
}

static void a_line_of_the_maximum_is_kept(void **state)
{
	char text[MAX + 2];
	struct lines l;
	struct line line;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[MAX] = '\n';
	lines_init(&l, MAX);
	lines_add(&l, text, MAX + 1);
	assert_true(lines_next(&l, &line));
	assert_false(line.is_cut);
	assert_int_equal(line.len, MAX);
	text[MAX] = 'a';
	text[MAX + 1] = '\n';
	lines_add(&l, text, MAX + 2);
	assert_true(lines_next(&l, &line));
	assert_true(line.is_cut);
	lines_reset(&l);
	assert_false(lines_next(&l, &line));
	lines_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_in_pieces),
		cmocka_unit_test(a_long_line_leaves_its_id),
		cmocka_unit_test(a_line_of_the_maximum_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
