/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/json/encode_file.h"
#include "api/op/download.h"
#include "http/media_type.h"
#include <string.h>

static void ranges_are_read_as_clients_write_them(void **state)
{
	static const struct {
		const char *value;
		struct download_range range;
	} rows[] = {
		{"bytes=0-99", {.asked = true, .first = 0, .last = 99}},
		{"bytes=5-5", {.asked = true, .first = 5, .last = 5}},
		{"bytes=100-", {.asked = true, .first = 100, .last = UINT64_MAX}},
		{"bytes=-500", {.asked = true, .suffix = true, .last = 500}},
		{NULL, {.asked = false}},
		{"", {.asked = false}},
		{"bytes=", {.asked = false}},
		{"bytes=-", {.asked = false}},
		{"bytes=9-1", {.asked = false}},
		{"bytes=0-1,3-4", {.asked = false}},
		{"lines=0-1", {.asked = false}},
		{"bytes=a-b", {.asked = false}},
		{"bytes=0x1-2", {.asked = false}},
		{"bytes= 0-1", {.asked = false}},
		{"bytes=0-99999999999999999999999", {.asked = false}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct download_range got = {0};

		download_parse_range(rows[i].value, &got);
		if (got.asked != rows[i].range.asked)
			fail_msg("'%s'", rows[i].value ? rows[i].value : "(none)");
		if (!got.asked)
			continue;
		assert_int_equal(got.suffix, rows[i].range.suffix);
		assert_int_equal(got.first, rows[i].range.first);
		assert_int_equal(got.last, rows[i].range.last);
	}
}

static void tags_differ_with_what_the_file_is(void **state)
{
	char a[VIEW_FILE_ETAG_LEN], b[VIEW_FILE_ETAG_LEN];
	static const uint64_t rows[][3] = {{2, 2, 3}, {1, 3, 3}, {1, 2, 4}, {12, 3, 3}, {1, 23, 3}};

	(void)state;
	encode_file_etag(1, 2, 3, a);
	encode_file_etag(1, 2, 3, b);
	assert_string_equal(a, b);
	assert_true(a[0] == '"' && a[strlen(a) - 1] == '"');
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		encode_file_etag(rows[i][0], rows[i][1], rows[i][2], b);
		assert_string_not_equal(a, b);
	}
	encode_file_etag(UINT64_MAX, UINT64_MAX, UINT64_MAX, b);
	assert_true(strlen(b) < sizeof(b));
}

static void types_go_by_the_end_of_a_name(void **state)
{
	(void)state;
	assert_string_equal(media_type_of("a/b.png"), "image/png");
	assert_string_equal(media_type_of("a.b/plain"), media_type_of("plain"));
	assert_string_equal(media_type_of(""), "application/octet-stream");
	assert_string_equal(media_type_of("x."), "application/octet-stream");
	assert_string_equal(media_type_of(".png/x"), "application/octet-stream");
	assert_non_null(strstr(media_type_of("t.txt"), "text/plain"));
	assert_non_null(strstr(media_type_of("j.json"), "application/json"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_read_as_clients_write_them),
		cmocka_unit_test(tags_differ_with_what_the_file_is),
		cmocka_unit_test(types_go_by_the_end_of_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
