/* SPDX-License-Identifier: Apache-2.0 */
/* Any frame through every decoder: what one accepts, its encoder turns into the same bytes. */
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "wire/msg.h"

static void check_again(const struct frame *frame, const struct buf *again)
{
	require(again->len == FRAME_HEADER_LEN + (size_t)frame->len);
	require(memcmp(again->data, frame->payload - FRAME_HEADER_LEN, again->len) == 0);
}

static void walk(const struct wire_strs *strs)
{
	struct wire_bytes item;
	uint32_t count = 0, pos = 0;

	for (; wire_strs_next(strs, &pos, &item); count++)
		require(item.len == 0 || !memchr(item.data, '\0', item.len));
	require(count == strs->count);
}

#define MSG(NAME, name, direction, ...)                                                            \
	static void try_##name(const struct frame *frame)                                          \
	{                                                                                          \
		cleanup_buf struct buf again = BUF_INIT(FRAME_MAX_LEN);                            \
		struct msg_##name msg;                                                             \
                                                                                                   \
		if (msg_##name##_decode(frame, &msg) < 0)                                          \
			return;                                                                    \
		require(frame->type == MSG_##NAME);                                                \
		require(msg_##name##_encode(&again, frame->id, &msg) == 0);                        \
		check_again(frame, &again);                                                        \
	}
#include "wire/msg.def"
#undef MSG

static void (*const tries[])(const struct frame *frame) = {
#define MSG(NAME, name, direction, ...) try_##name,
#include "wire/msg.def"
#undef MSG
};

static void walk_lists(const struct frame *frame)
{
	struct msg_exec exec;
	struct msg_run run;
	struct msg_beside beside;

	if (msg_exec_decode(frame, &exec) == 0) {
		walk(&exec.argv);
		walk(&exec.env);
	}
	if (msg_run_decode(frame, &run) == 0)
		walk(&run.args);
	if (msg_beside_decode(frame, &beside) == 0) {
		walk(&beside.argv);
		walk(&beside.env);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame frame;

	for (int used; (used = frame_parse(data, size, &frame)) > 0;
	     data += used, size -= (size_t)used) {
		for (size_t i = 0; i < ARRAY_SIZE(tries); i++)
			tries[i](&frame);
		walk_lists(&frame);
		require(msg_name(frame.type) != NULL);
	}
	return 0;
}
