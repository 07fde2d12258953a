/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/answer.h"
#include "unit.h"

#include "base/alloc.h"
#include <string.h>

static const char *read_request(const char *text, struct request *ret)
{
	return request_read(text, strlen(text), ret);
}

static void requests_name_what_they_lack(void **state)
{
	static const struct {
		const char *text, *wrong;
	} bad[] = {
		{"", "Invalid JSON"},
		{"[]", "Invalid JSON"},
		{"{", "Invalid JSON"},
		{"{}", "Missing 'url'"},
		{"{\"url\":1,\"tool\":\"t\"}", "Missing 'url'"},
		{"{\"url\":\"\",\"tool\":\"t\"}", "Missing 'url'"},
		{"{\"url\":\"u\"}", "Missing 'tool'"},
		{"{\"url\":\"u\",\"tool\":null}", "Missing 'tool'"},
		{"{\"url\":\"u\",\"tool\":\"t\",\"arguments\":[]}", "Invalid 'arguments'"},
		{"{\"url\":\"u\",\"url\":\"v\",\"tool\":\"t\"}", "Invalid JSON"},
	};
	struct request *r = NEW(struct request);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *wrong = read_request(bad[i].text, r);

		assert_non_null(wrong);
		assert_memory_equal(wrong, bad[i].wrong, strlen(bad[i].wrong));
	}
	free(r);
}

static void requests_are_read(void **state)
{
	struct request *r = NEW(struct request);

	(void)state;
	assert_null(read_request(
		"{\"url\":\"mcp:\\/\\/a\",\"tool\":\"t\",\"arguments\":{ \"x\":1 }}", r));
	assert_string_equal(r->url, "mcp://a");
	assert_string_equal(r->tool, "t");
	assert_int_equal(r->arguments.len, strlen("{ \"x\":1 }"));
	assert_null(read_request(
		"{\"url\":\"u\",\"tool\":\"t\",\"arguments\":null,\"box\":\"other\"}", r));
	assert_int_equal(r->arguments.kind, SCAN_ABSENT);
	free(r);
}

static void frames_have_their_length_first(void **state)
{
	static const unsigned char head[] = {0x01, 0x02, 0x03, 0x04};
	struct buf b = BUF_INIT(4096);

	(void)state;
	assert_int_equal(frame_length(head), 0x01020304);
	answer_error(&b, "a\"b\\c\n\xff\x7f");
	assert_int_equal(frame_length((unsigned char *)b.data), b.len - FRAME_HEAD);
	assert_string_equal(b.data + FRAME_HEAD,
	                    "{\"error\": \"a\\\"b\\\\c\\u000a\\ufffd\\u007f\"}");
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_name_what_they_lack),
		cmocka_unit_test(requests_are_read),
		cmocka_unit_test(frames_have_their_length_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
