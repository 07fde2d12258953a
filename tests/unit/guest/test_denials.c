/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "guest/denials.h"

static void repeats_are_counted_and_kinds_are_bounded(void **state)
{
	struct denials d = {.fd = -1};
	struct channel *ch = NEW(struct channel);
	unsigned messages = 0;

	(void)state;
	buf_init(&ch->out, CHANNEL_MAX_BYTES);
	for (uint32_t number = 0; number < 100; number++)
		for (uint32_t i = 0; i <= number % 3; i++)
			denials_count(&d, number);
	assert_int_equal(d.kinds, DENIALS_KINDS_MAX);
	assert_int_equal(denials_send(&d, ch, 5), 0);
	for (size_t pos = 0; pos < ch->out.len; messages++) {
		struct frame frame;
		struct msg_denial msg;
		int n = frame_parse(ch->out.data + pos, ch->out.len - pos, &frame);
		assert_true(n > 0);
		assert_int_equal(msg_denial_decode(&frame, &msg), 0);
		assert_int_equal(msg.number, messages);
		assert_int_equal(msg.count, messages % 3 + 1);
		pos += (size_t)n;
	}
	assert_int_equal(messages, DENIALS_KINDS_MAX);
	channel_done(ch);
	free(ch);
}

static void without_a_listener_there_is_nothing_to_do(void **state)
{
	struct denials d;

	(void)state;
	denials_open(&d, -1);
	denials_pump(&d);
	denials_close(&d);
	assert_int_equal(d.kinds, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repeats_are_counted_and_kinds_are_bounded),
		cmocka_unit_test(without_a_listener_there_is_nothing_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
