/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/msg.h"

/*
 * For every message of the list: a value with distinct fields is encoded, decoded, compared, and
 * then damaged in every way that must be rejected.
 */

static uint64_t next_number(void)
{
	static uint64_t n = 0x8182838485868788ULL;

	n += 0x0101010101010101ULL;
	return n;
}

static const char *const two_items[] = {"first", ""};

static struct wire_bytes next_bytes(void)
{
	static const char text[] = "0123456789";
	static uint32_t len;

	len = (len + 1) % 10;
	return (struct wire_bytes){.data = text, .len = len};
}

static bool same_bytes(struct wire_bytes a, struct wire_bytes b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool same_items(const struct wire_strs *decoded, const struct wire_strs *given)
{
	struct wire_bytes item;
	uint32_t pos = 0, i = 0;

	if (decoded->count != given->count)
		return false;
	for (; wire_strs_next(decoded, &pos, &item); i++)
		if (!same_bytes(item, wire_str(given->items[i])))
			return false;
	return i == given->count;
}

static struct frame frame_of(const struct buf *b)
{
	struct frame frame = {0};

	assert_int_equal(frame_parse(b->data, b->len, &frame), b->len);
	return frame;
}

#define U8(n)    msg->n = (uint8_t)next_number();
#define U16(n)   msg->n = (uint16_t)next_number();
#define U32(n)   msg->n = (uint32_t)next_number();
#define U64(n)   msg->n = next_number();
#define I32(n)   msg->n = (int32_t)next_number();
#define STR(n)   msg->n = next_bytes();
#define BYTES(n) msg->n = next_bytes();
#define STRS(n)  msg->n = (struct wire_strs){.count = 2, .items = two_items};
#define MSG(NAME, name, direction, ...)                                                            \
	static void fill_##name(struct msg_##name *msg)                                            \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#include "wire/msg.def"
#undef MSG
#undef U8
#undef U16
#undef U32
#undef U64
#undef I32
#undef STR
#undef BYTES
#undef STRS

#define U8(n)    assert_true(a->n == b->n);
#define U16(n)   assert_true(a->n == b->n);
#define U32(n)   assert_true(a->n == b->n);
#define U64(n)   assert_true(a->n == b->n);
#define I32(n)   assert_true(a->n == b->n);
#define STR(n)   assert_true(same_bytes(a->n, b->n));
#define BYTES(n) assert_true(same_bytes(a->n, b->n));
#define STRS(n)  assert_true(same_items(&a->n, &b->n));
#define MSG(NAME, name, direction, ...)                                                            \
	static void compare_##name(const struct msg_##name *a, const struct msg_##name *b)         \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#include "wire/msg.def"
#undef MSG
#undef U8
#undef U16
#undef U32
#undef U64
#undef I32
#undef STR
#undef BYTES
#undef STRS

#define MSG(NAME, name, direction, ...)                                                            \
	static void name##_survives_the_wire(void **state)                                         \
	{                                                                                          \
		cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);                                \
		cleanup_buf struct buf again = BUF_INIT(FRAME_MAX_LEN);                            \
		struct msg_##name given = {0}, got;                                                \
		struct frame frame;                                                                \
                                                                                                   \
		(void)state;                                                                       \
		fill_##name(&given);                                                               \
		assert_int_equal(msg_##name##_encode(&b, 0xA1B2C3D4, &given), 0);                  \
		frame = frame_of(&b);                                                              \
		assert_int_equal(frame.type, MSG_##NAME);                                          \
		assert_int_equal(frame.id, 0xA1B2C3D4);                                            \
		assert_int_equal(msg_##name##_decode(&frame, &got), 0);                            \
		compare_##name(&got, &given);                                                      \
		assert_int_equal(msg_##name##_encode(&again, 0xA1B2C3D4, &got), 0);                \
		assert_int_equal(again.len, b.len);                                                \
		assert_memory_equal(again.data, b.data, b.len);                                    \
	}                                                                                          \
                                                                                                   \
	static void name##_is_refused_when_cut_extended_or_of_another_type(void **state)           \
	{                                                                                          \
		cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);                                \
		struct msg_##name given = {0}, got;                                                \
		struct frame frame, bad;                                                           \
                                                                                                   \
		(void)state;                                                                       \
		fill_##name(&given);                                                               \
		assert_int_equal(msg_##name##_encode(&b, 1, &given), 0);                           \
		assert_int_equal(buf_add(&b, "\0", 1), 0);                                         \
		b.len--;                                                                           \
		frame = bad = frame_of(&b);                                                        \
		for (bad.len = 0; bad.len < frame.len; bad.len++)                                  \
			assert_int_equal(msg_##name##_decode(&bad, &got), -EPROTO);                \
		bad.len = frame.len + 1;                                                           \
		assert_int_equal(msg_##name##_decode(&bad, &got), -EPROTO);                        \
		bad = frame;                                                                       \
		bad.type = MSG_##NAME + 1;                                                         \
		assert_int_equal(msg_##name##_decode(&bad, &got), -EPROTO);                        \
	}                                                                                          \
                                                                                                   \
	static void name##_is_whole_or_not_in_the_buffer(void **state)                             \
	{                                                                                          \
		cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);                                \
		struct msg_##name given = {0};                                                     \
                                                                                                   \
		(void)state;                                                                       \
		fill_##name(&given);                                                               \
		assert_int_equal(msg_##name##_encode(&b, 1, &given), 0);                           \
		for (size_t room = b.len - 1; room > 0; room--) {                                  \
			cleanup_buf struct buf small = BUF_INIT(room);                             \
                                                                                                   \
			assert_int_equal(buf_add_str(&small, "!"), 0);                             \
			assert_int_equal(msg_##name##_encode(&small, 1, &given), -ENOBUFS);        \
			assert_int_equal(small.len, 1);                                            \
			assert_string_equal(small.data, "!");                                      \
		}                                                                                  \
	}
#include "wire/msg.def"
#undef MSG

/* Numbers are their positions in the list, for ever: an old agent counts on them. */
static void numbers_and_names_do_not_change(void **state)
{
	(void)state;
	assert_int_equal(MSG_SETUP, 1);
	assert_int_equal(MSG_EXEC, 5);
	assert_int_equal(MSG_HELLO, 10);
	assert_int_equal(MSG_LOG, 18);
	assert_string_equal(msg_name(MSG_EXEC), "EXEC");
	assert_string_equal(msg_name(MSG_LOG), "LOG");
	assert_string_equal(msg_name(MSG_NONE), "?");
	assert_string_equal(msg_name(MSG_COUNT), "?");
	assert_string_equal(msg_name(65535), "?");
}

static void the_bytes_of_a_message_are_those_of_the_protocol(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(100);
	struct msg_failed failed = {.code = 0x01020304, .sys = -2, .text = wire_str("no")};

	(void)state;
	assert_int_equal(msg_failed_encode(&b, 5, &failed), 0);
	assert_int_equal(b.len, FRAME_HEADER_LEN + 14);
	assert_memory_equal(b.data,
	                    "\x0e\0\0\0\x11\0\0\0\x05\0\0\0" /* header */
	                    "\x04\x03\x02\x01"               /* code */
	                    "\xfe\xff\xff\xff"               /* sys */
	                    "\x02\0\0\0no",
	                    b.len);
}

static void a_string_may_not_hold_a_nul_but_bytes_may(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(100);
	const struct wire_bytes nul = {.data = "a\0b", .len = 3};
	struct msg_stdin_data in = {.data = nul};
	struct msg_log log = {.text = nul};
	struct frame frame;

	(void)state;
	assert_int_equal(msg_log_encode(&b, 0, &log), -EINVAL);
	assert_int_equal(b.len, 0);
	assert_int_equal(msg_stdin_data_encode(&b, 0, &in), 0);
	frame = frame_of(&b);
	assert_int_equal(msg_stdin_data_decode(&frame, &in), 0);
	assert_int_equal(in.data.len, 3);

	buf_reset(&b);
	log.text = wire_str("axb");
	assert_int_equal(msg_log_encode(&b, 0, &log), 0);
	b.data[b.len - 2] = '\0';
	frame = frame_of(&b);
	assert_int_equal(msg_log_decode(&frame, &log), -EPROTO);
}

static void a_length_beyond_the_frame_is_refused(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(100);
	struct msg_log log = {.text = wire_str("text")};
	struct frame frame;

	(void)state;
	assert_int_equal(msg_log_encode(&b, 0, &log), 0);
	frame = frame_of(&b);
	memset(b.data + FRAME_HEADER_LEN + 1, 0xFF, 4);
	assert_int_equal(msg_log_decode(&frame, &log), -EPROTO);
	assert_int_equal(log.text.len, 0);
}

static void a_payload_is_accepted_up_to_the_largest_frame(void **state)
{
	cleanup_buf struct buf b = BUF_INIT((size_t)4 * FRAME_MAX_LEN);
	cleanup_free char *data = xcalloc(1, FRAME_MAX_PAYLOAD);
	struct msg_report report = {.data = {.data = data, .len = FRAME_MAX_PAYLOAD - 4}};
	struct frame frame;

	(void)state;
	assert_int_equal(msg_report_encode(&b, 1, &report), 0);
	assert_int_equal(b.len, FRAME_MAX_LEN);
	frame = frame_of(&b);
	assert_int_equal(msg_report_decode(&frame, &report), 0);
	buf_reset(&b);
	report.data = (struct wire_bytes){.data = data, .len = FRAME_MAX_PAYLOAD - 3};
	assert_int_equal(msg_report_encode(&b, 1, &report), -EMSGSIZE);
	assert_int_equal(b.len, 0);
	report.data.len = UINT32_MAX;
	assert_int_equal(msg_report_encode(&b, 1, &report), -EMSGSIZE);
}

static void a_frame_longer_than_allowed_is_not_decoded(void **state)
{
	static uint8_t payload[FRAME_MAX_PAYLOAD + 1];
	struct frame frame = {.type = MSG_REPORT, .payload = payload, .len = sizeof(payload)};
	struct msg_report report;
	uint32_t len = sizeof(payload) - 4;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		payload[i] = (uint8_t)(len >> (8 * i));
	assert_int_equal(msg_report_decode(&frame, &report), -EPROTO);
}

static int encode_list(struct buf *b, uint32_t count, const char *const *items)
{
	struct msg_exec exec = {.argv = {.count = count, .items = items}};

	buf_reset(b);
	return msg_exec_encode(b, 1, &exec);
}

static void a_list_is_bounded_in_number_and_bytes(void **state)
{
	cleanup_buf struct buf b = BUF_INIT((size_t)4 * FRAME_MAX_LEN);
	static const char *items[WIRE_STRS_MAX + 1];
	static char kilobyte[1025];
	struct msg_exec exec;
	struct frame frame;

	(void)state;
	for (size_t i = 0; i <= WIRE_STRS_MAX; i++)
		items[i] = "";
	assert_int_equal(encode_list(&b, WIRE_STRS_MAX, items), 0);
	frame = frame_of(&b);
	assert_int_equal(msg_exec_decode(&frame, &exec), 0);
	assert_int_equal(exec.argv.count, WIRE_STRS_MAX);
	assert_int_equal(exec.env.count, 0);
	assert_int_equal(encode_list(&b, WIRE_STRS_MAX + 1, items), -EMSGSIZE);

	memset(kilobyte, 'x', 1024);
	for (size_t i = 0; i < WIRE_STRS_MAX; i++)
		items[i] = kilobyte;
	assert_int_equal(encode_list(&b, WIRE_STRS_MAX, items), -EMSGSIZE);
	assert_int_equal(b.len, 0);
}

static void a_list_that_lies_about_its_count_is_refused(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
	struct msg_exec exec;
	struct frame frame;

	(void)state;
	assert_int_equal(encode_list(&b, 2, two_items), 0);
	frame = frame_of(&b);
	b.data[FRAME_HEADER_LEN] = 1; /* "" is then read as the next list's count, and so on */
	assert_int_equal(msg_exec_decode(&frame, &exec), -EPROTO);
	b.data[FRAME_HEADER_LEN] = 100;
	assert_int_equal(msg_exec_decode(&frame, &exec), -EPROTO);
	b.data[FRAME_HEADER_LEN + 1] = 8; /* 2048 and more: beyond the number allowed */
	assert_int_equal(msg_exec_decode(&frame, &exec), -EPROTO);
	assert_int_equal(exec.argv.encoded_len, 0);
}

static void a_list_with_a_nul_in_an_item_is_refused(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
	struct msg_exec exec;
	struct frame frame;

	(void)state;
	assert_int_equal(encode_list(&b, 1, two_items), 0);
	frame = frame_of(&b);
	b.data[FRAME_HEADER_LEN + 8] = '\0';
	assert_int_equal(msg_exec_decode(&frame, &exec), -EPROTO);
}

static void an_empty_list_has_no_items(void **state)
{
	struct wire_strs none = {0};
	struct wire_bytes item;
	uint32_t pos = 0;

	(void)state;
	assert_int_equal(wire_strs_next(&none, &pos, &item), 0);
	pos = 5;
	assert_int_equal(wire_strs_next(&none, &pos, &item), 0);
}

static void messages_follow_each_other_in_a_buffer(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
	struct frame frame;
	struct msg_signal signal = {.signo = 9};
	struct msg_bye bye = {0};

	(void)state;
	assert_int_equal(msg_signal_encode(&b, 3, &signal), 0);
	assert_int_equal(msg_bye_encode(&b, 0, &bye), 0);
	int used = frame_parse(b.data, b.len, &frame);
	assert_int_equal(frame.type, MSG_SIGNAL);
	buf_consume(&b, (size_t)used);
	used = frame_parse(b.data, b.len, &frame);
	assert_int_equal(frame.type, MSG_BYE);
	assert_int_equal(used, b.len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define MSG(NAME, name, direction, ...)                                                            \
	cmocka_unit_test(name##_survives_the_wire),                                                \
		cmocka_unit_test(name##_is_refused_when_cut_extended_or_of_another_type),          \
		cmocka_unit_test(name##_is_whole_or_not_in_the_buffer),
#include "wire/msg.def"
#undef MSG
		cmocka_unit_test(numbers_and_names_do_not_change),
		cmocka_unit_test(the_bytes_of_a_message_are_those_of_the_protocol),
		cmocka_unit_test(a_string_may_not_hold_a_nul_but_bytes_may),
		cmocka_unit_test(a_length_beyond_the_frame_is_refused),
		cmocka_unit_test(a_payload_is_accepted_up_to_the_largest_frame),
		cmocka_unit_test(a_frame_longer_than_allowed_is_not_decoded),
		cmocka_unit_test(a_list_is_bounded_in_number_and_bytes),
		cmocka_unit_test(a_list_that_lies_about_its_count_is_refused),
		cmocka_unit_test(a_list_with_a_nul_in_an_item_is_refused),
		cmocka_unit_test(an_empty_list_has_no_items),
		cmocka_unit_test(messages_follow_each_other_in_a_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
