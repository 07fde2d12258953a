/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/socks.h"
#include "text.h"
#include "unit.h"

#include "base/str.h"

#define V6(last) "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" last
#define MAPPED   "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1"

static int greet(const char *data, size_t len)
{
	char *exact = text_exact(data, len);
	int r = socks_greeting(exact, len);

	free(exact);
	return r;
}

static void greeting_needs_the_method_without_authentication(void **state)
{
	static const struct {
		struct text text;
		int result;
	} rows[] = {
		{TEXT("\5\1\0"), 3},
		{TEXT("\5\2\0\2"), 4},
		{TEXT("\5\3\2\1\0"), 5},
		{TEXT("\5\1\0\5\1\0"), 3}, /* the request may follow at once */
		{TEXT("\5\1\2"), -1},
		{TEXT("\5\2\1\2"), -1},
		{TEXT("\5\1\2\0"), -1},
		{TEXT("\5\0"), -1},
		{TEXT("\5\0\0"), -1},
		{TEXT("\4\1\0\x50\x7f\0\0\1\0"), -1}, /* SOCKS4 */
		{TEXT("GET / HTTP/1.1"), -1},
		{TEXT("\0"), -1},
		{TEXT(""), 0},
		{TEXT("\5"), 0},
		{TEXT("\5\1"), 0},
		{TEXT("\5\2\0"), 0},
		{TEXT("\5\xff\0"), 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(greet(rows[i].text.data, rows[i].text.len), rows[i].result);
}

static int ask(const char *data, size_t len, struct target *ret, enum socks_reply *ret_reply)
{
	char *exact = text_exact(data, len);
	struct error err = {0};
	int r = socks_request(exact, len, ret, ret_reply, &err);

	assert_int_equal(error_is_set(&err), r < 0);
	free(exact);
	return r;
}

static void requests_name_a_target(void **state)
{
	static const struct {
		struct text text;
		const char *host;
		uint16_t port;
		bool is_address;
	} good[] = {
		{TEXT("\5\1\0\1\x7f\0\0\1\1\xbb"), "127.0.0.1", 443, true},
		{TEXT("\5\1\0\4" V6("\1") "\0\x50"), "::1", 80, true},
		{TEXT("\5\1\0\3\xb"
	              "Example.com\xff\xff"),
	         "example.com", 65535, false},
		{TEXT("\5\1\0\3\1x\0\1"), "x", 1, false},
		{TEXT("\5\1\0\3\x9"
	              "127.0.0.1\0\1"),
	         "127.0.0.1", 1, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		const struct text *text = &good[i].text;
		struct target t = {0};
		enum socks_reply reply = SOCKS_OK;
		char longer[64];

		for (size_t len = 0; len < text->len; len++)
			assert_int_equal(ask(text->data, len, &t, &reply), 0);
		assert_int_equal(ask(text->data, text->len, &t, &reply), (int)text->len);
		assert_string_equal(t.host, good[i].host);
		assert_int_equal(t.port, good[i].port);
		assert_int_equal(t.is_address, good[i].is_address);
		memset(longer, 'x', sizeof(longer));
		memcpy(longer, text->data, text->len);
		assert_int_equal(ask(longer, sizeof(longer), &t, &reply), (int)text->len);
	}
}

static void other_requests_get_a_reply(void **state)
{
	static const struct {
		struct text text;
		enum socks_reply reply;
	} bad[] = {
		{TEXT("\4"), SOCKS_FAILED},
		{TEXT("\5\0"), SOCKS_BAD_COMMAND},
		{TEXT("\5\2"), SOCKS_BAD_COMMAND},
		{TEXT("\5\3\0\1\x7f\0\0\1\1\xbb"), SOCKS_BAD_COMMAND},
		{TEXT("\5\xff"), SOCKS_BAD_COMMAND},
		{TEXT("\5\1\1"), SOCKS_FAILED},
		{TEXT("\5\1\0\0"), SOCKS_BAD_ADDRESS},
		{TEXT("\5\1\0\2"), SOCKS_BAD_ADDRESS},
		{TEXT("\5\1\0\5"), SOCKS_BAD_ADDRESS},
		{TEXT("\5\1\0\1\x7f\0\0\1\0\0"), SOCKS_FAILED}, /* port 0 */
		{TEXT("\5\1\0\4" MAPPED "\0\x50"), SOCKS_BAD_ADDRESS},
		{TEXT("\5\1\0\3\0\0\x50"), SOCKS_BAD_ADDRESS},
		{TEXT("\5\1\0\3\3::1\0\x50"), SOCKS_BAD_ADDRESS},
		{TEXT("\5\1\0\3\5[::1]\0\x50"), SOCKS_BAD_ADDRESS},
		{TEXT("\5\1\0\3\xa"
	              "2130706433\0\x50"),
	         SOCKS_BAD_ADDRESS},
		{TEXT("\5\1\0\3\xa"
	              "0x7f000001\0\x50"),
	         SOCKS_BAD_ADDRESS},
		{TEXT("\5\1\0\3\5"
	              "127.1\0\x50"),
	         SOCKS_BAD_ADDRESS},
		{TEXT("\5\1\0\3\4a\0.b\0\x50"), SOCKS_BAD_ADDRESS},
		{TEXT("\5\1\0\3\3a:b\0\x50"), SOCKS_BAD_ADDRESS},
		{TEXT("\5\1\0\3\3a\r\n\0\x50"), SOCKS_BAD_ADDRESS},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct text *text = &bad[i].text;
		struct target t = {0};
		enum socks_reply reply = SOCKS_OK;

		for (size_t len = 0; len < text->len; len++) {
			int r = ask(text->data, len, &t, &reply);

			assert_true(r == 0 || (r == -1 && reply == bad[i].reply));
		}
		assert_int_equal(ask(text->data, text->len, &t, &reply), -1);
		assert_int_equal(reply, bad[i].reply);
		assert_string_equal(t.host, "");
	}
}

static void longest_messages_fit_their_maximum(void **state)
{
	char request[SOCKS_REQUEST_MAX] = "\5\1\0\3\xff", greeting[SOCKS_GREETING_MAX] = "\5\xff";
	struct target t;
	enum socks_reply reply = SOCKS_OK;

	(void)state;
	memset(request + 5, 'a', 255);
	assert_int_equal(ask(request, sizeof(request), &t, &reply), -1);
	assert_int_equal(reply, SOCKS_BAD_ADDRESS);
	assert_int_equal(greet(greeting, sizeof(greeting)), (int)sizeof(greeting));
}

static void reply_has_ten_bytes(void **state)
{
	unsigned char bytes[SOCKS_REPLY_LEN];

	(void)state;
	socks_reply(SOCKS_DENIED, bytes);
	assert_memory_equal(bytes, "\5\2\0\1\0\0\0\0\0\0", SOCKS_REPLY_LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greeting_needs_the_method_without_authentication),
		cmocka_unit_test(requests_name_a_target),
		cmocka_unit_test(other_requests_get_a_reply),
		cmocka_unit_test(longest_messages_fit_their_maximum),
		cmocka_unit_test(reply_has_ten_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
