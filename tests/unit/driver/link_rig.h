/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a link over a socket pair whose other end, the agent's, is the test's. */

#include "recorder.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "driver/internal.h"
#include "io/loop.h"
#include "io/stream.h"
#include <errno.h>
#include <sys/socket.h>

struct link_rig {
	struct loop *loop;
	struct link *link;
	int agent; /* the test's end; -1 before rig_open */
	struct recorder rec;
	struct box_events box;
	struct link_events events;
	struct msg_hello hello; /* of the last on_hello */
	struct error err;
	struct buf heard; /* bytes from the host, not examined yet */
	char *kept;       /* payload of the frame examined last */
	bool close_on_hello;
};

static inline void rig_on_hello(void *ctx, const struct msg_hello *hello)
{
	struct link_rig *rig = ctx;

	rig->hello = *hello;
	record(&rig->rec, "hello", "%s", "");
	if (rig->close_on_hello)
		link_close(rig->link);
}

static inline void rig_on_lost(void *ctx, const struct error *err)
{
	struct link_rig *rig = ctx;

	record_lost(&rig->rec, err);
}

static inline int rig_setup(void **state)
{
	static struct link_rig rig;

	rig = (struct link_rig){
		.loop = loop_new(), .agent = -1, .heard = BUF_INIT(LINK_QUEUE_MAX * 2UL)};
	recorder_init(&rig.rec);
	rig.box = recorder_events(&rig.rec);
	rig.events =
		(struct link_events){.ctx = &rig, .on_hello = rig_on_hello, .on_lost = rig_on_lost};
	rig.link = link_new(rig.loop, "box", &rig.events, &rig.box);
	*state = &rig;
	return 0;
}

static inline int rig_teardown(void **state)
{
	struct link_rig *rig = *state;

	link_free(rig->link);
	loop_free(rig->loop);
	(void)fd_close(rig->agent);
	buf_done(&rig->rec.text);
	buf_done(&rig->heard);
	free(rig->kept);
	return 0;
}

static inline void rig_open(struct link_rig *rig)
{
	struct msg_setup setup = {.version = WIRE_VERSION, .uid = 1000, .gid = 1000, .nofile = 64};
	int pair[2];

	assert_int_equal(fd_socketpair(SOCK_STREAM, pair), 0);
	rig->agent = pair[1];
	link_open(rig->link, pair[0], &setup);
}

/* Let everything in flight arrive. */
static inline void rig_run(struct link_rig *rig)
{
	for (int i = 0; i < 4; i++)
		loop_run_once(rig->loop, false);
}

/* The next frame for the agent must be of @type; it is borrowed until the next call. */
static inline struct frame rig_hear(struct link_rig *rig, unsigned type)
{
	struct frame frame = {0};
	int used;

	while ((used = frame_parse(rig->heard.data, rig->heard.len, &frame)) == 0) {
		char chunk[65536];
		ssize_t n = recv(rig->agent, chunk, sizeof(chunk), MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN) {
			if (stream_pending(rig->link->stream) == 0)
				fail_msg("no %s came", msg_name(type));
			loop_run_once(rig->loop, false);
			continue;
		}
		assert_true(n > 0);
		assert_int_equal(buf_add(&rig->heard, chunk, (size_t)n), 0);
	}
	assert_true(used > 0);
	assert_string_equal(msg_name(frame.type), msg_name(type));
	free(rig->kept);
	rig->kept = xmemdup0(frame.payload, frame.len);
	frame.payload = (const uint8_t *)rig->kept;
	buf_consume(&rig->heard, (size_t)used);
	return frame;
}

static inline void rig_hear_nothing(struct link_rig *rig)
{
	char c;

	rig_run(rig);
	assert_int_equal(rig->heard.len, 0);
	assert_int_equal(recv(rig->agent, &c, 1, MSG_DONTWAIT | MSG_PEEK), -1);
	assert_int_equal(errno, EAGAIN);
}

/* Bytes of the agent, and their effects. */
static inline void rig_say_bytes(struct link_rig *rig, const void *data, size_t len)
{
	assert_int_equal(fd_write_all(rig->agent, data, len), 0);
	rig_run(rig);
}

/** SAY - one message of the agent: SAY(rig, started, 1, .pid = 2). */
#define SAY(rig, name, id, ...)                                                                    \
	do {                                                                                       \
		cleanup_buf struct buf say_ = BUF_INIT(FRAME_MAX_LEN);                             \
		struct msg_##name msg_ = {__VA_ARGS__};                                            \
		assert_int_equal(msg_##name##_encode(&say_, id, &msg_), 0);                        \
		rig_say_bytes(rig, say_.data, say_.len);                                           \
	} while (0)

static inline void rig_greet(struct link_rig *rig)
{
	SAY(rig, hello, 0, .version = WIRE_VERSION, .layers = LINK_AGENT_LAYERS, .landlock_abi = 3);
	recorder_expect(&rig->rec, "hello ");
}

/* An agent that sent HELLO and was given execution @id of sample_plan (with stdin). */
static inline void rig_hand_over(struct link_rig *rig, uint32_t id)
{
	struct exec_plan plan = sample_plan(id);

	plan.stdin_open = true;
	if (rig->agent < 0) {
		rig_open(rig);
		(void)rig_hear(rig, MSG_SETUP);
		rig_greet(rig);
	}
	assert_int_equal(link_exec(rig->link, &plan, &rig->err), 0);
	(void)rig_hear(rig, MSG_EXEC);
}

static inline void rig_start(struct link_rig *rig, uint32_t id)
{
	rig_hand_over(rig, id);
	SAY(rig, started, id, .pid = 2);
	buf_reset(&rig->rec.text);
}
