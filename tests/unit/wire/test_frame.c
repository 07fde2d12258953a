/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"

static const uint8_t example[] = {3,    0,    0,    0,    0x34, 0x12, 0,  0,
                                  0x78, 0x56, 0x34, 0x12, 'a',  'b',  'c'};

static void the_header_is_little_endian(void **state)
{
	uint8_t header[FRAME_HEADER_LEN];

	(void)state;
	frame_put_header(&(struct frame){.type = 0x1234, .id = 0x12345678, .len = 3}, header);
	assert_memory_equal(header, example, sizeof(header));
	frame_put_header(&(struct frame){.len = FRAME_MAX_PAYLOAD}, header);
	assert_memory_equal(header, "\0\0\2\0\0\0\0\0\0\0\0\0", sizeof(header));
}

static void a_whole_frame_is_parsed_and_its_length_returned(void **state)
{
	struct frame frame = {0};

	(void)state;
	assert_int_equal(frame_parse(example, sizeof(example), &frame), sizeof(example));
	assert_int_equal(frame.type, 0x1234);
	assert_int_equal(frame.id, 0x12345678);
	assert_int_equal(frame.len, 3);
	assert_ptr_equal(frame.payload, example + FRAME_HEADER_LEN);
}

static void every_prefix_needs_more_bytes_and_writes_nothing(void **state)
{
	struct frame frame = {.type = 7};

	(void)state;
	for (size_t len = 0; len < sizeof(example); len++)
		assert_int_equal(frame_parse(example, len, &frame), 0);
	assert_int_equal(frame.type, 7);
}

static void bytes_after_the_frame_are_left(void **state)
{
	uint8_t two[2 * sizeof(example)];
	struct frame frame = {0};

	(void)state;
	memcpy(two, example, sizeof(example));
	memcpy(two + sizeof(example), example, sizeof(example));
	assert_int_equal(frame_parse(two, sizeof(two), &frame), sizeof(example));
}

static void an_empty_payload_is_a_frame(void **state)
{
	struct frame frame = {.len = 9};
	uint8_t bytes[FRAME_HEADER_LEN] = {0};

	(void)state;
	assert_int_equal(frame_parse(bytes, sizeof(bytes), &frame), FRAME_HEADER_LEN);
	assert_int_equal(frame.len, 0);
}

static void the_largest_payload_is_accepted(void **state)
{
	uint8_t *bytes = calloc(1, FRAME_MAX_LEN);
	struct frame frame = {0};

	(void)state;
	assert_non_null(bytes);
	frame_put_header(&(struct frame){.type = 1, .len = FRAME_MAX_PAYLOAD}, bytes);
	assert_int_equal(frame_parse(bytes, FRAME_MAX_LEN - 1, &frame), 0);
	assert_int_equal(frame_parse(bytes, FRAME_MAX_LEN, &frame), FRAME_MAX_LEN);
	assert_int_equal(frame.len, FRAME_MAX_PAYLOAD);
	free(bytes);
}

static void an_oversized_announcement_is_refused_at_its_fourth_byte(void **state)
{
	struct frame frame;
	uint8_t bytes[FRAME_HEADER_LEN];

	(void)state;
	frame_put_header(&(struct frame){.len = FRAME_MAX_PAYLOAD + 1}, bytes);
	assert_int_equal(frame_parse(bytes, 3, &frame), 0);
	assert_int_equal(frame_parse(bytes, 4, &frame), -EPROTO);
	memset(bytes, 0xFF, sizeof(bytes));
	assert_int_equal(frame_parse(bytes, sizeof(bytes), &frame), -EPROTO);
}

static void the_reserved_bytes_must_be_zero(void **state)
{
	struct frame frame;
	uint8_t bytes[FRAME_HEADER_LEN] = {0};

	(void)state;
	bytes[6] = 1;
	assert_int_equal(frame_parse(bytes, sizeof(bytes), &frame), -EPROTO);
	bytes[6] = 0;
	bytes[7] = 1;
	assert_int_equal(frame_parse(bytes, sizeof(bytes), &frame), -EPROTO);
	bytes[0] = 1; /* also while the payload is still missing */
	assert_int_equal(frame_parse(bytes, sizeof(bytes), &frame), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_header_is_little_endian),
		cmocka_unit_test(a_whole_frame_is_parsed_and_its_length_returned),
		cmocka_unit_test(every_prefix_needs_more_bytes_and_writes_nothing),
		cmocka_unit_test(bytes_after_the_frame_are_left),
		cmocka_unit_test(an_empty_payload_is_a_frame),
		cmocka_unit_test(the_largest_payload_is_accepted),
		cmocka_unit_test(an_oversized_announcement_is_refused_at_its_fourth_byte),
		cmocka_unit_test(the_reserved_bytes_must_be_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
