/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/demux.h"
#include "unit.h"

#include "base/attr.h"
#include <errno.h>
#include <string.h>

#define FRAME(stream, len) stream, 0, 0, 0, 0, 0, 0, len

struct result {
	char out[64], err[64];
	size_t out_len, err_len;
	int r;
};

/* The input arrives in pieces of @step, and at most @room bytes are used at a time. */
static struct result feed(const char *data, size_t len, size_t step, size_t room)
{
	struct demux d = {0};
	struct result res = {.r = 0};
	size_t at = 0;

	while (at < len && res.r == 0) {
		size_t end = at + step < len ? at + step : len;
		struct demux_piece piece = {.skip = 1};

		while (res.r == 0 && at < end && (piece.skip || piece.len)) {
			size_t n;

			res.r = demux_next(&d, data + at, end - at, &piece);
			if (res.r < 0)
				break;
			at += piece.skip;
			n = piece.len < room ? piece.len : room;
			if (piece.stream == DEMUX_STDOUT) {
				memcpy(res.out + res.out_len, data + at, n);
				res.out_len += n;
			} else {
				memcpy(res.err + res.err_len, data + at, n);
				res.err_len += n;
			}
			demux_take(&d, n);
			at += n;
		}
	}
	return res;
}

static void streams_are_told_apart_whatever_the_pieces(void **state)
{
	static const char data[] = {FRAME(1, 3), 'o',         'u',         't', FRAME(2, 2), 'e',
	                            'r',         FRAME(1, 0), FRAME(1, 1), '!', FRAME(0, 1), '?'};

	(void)state;
	for (size_t step = 1; step <= sizeof(data); step++)
		for (size_t room = 1; room <= 4; room++) {
			struct result res = feed(data, sizeof(data), step, room);

			assert_int_equal(res.r, 0);
			assert_int_equal(res.out_len, 4);
			assert_memory_equal(res.out, "out!", 4);
			assert_int_equal(res.err_len, 3);
			assert_memory_equal(res.err, "er?", 3);
		}
}

static void what_is_no_frame_is_a_violation(void **state)
{
	static const char *const bad[] = {
		"\3\0\0\0\0\0\0\1", /* no such stream */
		"\1\1\0\0\0\0\0\1", /* not zero */
		"\1\0\0\xff\0\0\0\1",
		"HTTP/1.1 200 OK\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(feed(bad[i], DEMUX_HEAD, 1, 1).r, -EPROTO);
	assert_int_equal(feed("\1\0\0\0\0\0\0\1", DEMUX_HEAD, 1, 1).r, 0);
}

static void the_longest_frame_needs_no_memory(void **state)
{
	static const char head[] = {1, 0, 0, 0, -1, -1, -1, -1};
	struct demux d = {0};
	struct demux_piece piece;

	(void)state;
	assert_int_equal(demux_next(&d, head, sizeof(head), &piece), 0);
	assert_int_equal(piece.skip, sizeof(head));
	assert_int_equal(d.left, UINT32_MAX);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(demux_next(&d, head, sizeof(head), &piece), 0);
		assert_int_equal(piece.skip, 0);
		assert_int_equal(piece.len, sizeof(head));
		demux_take(&d, piece.len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_are_told_apart_whatever_the_pieces),
		cmocka_unit_test(what_is_no_frame_is_a_violation),
		cmocka_unit_test(the_longest_frame_needs_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
