/* SPDX-License-Identifier: Apache-2.0 */
#include "http/framing.h"
#include "unit.h"

#include "base/attr.h"
#include <string.h>

#define HEAD    "POST /x HTTP/1.1\r\nHost: x\r\n"
#define CHUNKED HEAD "Transfer-Encoding: chunked\r\n\r\n"

/* Text with NULs. */
struct text {
	const char *data;
	size_t len;
};
/* clang-format off */
#define TEXT(literal) {literal, sizeof(literal) - 1}
/* clang-format on */

/* Feeds @text in pieces of @step. Return: valid bytes. */
static size_t feed(struct framing *f, const struct text *text, size_t step)
{
	size_t used = 0;

	*f = (struct framing){0};
	while (used < text->len) {
		size_t len = text->len - used < step ? text->len - used : step;
		size_t n = framing_feed(f, text->data + used, len);

		used += n;
		if (n < len)
			break;
	}
	return used;
}

static void requests_in_strict_form_are_valid(void **state)
{
	static const struct {
		struct text text;
		uint64_t heads;
		enum framing_state state;
	} good[] = {
		{TEXT("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 1, FRAMING_REQUEST},
		{TEXT("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"), 1, FRAMING_REQUEST},
		{TEXT("GET / HTTP/1.1\r\nX: a\tb \xff\r\nEmpty:\r\n\r\n"), 1, FRAMING_REQUEST},
		{TEXT(HEAD "Content-Length: 3\r\n\r\n\n\0\r"), 1, FRAMING_REQUEST},
		{TEXT(HEAD "content-length:\t3\r\n\r\nab"), 1, FRAMING_BODY},
		{TEXT(HEAD "Content-Length: 0\r\n\r\nGET"), 1, FRAMING_REQUEST},
		{TEXT(CHUNKED "1\r\n\n\r\n0A;x=\"y\"\r\n0123456789\r\n0\r\n\r\n"), 1,
	         FRAMING_REQUEST},
		{TEXT(CHUNKED "0\r\nX: y\r\n\r\n" CHUNKED "f\r\n"), 2, FRAMING_CHUNK_DATA},
		{TEXT("GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n\n\0"), 1, FRAMING_UPGRADE},
		/* Not a WebSocket: checked on. */
		{TEXT(HEAD "Upgrade: h2c\r\nContent-Length: 1\r\n\r\n\n"), 1, FRAMING_REQUEST},
	};
	struct framing f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		for (size_t step = 1; step <= good[i].text.len; step++) {
			assert_int_equal(feed(&f, &good[i].text, step), good[i].text.len);
			assert_null(f.bad);
			assert_int_equal(f.heads, good[i].heads);
			assert_int_equal(f.state, good[i].state);
		}
}

static void other_forms_are_refused_at_the_first_bad_byte(void **state)
{
	static const struct {
		struct text text;
		size_t valid;
		const char *why;
	} bad[] = {
		{TEXT("GET / HTTP/1.1\nHost: x\n\n"), 14, "LF, not CRLF"},
		{TEXT("\nGET / HTTP/1.1\r\n"), 0, "LF, not CRLF"},
		{TEXT(HEAD "X: y\n\r\n"), 31, "LF, not CRLF"},
		{TEXT(HEAD "\n"), 27, "LF, not CRLF"},
		{TEXT("GET / HTTP/1.1\rHost: x\r\n"), 15, "CR that does not end"},
		{TEXT(HEAD "X: a\rb\r\n"), 32, "CR that does not end"},
		{TEXT(HEAD "X: a\r\r\n"), 32, "CR that does not end"},
		{TEXT(HEAD "X: a\0b\r\n"), 31, "NUL"},
		{TEXT("GET /\0 HTTP/1.1\r\n"), 5, "NUL"},
		{TEXT("GET\t/ HTTP/1.1\r\n"), 3, "control"},
		{TEXT(HEAD "X: a\x01\r\n"), 31, "control"},
		{TEXT(HEAD "X: a\x7f\r\n"), 31, "control"},
		{TEXT(HEAD " folded: y\r\n"), 27, "folded"},
		{TEXT(HEAD "X: y\r\n\tz\r\n"), 33, "folded"},
		{TEXT("GET / HTTP/1.1\r\n Host: x\r\n"), 16, "folded"},
		{TEXT(HEAD "Content-Length : 5\r\n"), 41, "name has invalid"},
		{TEXT(HEAD ": y\r\n"), 27, "name has invalid"},
		{TEXT(HEAD "X\r\n"), 29, "no colon"},
		{TEXT(HEAD "Content-Length: +5\r\n"), 46, "not a number"},
		{TEXT(HEAD "Content-Length: 5,5\r\n"), 47, "not a number"},
		{TEXT(HEAD "Content-Length: 18446744073709551616\r\n"), 64, "not a number"},
		{TEXT(HEAD "Content-Length: 5\r\ncontent-length: 5\r\n"), 64, "more than once"},
		{TEXT(HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 73,
	         "more than once"},
		{TEXT(HEAD "Transfer-Encoding: gzip, chunked\r\n"), 60, "not chunked"},
		{TEXT(CHUNKED "1\na\n0\n\n"), 58, "LF, not CRLF"},
		{TEXT(CHUNKED "1\r\na\n"), 61, "LF, not CRLF"},
		{TEXT(CHUNKED "1\r\nab\r\n"), 61, "longer than announced"},
		{TEXT(CHUNKED "0\r\n\n"), 60, "LF, not CRLF"},
		{TEXT(CHUNKED "0\r\nX: y\r\n z\r\n"), 66, "folded"},
		{TEXT(CHUNKED "-1\r\n"), 57, "size of a chunk"},
		{TEXT(CHUNKED "1 1\r\n"), 61, "size of a chunk"},
		{TEXT(CHUNKED "\r\n"), 58, "size of a chunk"},
		{TEXT(CHUNKED "10000000000000000\r\n"), 75, "size of a chunk"},
	};
	struct framing f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		for (size_t step = 1; step <= bad[i].text.len; step++) {
			size_t valid = feed(&f, &bad[i].text, step);

			if (!f.bad || !strstr(f.bad, bad[i].why))
				fail_msg("'%s': %s", bad[i].text.data, f.bad ? f.bad : "valid");
			if (valid != bad[i].valid)
				fail_msg("'%s': %zu bytes are valid", bad[i].text.data, valid);
			/* For good. */
			assert_int_equal(framing_feed(&f, "\r\n", 2), 0);
		}
}

static void a_long_line_of_a_framing_header_is_refused(void **state)
{
	char text[sizeof(HEAD) + 256] = HEAD "Content-Length: ";
	struct text t = {text, 0};
	struct framing f;

	(void)state;
	memset(text + strlen(text), ' ', FRAMING_LINE_MAX);
	memcpy(text + strlen(text), "5\r\n", 4);
	t.len = strlen(text);
	(void)feed(&f, &t, t.len);
	assert_non_null(f.bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_in_strict_form_are_valid),
		cmocka_unit_test(other_forms_are_refused_at_the_first_bad_byte),
		cmocka_unit_test(a_long_line_of_a_framing_header_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
